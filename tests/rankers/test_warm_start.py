"""Linear rankers that begin with weights from elsewhere, such as those fitted to a log."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rankloop.base import plain
from rankloop.feedback import Sessions
from rankloop.kernels import descent
from rankloop.logs import fit_ranker
from rankloop.rankers import DBGD, MGD, PDGD, CalibratedSquared, ListNet, PLRank, RTopKF, rtopkf_adaptive

START = np.array([2.0, -1.0, 0.5])
SCHEDULED = {"learning_rate": (0.5, 0.5)}
KINDS: list[tuple[Any, dict[str, Any]]] = [
    (RTopKF, {"k": 2}),
    (RTopKF, {"k": 2, "learning_rate": "camera-ready"}),
    (PDGD, {}),
    (MGD, {"learning_rate": 0.5}),
    (DBGD, {"learning_rate": 0.5}),
    (ListNet, {}),
    (ListNet, SCHEDULED),
    (CalibratedSquared, {}),
    (PLRank, {}),
    (PLRank, SCHEDULED),
]


def play(ranker: Any, rounds: int, seed: int = 1) -> None:
    """Rounds in which the documents with much of the third feature are the good ones."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        documents = rng.random((5, 3))
        shown = ranker.rank(documents, rng=rng)
        good = (documents[shown.items, 2] > 0.5).astype(float)
        ranker.learn(shown, good[: ranker.feedback.length(5)])


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_the_start_is_shown_and_learning_goes_on(kind: Any, settings: dict[str, Any]) -> None:
    ranker = kind(n_features=3, warm_start=START, **settings)
    documents = np.random.default_rng(2).random((6, 3))
    np.testing.assert_array_equal(ranker.current(documents), np.argsort(-(documents @ START)))
    play(ranker, 1)
    # One round moves the weights a little; it does not undo them.
    assert np.abs(ranker.state.w - START).max() < 0.6
    play(ranker, 300)
    assert ranker.state.w[2] > START[2]
    np.testing.assert_array_equal(ranker.clone().state.w, START)


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_a_start_at_zero_is_no_start(kind: Any, settings: dict[str, Any]) -> None:
    usual, started = kind(n_features=3, **settings), kind(n_features=3, warm_start=np.zeros(3), **settings)
    play(usual, 20)
    play(started, 20)
    np.testing.assert_array_equal(started.state.w, usual.state.w)


@pytest.mark.parametrize(
    ("kind", "rate"), [(RTopKF, rtopkf_adaptive.RATE), (ListNet, descent.RATE), (PLRank, descent.RATE)]
)
def test_features_seen_larger_than_ever_leave_the_start(kind: Any, rate: float) -> None:
    # AdaGrad divides what it learnt by how much the scale grew; the start has the units of the features already.
    ranker = kind(n_features=3, warm_start=START)
    rng = np.random.default_rng(3)
    for size in (0.001, 0.01, 0.1, 1.0):
        shown = ranker.rank(size * rng.random((4, 3)), rng=rng)
        ranker.learn(shown, np.zeros(ranker.feedback.length(4)))
    way = np.abs(ranker.state.w - START) * ranker.state.scale
    assert way.max() <= 4 * rate  # a step each
    assert (START * ranker.state.scale).max() > 5 * rate


@pytest.mark.parametrize("kind", [RTopKF, ListNet])
def test_no_weight_goes_farther_from_its_start_than_the_radius(kind: Any) -> None:
    ranker = kind(n_features=3, warm_start=10.0 * START, radius=0.05)
    play(ranker, 50)
    way = np.abs(ranker.state.w - 10.0 * START) * ranker.state.scale
    assert way.max() == pytest.approx(0.05)
    ranker.check_state(ranker.state_arrays())
    farther = ranker.state_arrays() | {"w": 10.0 * START + 1.0}
    with pytest.raises(ValueError, match=r"saved state 'w' must be within 0\.05 of its start"):
        ranker.check_state(farther)


@pytest.mark.parametrize(("kind", "settings"), KINDS)
@pytest.mark.parametrize("wrong", [[1.0, 2.0], [[1.0, 2.0, 3.0]], [1.0, 2.0, np.nan], 3.0, "weights"])
def test_other_weights_are_refused(kind: Any, settings: dict[str, Any], wrong: Any) -> None:
    with pytest.raises(ValueError, match="warm_start must be"):
        kind(n_features=3, warm_start=wrong, **settings)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(RTopKF, {"learning_rate": 0.1}), (ListNet, SCHEDULED), (PLRank, SCHEDULED), (MGD, {}), (DBGD, {})],
)
def test_a_start_outside_the_ball_is_refused(kind: Any, settings: dict[str, Any]) -> None:
    kind(n_features=3, warm_start=START, radius=2.3, **settings)
    with pytest.raises(ValueError, match="warm_start must be in the ball of radius 2"):
        kind(n_features=3, warm_start=START, radius=2.0, **settings)


def test_a_fit_is_written_as_its_weights() -> None:
    found = fit_ranker(Sessions(items=[[0, 1]], clicks=[[1, 0]]), examination=[1.0, 0.5], features=np.eye(2))
    ranker = PDGD(n_features=2, warm_start=found)
    np.testing.assert_array_equal(ranker.state.w, found.weights)
    assert repr(ranker) == f"PDGD(n_features=2, warm_start={found.weights.tolist()})"
    read = json.loads(json.dumps(plain(ranker.get_params())))
    np.testing.assert_array_equal(PDGD(**read).state.w, found.weights)
