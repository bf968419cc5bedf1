"""RTop-kF at its limits: arguments, requests and feedback that make no sense, and numbers that might overflow."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankloop import environments, rankers, simulation, surrogates
from rankloop.rankers import RTopKF
from tests.rankers.one_step import FORMS, Learner, a_list, keyed

ALL = ["squared", "kl", "smooth_dcg", "ranksvm"]

# Arguments and requests


@pytest.mark.judges("2016-103")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"surrogate": "ranksvm", "k": 1}, r"ranksvm needs k >= 2, got k=1.*Lemma 2"),
        ({"surrogate": "listnet", "k": 3}, r"listnet needs the labels of the whole list, got k=3.*Lemma 3"),
        (
            {"surrogate": "calibrated_squared"},
            r"calibrated_squared needs .* whole list, got k=1.*Theorem 5.2",
        ),
        ({"surrogate": "lambda"}, r"surrogate.*'lambda'"),
        ({"n_features": 0}, r"n_features.*0"),
        ({"n_features": 2.5}, r"n_features.*2\.5"),
        ({"k": 0}, r"k .*0"),
        ({"k": True}, r"k .*True"),
        ({"learning_rate": "fast"}, r"learning_rate.*'fast'"),
        ({"learning_rate": 0.0}, r"learning_rate.*0\.0"),
        ({"learning_rate": (0.1, -1.0)}, r"learning_rate.*-1\.0"),
        ({"exploration": -0.1}, r"exploration.*-0\.1"),
        ({"exploration": "preprint"}, r"exploration.*horizon.*None"),
        ({"learning_rate": "preprint", "horizon": 0}, r"horizon.*0"),
        ({"horizon": -3}, r"horizon.*-3"),  # also where no schedule uses it
        ({"horizon": 2.5}, r"horizon.*2\.5"),
        ({"exploration": 1.5}, r"exploration.*at most 1.*1\.5"),
        ({"exploration": (1.5, 0.0)}, r"exploration.*at most 1.*1\.5"),
        ({"radius": 0.0}, r"radius.*0\.0"),
        ({"radius": np.inf}, r"radius.*inf"),
        ({"estimator": "lemma-1"}, r"estimator.*'lemma-1'"),
        ({"surrogate": "kl", "control_variate": "zero"}, r"control_variate.*'zero'"),
        ({"control_variate": "score"}, r"control_variate.*'score' for centred_squared"),
        ({"surrogate": "centred_squared", "learning_rate": 0.1}, r"centred_squared.*adagrad.*0\.1"),
        ({"exploration": "matched", "learning_rate": 0.1}, r"exploration='matched' needs.*adagrad"),
        ({"surrogate": "ranksvm", "k": 2, "control_variate": "mean"}, r"control_variate.*'mean'.*ranksvm"),
        ({"epsilon": 0.0}, r"epsilon.*0\.0"),
        ({"epsilon": np.nan}, r"epsilon.*nan"),
        ({"epsilon": "narrow"}, r"epsilon.*narrow"),
        ({"epsilon_floor": 0.0}, r"epsilon_floor.*0\.0"),
        ({"max_grade": 0}, r"max_grade.*0"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_are_named(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RTopKF(**{"n_features": 2} | arguments)


def test_labels_whose_gain_is_infinite_are_refused_when_the_ranker_is_made() -> None:
    with pytest.raises(ValueError, match="max_grade"):
        RTopKF(n_features=2, surrogate="smooth_dcg", max_grade=2000)


def test_a_whole_float_is_a_good_k() -> None:
    ranker = RTopKF(n_features=2, surrogate="ranksvm", k=2.0)  # type: ignore[arg-type]
    assert isinstance(ranker.feedback.length(3), int)


def test_a_surrogate_that_is_given_ready_made_keeps_its_own_epsilon_or_is_refused() -> None:
    made = None
    with contextlib.suppress(ValueError):
        made = RTopKF(n_features=2, surrogate=surrogates.SmoothDCG(epsilon=0.125))  # type: ignore[arg-type]
    assert made is None or made.params.epsilon == 0.125


@pytest.mark.parametrize(
    "context",
    [
        None,
        3.0,
        [1.0, 2.0],
        [[1.0, 2.0, 3.0]],
        np.zeros((0, 2)),
        np.zeros((2, 0)),
        np.zeros((1, 1, 2)),
        [[np.nan, 1.0]],
        [[0.0, 1.0], [np.inf, 1.0]],
        [["a", "b"]],
        [[1.0, 2.0], [3.0]],
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [RTopKF, rankers.ListNet, rankers.CalibratedSquared])
def test_a_request_that_makes_no_sense_is_refused_and_changes_nothing(kind: Any, context: Any) -> None:
    ranker = kind(n_features=2)
    before = ranker.save()
    rng = np.random.default_rng(1)
    word = np.random.default_rng(1).bit_generator.random_raw()
    with pytest.raises(ValueError, match="context"):
        ranker.rank(context, rng=rng)
    with pytest.raises(ValueError, match="context"):
        ranker.current(context)
    assert rng.bit_generator.random_raw() == word, "it drew before it refused"
    for part, value in ranker.save().items():
        np.testing.assert_array_equal(before[part], value)


@pytest.mark.parametrize(
    "feedback", [[], [1.0, 0.0], [np.nan], [np.inf], [-1.0], [[1.0]], 1.0, [4.5], [5.0]], ids=str
)
def test_feedback_that_makes_no_sense_is_refused_and_changes_nothing(feedback: Any) -> None:
    ranker = RTopKF(n_features=2, k=1, max_grade=4)
    ticket = ranker.rank(np.eye(2), rng=keyed(1))
    with pytest.raises(ValueError, match="feedback"):
        ranker.learn(ticket, feedback)
    assert not ranker.state.w.any()
    assert ranker.state.t[0] == 0
    assert not ranker.state.labels.any()


def test_requests_of_any_number_type_and_layout_are_ranked_alike() -> None:
    ranker = RTopKF(n_features=3)
    ranker.state.w[:] = [1.0, -2.0, 0.5]
    whole = np.array([[3, 1, 0], [0, 0, 4], [1, 1, 1]])
    wanted = ranker.rank(whole.astype(np.float64), rng=keyed(5))
    for same in (whole, whole.tolist(), whole.astype(">f8"), np.asfortranarray(whole, dtype=np.float32)):
        np.testing.assert_array_equal(ranker.rank(same, rng=keyed(5)).items, wanted.items)
        np.testing.assert_array_equal(ranker.current(same), [1, 0, 2])


# Numbers that might overflow


def harsh_queries(size: float, dtype: Any, longest: int = 12) -> Any:
    rng = np.random.default_rng(3)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, longest, 40))])
    return SimpleNamespace(
        features=(size * rng.normal(size=(offsets[-1], 5))).astype(dtype),
        relevance=rng.integers(0, 5, offsets[-1]).astype(np.float64),
        offsets=offsets,
    )


@pytest.mark.parametrize("exploration", [1e-9, 1e-3, (1.0, 1 / 3)])
@pytest.mark.parametrize(("name", "estimator", "variate"), [f for f in FORMS if f[1] == "horvitz-thompson"])
def test_weights_stay_finite_and_in_the_ball(
    name: str, estimator: str, variate: str | None, exploration: Any
) -> None:
    for size, dtype in ((1e3, np.float64), (1e30, np.float32)):
        ranker = RTopKF(
            n_features=5,
            surrogate=name,
            k=2,
            learning_rate=10.0,
            exploration=exploration,
            estimator=estimator,
            control_variate=variate,
            epsilon=1e-5,
        )
        ranker.state.w[:] = [0.0, 10.0, 0.0, 0.0, 0.0]  # at the ball
        stream = environments.QueryStream(harsh_queries(size, dtype))
        trace = simulation.play(ranker, stream, rounds=100_000 if size == 1e3 else 2_000, seed=1, points=10)
        assert np.isfinite(trace.total).all()
        assert np.isfinite(ranker.state.w).all()
        assert 0.0 < np.linalg.norm(ranker.state.w) <= 10.0 * (1 + 1e-12)
        assert np.isfinite(ranker.state.labels).all()


@pytest.mark.parametrize("name", ALL)
def test_scores_far_apart_give_the_step_of_the_reference(name: str) -> None:
    # e^s beyond the largest exponent, a saturated softmax, chances of 1e-9 / n.
    for key in range(20):
        X, R = a_list(5, 3, seed=key)
        X *= 1e3
        learner = Learner(name, 2, "horvitz-thompson", gamma=1e-9, epsilon=1e-5, radius=1e30)
        learner.at(np.array([6.0, 0.0, 8.0]))
        shown, greedy = learner.show(X, key)
        before = learner.ranker.state.w.copy()
        z = learner.z(X, shown.items, greedy, R[shown.items[:2]])
        after = learner.learn(shown, R)
        np.testing.assert_allclose(after, before - learner.eta * z, rtol=1e-10, atol=1e-10)


HUGE = """
import sys
from types import SimpleNamespace

import numpy as np
from rankloop import environments, rankers, simulation

how, n = sys.argv[1], int(sys.argv[2])
ranker = rankers.RTopKF(n_features=2)
ranker.state.w[:] = [5.0, 5.0]
documents = np.arange(2.0 * n).reshape(n, 2)
documents[1] = [1.7e308, -1.7e308]  # scores inf - inf
queries = SimpleNamespace(features=documents, relevance=np.arange(n) % 3.0, offsets=np.array([0, n]))
try:
    if how == "play":
        trace = simulation.play(ranker, environments.QueryStream(queries), rounds=50, seed=1)
        assert np.isfinite(trace.total_value)
    else:
        for seed in range(5):
            shown = ranker.rank(documents, rng=np.random.default_rng(seed))
            assert sorted(shown.items.tolist()) == list(range(n)), shown
except ValueError as refusal:
    assert "features" in str(refusal) or "context" in str(refusal), refusal
"""


@pytest.mark.parametrize("n", [3, 200])  # sorted in different ways
@pytest.mark.parametrize("how", ["rank", "play"])
def test_a_score_that_is_not_a_number_does_not_end_the_process(how: str, n: int) -> None:
    # Apart, because a kernel that sorts NaN may read and write memory that is not its own.
    run = [sys.executable, "-c", HUGE, how, str(n)]
    ended = subprocess.run(run, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-500:] or f"ended by signal {-ended.returncode}"


def test_features_too_large_to_square_are_refused_or_end_on_the_ball_in_their_own_direction() -> None:
    ranker = RTopKF(n_features=2, surrogate="squared", learning_rate=1.0, exploration=0.5)
    try:
        shown = ranker.rank(np.array([[1e200, 1e200]]), rng=keyed(1))
    except ValueError:
        return
    ranker.learn(shown, [2.0])
    np.testing.assert_allclose(ranker.state.w, [10 / np.sqrt(2)] * 2)
