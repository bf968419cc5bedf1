"""A network from a log of clicks: it learns what weights cannot say, and is the linear ranker where it is linear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rankloop import feedback, logs
from rankloop.rankers.neural import NeuralPDGD, NeuralRTopK

torch.set_num_threads(1)


def linear(d: int) -> torch.nn.Module:
    module = torch.nn.Linear(d, 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(module.weight)
    return module


def log_of_clicks(n: int, seed: int) -> tuple[feedback.LoggedLists, Any]:
    """New items in every list, of which the attractive ones were shown at the bottom; and their attractions."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 4, 2))
    attraction = 0.2 + 0.6 * np.abs(x[:, :, 0])  # which no weights of features can say
    order = np.argsort(attraction + 0.2 * rng.standard_normal((n, 4)), axis=1)
    looks = np.array([1.0, 0.5, 0.25, 0.1])
    chances = np.take_along_axis(attraction, order, axis=1) * looks
    log = feedback.LoggedLists(items=order, clicks=rng.random((n, 4)) < chances, features=x)
    return log, looks


def test_a_network_from_a_log_goes_live() -> None:
    log, looks = log_of_clicks(1_500, seed=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    wanted = np.array([[0.9, 0.0], [0.1, 0.9], [-0.8, 0.5], [-0.3, -0.9]])
    best = [0, 2, 3, 1]
    for method in ("ips", "doubly-robust"):
        found = logs.fit_neural_ranker(log, module=network, examination=looks, method=method, epochs=15)
        assert found.order(wanted).tolist() == best
        np.testing.assert_allclose(found.scores(wanted), 0.2 + 0.6 * np.abs(wanted[:, 0]), atol=0.2)
        assert found.losses[-1] < found.losses[0]
        assert found.bias == 0.0
    # Without the correction, what was shown on top seems the better.
    naive = logs.fit_neural_ranker(log, module=network, examination=np.ones(4), epochs=15)
    assert naive.order(wanted).tolist() != best
    once, again = (logs.fit_neural_ranker(log, module=network, examination=looks, epochs=1) for _ in range(2))
    np.testing.assert_array_equal(again.scores(wanted), once.scores(wanted))
    for kind in (NeuralPDGD, NeuralRTopK):
        live = kind(module=found.module, n_features=2)
        assert live.current(wanted).tolist() == best
        rng = np.random.default_rng(1)
        shown = live.rank(wanted, rng=rng)
        live.learn(shown, np.zeros(live.feedback.length(4)))
    assert "Sequential from 6,000 impressions by doubly-robust" in repr(found)


def test_a_linear_module_is_the_linear_ranker() -> None:
    log, looks = log_of_clicks(400, seed=2)
    found = logs.fit_ranker(log, examination=looks, clip=5.0, ridge=1e-9)
    module = logs.fit_neural_ranker(
        log,
        module=linear(2),
        examination=looks,
        clip=5.0,
        epochs=300,
        batch_size=10_000,
        learning_rate=0.05,
    )
    np.testing.assert_allclose(module.module.weight.detach().numpy()[0], found.weights, atol=1e-3)
    assert module.bias == found.bias == pytest.approx(0.25 * (1.0 - 0.1 * 5.0))
    assert "bias of at most 0.125 by clipping" in repr(module)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"module": "network"}, "module must be a torch.nn.Module, got 'network'"),
        ({"module": torch.nn.Linear(3, 1)}, "module must take items with 2 features"),
        ({"module": torch.nn.Linear(2, 2)}, "module must give one score for each of 2 items"),
        ({"epochs": 0}, "epochs must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"learning_rate": 1e200}, "the loss is not finite"),
        ({"examination": [1.0]}, "examination must be 4 numbers"),
        ({"features": np.eye(4)}, "features must be left out"),
        ({"method": "magic"}, "method must be one of"),
    ],
)
def test_wrong_arguments_of_a_neural_fit_are_named(arguments: dict[str, Any], told: str) -> None:
    log, looks = log_of_clicks(20, seed=3)
    with pytest.raises(ValueError, match=told):
        logs.fit_neural_ranker(log, **({"module": linear(2), "examination": looks, "epochs": 2} | arguments))
