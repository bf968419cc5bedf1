"""Schedules of steps, and weights to begin with."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop.base import plain
from rankloop.feedback import Sessions
from rankloop.kernels import descent
from rankloop.logs import fit_ranker
from rankloop.rankers import DBGD, MGD, PDGD, CalibratedSquared, ListNet, PLRank, RTopKF, rtopkf_adaptive
from rankloop.rankers.linear import Schedule, read_schedule
from tests.rankers.one_step import Learner, keyed

POSITIVE = st.floats(1e-9, 1e3)


@given(POSITIVE, st.floats(0.0, 2.0), st.integers(1, 10**7))
def test_a_pair_is_scale_and_power(scale: float, power: float, t: int) -> None:
    assert read_schedule("eta", (scale, power)) == Schedule(scale, power)
    np.testing.assert_allclose(Schedule(scale, power).at(t), scale / t**power, rtol=1e-12)


@given(POSITIVE, st.integers(1, 10**7))
def test_a_number_stays_as_it_is(scale: float, t: int) -> None:
    assert read_schedule("eta", scale).at(t) == scale


@pytest.mark.parametrize(
    "given",
    [0.0, -1.0, np.nan, np.inf, (0.0, 1.0), (1.0, -0.1), (np.nan, 1.0), (1.0, np.inf), (-np.inf, 0.5)],
    ids=str,
)
def test_numbers_that_make_no_sense_are_named(given: Any) -> None:
    with pytest.raises(ValueError, match=r"^step must be a positive number.* got "):
        read_schedule("step", given)
    with pytest.raises(ValueError, match="learning_rate"):
        ListNet(n_features=1, learning_rate=given)
    with pytest.raises(ValueError, match="exploration"):
        RTopKF(n_features=1, exploration=given)


@pytest.mark.parametrize(
    "given", [None, "fast", (1.0,), (1.0, 2.0, 3.0), ("a", 1.0), {}, [1.0, 2.0, 3.0]], ids=str
)
def test_what_is_no_number_and_no_pair_is_named_too(given: Any) -> None:
    with pytest.raises(ValueError, match="step"):
        read_schedule("step", given)


def test_a_radius_that_is_no_number_is_named() -> None:
    for kind in (RTopKF, ListNet):
        with pytest.raises(ValueError, match=r"radius.*'wide'"):
            kind(n_features=1, radius="wide")  # type: ignore[arg-type]


@pytest.mark.judges("2016-130")
def test_camera_ready_schedules_fall_with_every_round() -> None:
    ranker = RTopKF(n_features=2, learning_rate="camera-ready")
    for t in (1, 2, 8, 1000, 200_000):
        np.testing.assert_allclose(ranker.learning_rate.at(t), 0.01 * t ** (-2 / 3), rtol=1e-14)
        np.testing.assert_allclose(ranker.exploration.at(t), 0.1 * t ** (-1 / 3), rtol=1e-14)
    for kind in (ListNet, CalibratedSquared):
        papers = kind(n_features=2, learning_rate=(0.01, 0.5))
        np.testing.assert_allclose(papers.learning_rate.at(64), 0.01 / 8, rtol=1e-14)
        assert papers.params.radius == 10.0  # the larger one is for AdaGrad
        with pytest.raises(ValueError, match=r"learning_rate.*'fast'"):
            kind(n_features=2, learning_rate="fast")


@pytest.mark.judges("2016-130")
def test_preprint_schedules_are_constants_made_from_the_horizon() -> None:
    ranker = RTopKF(n_features=2, learning_rate="preprint", exploration="preprint", horizon=1000)
    for t in (1, 500, 10_000):
        np.testing.assert_allclose(ranker.learning_rate.at(t), 0.01, rtol=1e-14)
        np.testing.assert_allclose(ranker.exploration.at(t), 0.1, rtol=1e-14)
    for argument in ("learning_rate", "exploration"):
        with pytest.raises(ValueError, match=rf"{argument}.*horizon.*None"):
            RTopKF(n_features=2, **{argument: "preprint"})  # type: ignore[arg-type]
    mixed = RTopKF(n_features=2, learning_rate="preprint", exploration=(1.0, 0.5), horizon=8)
    np.testing.assert_allclose((mixed.learning_rate.at(3), mixed.exploration.at(4)), (0.25, 0.5))


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ("camera-ready", lambda t: (0.01 * t ** (-2 / 3), 0.1 * t ** (-1 / 3))),
        ("preprint", lambda t: (64 ** (-2 / 3), 64 ** (-1 / 3))),
        (0.3, lambda t: (0.3, 0.3)),
        ((0.5, 0.25), lambda t: (0.5 * t**-0.25, 0.5 * t**-0.25)),
        ((9.0, 1.0), lambda t: (9.0 / t, min(1.0, 9.0 / t))),
    ],
)
def test_the_kernels_keep_the_schedules(given: Any, at: Any) -> None:
    # One document in a list of one: the chance is 1, so the step is eta itself times a known gradient.
    ranker = RTopKF(n_features=1, surrogate="squared", learning_rate=given, exploration=given, horizon=64)
    for t in (1, 2, 3, 10, 1000):
        eta, gamma = at(t)
        ranker.state.t[0] = t - 1
        ranker.state.w[0] = 0.0
        pair = ranker.rank(np.zeros((2, 1)), rng=keyed(t))
        chance = float(pair.propensities[0])
        assert min(abs(chance - gamma / 2), abs(chance - (1 - gamma / 2))) < 1e-14
        ranker.learn(ranker.rank(np.ones((1, 1)), rng=keyed(t)), [2.0])
        np.testing.assert_allclose(ranker.state.w[0], min(10.0, 4.0 * eta), rtol=1e-12)
        assert ranker.state.t[0] == t


@pytest.mark.judges("2016-154")
@pytest.mark.parametrize(
    ("given", "floor", "at"),
    [
        (0.5, 0.01, lambda t: 0.5),
        (0.001, 0.01, lambda t: 0.001),  # a constant below the floor is meant
        ((2.0, 0.5), 0.01, lambda t: max(0.01, 2.0 * t**-0.5)),
        ((2.0, 0.5), 0.3, lambda t: max(0.3, 2.0 * t**-0.5)),
    ],
)
def test_epsilon_anneals_down_to_its_floor(given: Any, floor: float, at: Any) -> None:
    X, R = np.array([[0.2, 0.4], [0.1, -0.3], [0.0, 0.5]]), np.array([1.0, 0.0, 2.0])
    for t in (1, 4, 100, 10**6):
        ranker = RTopKF(
            n_features=2,
            surrogate="smooth_dcg",
            k=3,
            estimator="horvitz-thompson",
            epsilon=given,
            epsilon_floor=floor,
            learning_rate=1e-3,
        )
        ranker.state.t[0] = t - 1
        ranker.state.w[:] = [0.3, 0.2]
        same = Learner("smooth_dcg", 3, "horvitz-thompson", n_features=2, epsilon=at(t)).at(ranker.state.w)
        shown = ranker.rank(X, rng=keyed(t))
        ranker.learn(shown, R[shown.items])  # the whole list, so z is the gradient
        np.testing.assert_allclose(ranker.state.w, [0.3, 0.2] - 1e-3 * same.gradient(X, R), rtol=1e-10)


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
