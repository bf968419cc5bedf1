"""Rankers with a torch module: the linear one is PDGD, gradients are those of finite differences, state travels.

Beside tests/logs/test_neural_ranker.py the only tests that import torch, so that few workers of the suite do.
"""

from __future__ import annotations

import copy
import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rankloop
from rankloop import checks, data, environments, rankers, simulation, surrogates
from rankloop.base import Ranking
from rankloop.rankers.neural import ModuleRanker, NeuralPDGD, NeuralRTopK
from rankloop.surrogates import estimators

torch.set_num_threads(1)
D = 4


def linear(d: int, dtype: Any = torch.float64) -> torch.nn.Module:
    module = torch.nn.Linear(d, 1, bias=False, dtype=dtype)
    torch.nn.init.zeros_(module.weight)
    return module


def small_module(n_features: int) -> torch.nn.Module:
    """A network with one hidden layer, always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(n_features, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def deep() -> torch.nn.Module:
    return small_module(D).double()


def flat(module: torch.nn.Module) -> Any:
    return np.concatenate([value.detach().numpy().ravel() for value in module.parameters()])


def test_neural_rankers_keep_the_rules() -> None:
    plain, double = functools.partial(small_module, 3), lambda: small_module(3).double()
    for make in (
        lambda: NeuralPDGD(module=plain(), n_features=3, n_positions=3, optimiser="adam", learning_rate=0.01),
        lambda: NeuralPDGD(module=double(), n_features=3),
        lambda: NeuralRTopK(module=plain(), n_features=3),
        lambda: NeuralRTopK(
            module=plain(), n_features=3, k=2, surrogate="ranksvm", exploration=0.5, optimiser="sgd"
        ),
    ):
        checks.check_ranker(make)


def test_a_linear_module_is_pdgd() -> None:
    one = rankers.PDGD(n_features=D, n_positions=5, learning_rate=0.3)
    other = NeuralPDGD(module=linear(D), n_features=D, n_positions=5, learning_rate=0.3)
    rng_one, rng_other, users = (np.random.default_rng(seed) for seed in (1, 1, 2))
    late: list[Any] = []
    for t in range(60):
        documents = users.random((int(users.integers(1, 12)), D))
        shown, same = one.rank(documents, rng=rng_one), other.rank(documents, rng=rng_other)
        np.testing.assert_array_equal(shown.items, same.items)
        late.append((shown, same, users.integers(0, 2, min(5, len(documents)))))
        for _ in range(1 if t < 59 else len(late)):
            if t % 7 < 5 or t == 59:  # some clicks come later, out of order
                a, b, clicks = late.pop(t % len(late))
                one.learn(a, clicks)
                other.learn(b, clicks)
    np.testing.assert_allclose(other.module.weight.detach().numpy()[0], one.state.w, rtol=1e-10)
    assert np.linalg.norm(one.state.w) > 0.1
    assert other.state.t[0] == one.state.t[0] == 60
    np.testing.assert_array_equal(one.current(documents), other.current(documents))


@pytest.mark.parametrize("kind", [NeuralPDGD, NeuralRTopK])
def test_a_step_is_the_gradient_of_finite_differences(kind: type[ModuleRanker]) -> None:
    # With the estimate in the scores held fixed, the step is minus the slope of estimate . scores(parameters).
    module = deep()
    ranker: Any = kind(module=module, n_features=D, learning_rate=1.0, optimiser="sgd")
    rng = np.random.default_rng(3)
    documents = rng.standard_normal((6, D))
    shown = ranker.rank(documents, rng=rng)
    revealed = [0, 1, 0, 0, 1, 0] if kind is NeuralPDGD else [3]
    estimate = np.zeros(6)
    if kind is NeuralPDGD:
        same = rankers.PDGD(n_features=6, learning_rate=1.0)  # of documents that are their own features
        memo = (shown.memo[0], shown.memo[1], np.eye(6)[shown.items])
        same.learn(Ranking(shown.items, memo=memo), revealed)
        estimate = -same.state.w
    else:
        scores = shown.memo[1]
        estimate = estimators.horvitz_thompson(
            surrogates.get("squared"),
            s=scores,
            shown=shown.items,
            labels=revealed,
            greedy=shown.memo[2],
            gamma=float(shown.memo[0][0]),
            baseline=np.clip(scores, 0, 4),
        )
        estimate = estimate / 6
    assert np.abs(estimate).max() > 1e-3

    def value(parameters: Any) -> float:
        changed = copy.deepcopy(module)
        torch.nn.utils.vector_to_parameters(torch.as_tensor(parameters), changed.parameters())
        with torch.no_grad():
            return float(estimate @ changed(torch.as_tensor(documents)).numpy()[:, 0])

    start, h = flat(module), 1e-5
    slopes = [(value(start + h * e) - value(start - h * e)) / (2 * h) for e in np.eye(len(start))]
    ranker.learn(shown, revealed)
    np.testing.assert_allclose(start - flat(ranker.module), slopes, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(flat(module), start)  # the one that was given stays as it was


@pytest.mark.parametrize(("surrogate", "k"), [("squared", 1), ("kl", 2), ("smooth_dcg", 1), ("ranksvm", 2)])
def test_the_estimate_of_rtopk_is_unbiased(surrogate: str, k: int) -> None:
    # Over every list that may be shown, the mean of the steps in the scores is the surrogate's gradient.
    ranker = NeuralRTopK(
        module=deep(), n_features=D, k=k, surrogate=surrogate, exploration=0.4, optimiser="sgd"
    )
    loss = surrogates.get(surrogate)
    scores, labels, greedy = np.array([0.3, 0.1, 0.8]), np.array([2.0, 0.0, 1.0]), np.array([2, 0, 1])
    mean = np.zeros(3)
    for items in itertools.permutations(range(3)):
        shown = np.array(items)
        chance = 0.4 / 6 + 0.6 * bool((shown == greedy).all())
        mean += chance * ranker._estimate(Ranking(shown), scores, greedy, 0.4, labels[shown[:k]])
    sign = -1.0 if loss.is_gain else 1.0
    np.testing.assert_allclose(mean, sign * loss.gradient(scores, labels) / 3, atol=1e-12)


def quadratic(n_queries: int = 80) -> Any:
    """Queries whose labels depend on the distance from a point, which no linear score expresses."""
    queries = data.synthetic_letor(n_queries=n_queries, n_features=2, seed=3)
    features = np.random.default_rng(1).uniform(-1, 1, queries.features.shape)
    distance = (features**2).sum(axis=1)
    labels = np.searchsorted([0.2, 0.5, 1.0], distance)[:, None].max(axis=1)
    return type(
        "Queries",
        (),
        {
            "features": features,
            "relevance": (3 - labels).astype(np.float64) // 1.5,
            "offsets": queries.offsets,
        },
    )()


def network() -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        return torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def learnt(ranker: Any, users: Any, judge: Any, rounds: int) -> float:
    simulation.play(ranker, users, rounds=rounds, seed=1, fused=False)
    offsets = judge.params.offsets
    values = []
    for query in range(len(offsets) - 1):
        judge.state.query[0] = query
        order = ranker.current(judge.params.features[offsets[query] : offsets[query + 1]])
        values.append(judge.value(Ranking(order)))
    return float(np.mean(values))


def test_a_network_learns_what_no_linear_score_can() -> None:
    queries = quadratic()
    judge = environments.QueryStream(queries, measure="ndcg@10")
    users = environments.ClickedQueries(queries, clicks="perfect")
    straight = learnt(rankers.PDGD(n_features=2), users, judge, 600)
    users = environments.ClickedQueries(queries, clicks="perfect")
    curved = learnt(
        NeuralPDGD(module=network(), n_features=2, optimiser="adam", learning_rate=0.01), users, judge, 600
    )
    stream = environments.QueryStream(queries, measure="ndcg@10")
    labelled = learnt(NeuralRTopK(module=network(), n_features=2, k=3, max_grade=2), stream, judge, 600)
    assert curved > straight + 0.4
    assert labelled > straight + 0.3


@pytest.mark.parametrize("optimiser", ["sgd", "adagrad", "adam", "momentum"])
def test_a_saved_ranker_goes_on_as_before(optimiser: str, tmp_path: Path) -> None:
    def momentum(parameters: Any) -> Any:
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-3)

    def make() -> NeuralPDGD:
        given: Any = momentum if optimiser == "momentum" else optimiser
        return NeuralPDGD(module=deep(), n_features=D, optimiser=given)

    def go_on(ranker: NeuralPDGD, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(15):
            ranker.learn(ranker.rank(rng.random((7, D)), rng=rng), rng.integers(0, 2, 7))

    ranker, other = make(), make()
    go_on(ranker, 1)
    ranker.save(tmp_path / "ranker.npz")
    other.load(tmp_path / "ranker.npz")
    go_on(ranker, 2)
    go_on(other, 2)
    np.testing.assert_array_equal(flat(ranker.module), flat(other.module))
    assert ranker.state_arrays().keys() == other.state_arrays().keys()
    with np.load(tmp_path / "ranker.npz", allow_pickle=False) as saved:
        assert all(saved[name].dtype.kind in "ifU" for name in saved.files)
    with pytest.raises(
        ValueError, match=r"arguments that a file cannot hold are missing: module \(Sequential\)"
    ):
        rankloop.load(tmp_path / "ranker.npz")
    clone = ranker.clone()  # of the weights in the beginning
    np.testing.assert_array_equal(flat(clone.module), flat(deep()))


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    ranker = NeuralPDGD(module=deep(), n_features=D, optimiser="adam")
    rng = np.random.default_rng(1)
    ranker.learn(ranker.rank(rng.random((5, D)), rng=rng), [1, 0, 0, 0, 1])
    saved = ranker.save()
    wider = torch.nn.Sequential(torch.nn.Linear(D, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).double()
    place = next(name for name in saved if name.startswith("optimiser.0.exp_avg"))
    wrong = [
        (NeuralPDGD(module=wider, n_features=D).save(), "optimiser='sgd', this ranker has optimiser='adam'"),
        (NeuralPDGD(module=wider, n_features=D, optimiser="adam").save(), "another module"),
        (NeuralRTopK(module=deep(), n_features=D).save(), "saved state is of NeuralRTopK"),
        ({name: value for name, value in saved.items() if name != "optimiser.json"}, "optimiser.json"),
        (saved | {"module.0.bias": np.full(4, np.nan)}, "'module.0.bias' must be finite"),
        (saved | {"t": np.array([-1])}, "'t' must not be negative"),
        (saved | {place: np.full_like(saved[place], np.inf)}, "must be finite"),
        (saved | {"optimiser.9.step": np.ones(())}, "of one of 4 parameters"),
        (saved | {"optimiser.json": np.array("nothing")}, "cannot be read"),
        (saved | {"optimiser.json": np.array('{"groups": [], "state": {}}')}, "does not fit"),
    ]
    before = {name: value.tobytes() for name, value in ranker.save().items()}
    for arrays, message in wrong:
        with pytest.raises(ValueError, match=message):
            ranker.load(arrays)
        assert {name: value.tobytes() for name, value in ranker.save().items()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"module": "net"}, "module must be a torch.nn.Module, got 'net'"),
        ({"module": torch.nn.Tanh()}, "module must have parameters of float32 or of float64"),
        ({"module": torch.nn.Linear(D, 1).half()}, "got .'torch.float16'."),
        ({"module": torch.nn.Linear(D, 1).requires_grad_(False)}, "parameters that require a gradient"),
        ({"module": torch.nn.Linear(D, 2)}, "one score for each of 2 documents, got shape"),
        ({"module": torch.nn.Linear(D + 1, 1)}, "module must take documents with n_features=4"),
        ({"n_features": 0}, "n_features must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"optimiser": "newton"}, "optimiser must be one of"),
        ({"optimiser": lambda parameters: 3}, "optimiser must give a torch.optim.Optimizer, got 3"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    for kind in (NeuralPDGD, NeuralRTopK):
        with pytest.raises(ValueError, match=message):
            kind(**{"module": deep(), "n_features": D, **arguments})


def test_wrong_arguments_of_one_kind_are_refused() -> None:
    for arguments, message in [
        ({"k": 0}, "k must be"),
        ({"surrogate": "listnet"}, "surrogate must be one of"),
        ({"surrogate": "ranksvm"}, "ranksvm"),
        ({"exploration": 0.0}, "exploration must be a probability above 0, got 0.0"),
        ({"exploration": 1.5}, "exploration must be a probability"),
        ({"max_grade": 0}, "max_grade must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            NeuralRTopK(module=deep(), n_features=D, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_positions must be"):
        NeuralPDGD(module=deep(), n_features=D, n_positions=0)


def test_wrong_tickets_change_nothing() -> None:
    rng = np.random.default_rng(1)
    clicked = NeuralPDGD(module=deep(), n_features=D)
    labelled = NeuralRTopK(module=deep(), n_features=D, max_grade=2)
    one, other = clicked.rank(rng.random((3, D)), rng=rng), labelled.rank(rng.random((3, D)), rng=rng)
    header, shown, features = one.memo
    for memo, message in [
        (other.memo, "must have 3 parts, got 4"),
        ((header, shown, features[:2]), "end with a request for 3 items, got one for 2"),
        ((header[:2], shown, features), "must hold float64"),
        ((header, shown.astype(np.float32), features), "must hold float64"),
        ((header + 1, shown, features), "of 3 items"),
        ((header, shown * np.nan, features), "finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            clicked.learn(Ranking(one.items, memo=memo), [1, 0, 0])
    header, scores, greedy, features = other.memo
    for memo, message in [
        ((header * 0, scores, greedy, features), "begin with a probability"),
        ((header, scores[:2], greedy, features), "3 scores and their order"),
        ((header, scores, greedy * 0, features), "3 scores and their order"),
    ]:
        with pytest.raises(ValueError, match=message):
            labelled.learn(Ranking(other.items, memo=memo), [1])
    with pytest.raises(ValueError, match="at most max_grade=2"):
        labelled.learn(other, [3])
    assert clicked.state.t[0] == labelled.state.t[0] == 0


def test_what_is_not_finite_is_refused_before_anything_changes() -> None:
    class Broken(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(D))

        def forward(self, documents: torch.Tensor) -> torch.Tensor:
            return torch.sqrt((documents @ self.weight) ** 2)  # its slope at 0 is 0/0

    ranker = NeuralPDGD(module=Broken(), n_features=D)
    rng = np.random.default_rng(1)
    shown = ranker.rank(rng.random((4, D)), rng=rng)
    with pytest.raises(FloatingPointError, match="gradient is not finite"):
        ranker.learn(shown, [1, 0, 0, 0])
    assert ranker.state.t[0] == 0
    assert not ranker.module.weight.detach().numpy().any()
    ranker.module.load_state_dict({"weight": torch.full((D,), float("inf"))})
    with pytest.raises(ValueError, match="finite scores"):
        ranker.rank(rng.random((4, D)), rng=rng)


def test_dropout_and_normalisation_stay_in_evaluation_mode() -> None:
    module = torch.nn.Sequential(
        torch.nn.BatchNorm1d(D), torch.nn.Linear(D, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)
    )
    ranker = NeuralPDGD(module=module, n_features=D)
    rng = np.random.default_rng(1)
    documents = rng.random((1, D))  # training mode would refuse a single document
    before = torch.random.get_rng_state()
    ranker.learn(ranker.rank(documents, rng=rng), [1])
    ranker.learn(ranker.rank(rng.random((6, D)), rng=rng), [1, 0, 0, 0, 0, 1])
    assert torch.equal(torch.random.get_rng_state(), before)
    assert int(ranker.module.get_buffer("0.num_batches_tracked")) == 0
    assert ranker.state.t[0] == 2
