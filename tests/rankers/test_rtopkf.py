"""RTop-kF: what it shows and learns, from labels and from clicks, its limits and its tickets."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from math import factorial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rankloop import checks, data, environments, rankers, simulation, surrogates
from rankloop.base import Ranking
from rankloop.rankers import RTopKF
from tests.examples import refused
from tests.rankers.one_step import FORMS, Learner, a_list, keyed, keys, project

ALL = ["squared", "kl", "smooth_dcg", "ranksvm"]


def ks(name: str) -> range:
    return range(2 if name == "ranksvm" else 1, 5)


# One step


@pytest.mark.judges("2016-102", "2016-106")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "estimator", "variate"), FORMS)
def test_one_step_is_that_of_the_reference(
    name: str, estimator: str, variate: str | None, dtype: Any
) -> None:
    explored = 0
    for k, n, d in itertools.product(ks(name), range(1, 7), (1, 9)):
        learner = Learner(name, k, estimator, variate, n_features=d)
        rng = np.random.default_rng([k, n, d])
        for key in range(6):
            X, R = a_list(n, d, seed=100 * n + key)
            X = X.astype(dtype)
            learner.at(rng.normal(size=d), labels_seen=(rng.uniform(0.0, 20.0), 7.0))
            shown, greedy = learner.show(X, key)
            before = learner.ranker.state.w.copy()
            z = learner.z(X, shown.items, greedy, R[shown.items[:k]])
            after = learner.learn(shown, R)
            # Features in float32 are scored in float32, and e^s has the relative error that s has in absolute terms.
            near = 1e-10 if dtype is np.float64 else 1e-5 * (1.0 + learner.eta * np.abs(z).max())
            np.testing.assert_allclose(after, before - learner.eta * z, rtol=1e-10, atol=near)
            explored += shown.explored and n > 1
    assert explored > 20


@pytest.mark.parametrize("name", ALL)
def test_one_step_with_tied_scores_is_that_of_the_reference(name: str) -> None:
    # Two documents alike and a third of the same score, so the greedy order is one of six; and no label of 0.
    for key, k in itertools.product(range(40), (2, 3)):
        learner = Learner(name, k, "horvitz-thompson")
        X = np.array([[0.3, 0.1, 0.0], [0.3, 0.1, 0.0], [0.1, 0.3, 0.0], [0.0, 0.0, 1.0]])
        learner.at(np.array([1.0, 1.0, -0.5]))
        R = np.array([1.0, 3.0, 2.5, 4.0])
        shown, greedy = learner.show(X, key)
        before = learner.ranker.state.w.copy()
        z = learner.z(X, shown.items, greedy, R[shown.items[:k]])
        np.testing.assert_allclose(learner.learn(shown, R), before - learner.eta * z, rtol=1e-10, atol=1e-10)


@pytest.mark.judges("2016-106")
@pytest.mark.parametrize("name", ALL)
def test_a_step_out_of_the_ball_ends_on_it(name: str) -> None:
    learner = Learner(name, 2, radius=0.25, eta=5.0)
    on_it = 0
    for key in range(60):
        X, R = a_list(5, 3, seed=key)
        learner.at(project(np.random.default_rng(key).normal(size=3), 0.25))
        shown, greedy = learner.show(X, key)
        step = learner.ranker.state.w - 5.0 * learner.z(X, shown.items, greedy, R[shown.items[:2]])
        after = learner.learn(shown, R)
        np.testing.assert_allclose(after, project(step, 0.25), rtol=1e-10, atol=1e-12)
        on_it += abs(np.linalg.norm(after) - 0.25) < 1e-12
    assert on_it > 20


def test_the_mean_is_over_the_labels_that_the_estimator_used() -> None:
    for estimator, used in (("paper", 1), ("horvitz-thompson", 2)):
        ranker = RTopKF(n_features=2, surrogate="kl", k=2, estimator=estimator, control_variate="mean")
        ranker.learn(ranker.rank(np.eye(2), rng=keyed(1)), [3.0, 1.0])
        ranker.learn(ranker.rank(np.eye(2)[:1], rng=keyed(1)), [2.0])
        assert ranker.state.labels.tolist() == [[5.0, 2.0], [6.0, 3.0]][used - 1]


# The law of what is shown


@pytest.mark.judges("2016-103", "2016-105")
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(("name", "estimator", "variate"), FORMS)
def test_unbiased_by_enumeration_given_any_greedy_order(
    name: str, estimator: str, variate: str | None, tied: bool
) -> None:
    # The whole compiled path, rank to learn. With tied scores: unbiased given each way to break the ties (B10).
    gamma, eta = 0.5, 0.3
    w = np.zeros(3) if tied else np.array([0.4, -0.2, 0.7])
    X, _ = a_list(3, 3, seed=5)
    X = X[np.argsort(X @ w, kind="stable")]  # as `keys` has it
    R = np.array([2.0, 0.0, 3.0])
    for k in range(2 if name == "ranksvm" else 1, 4):
        learner = Learner(name, k, estimator, variate, gamma=gamma, eta=eta, radius=1e9)
        mean: dict[tuple[int, ...], Any] = {}
        for (greedy, order), found in keys(3, gamma, tied=tied).items():
            steps = []
            for key in found:
                shown, best = learner.at(w, labels_seen=(5.0, 4.0)).show(X, key)
                assert (tuple(best), tuple(shown.items)) == (greedy, order)
                steps.append(w - learner.learn(shown, R))
            for step in steps:  # whether it was exploration that led to this order must not matter
                np.testing.assert_array_equal(step, steps[0])
            chance = (1 - gamma) * (order == greedy) + gamma / factorial(3)
            mean[greedy] = mean.get(greedy, 0.0) + chance * steps[0]
        learner.at(w)
        assert len(mean) == (6 if tied else 1)
        for estimate in mean.values():
            np.testing.assert_allclose(estimate, eta * learner.gradient(X, R), rtol=1e-10, atol=1e-10)


@pytest.mark.judges("2016-104")
def test_orders_come_as_often_as_algorithm_1_says() -> None:
    gamma, n_rounds = 0.4, 20_000
    ranker = RTopKF(n_features=1, surrogate="kl", exploration=gamma, max_grade=1)
    ranker.state.w[0] = 1.0
    X, rng = np.array([[0.1], [0.3], [0.2]]), np.random.default_rng(1)
    rankings = [ranker.rank(X, rng=rng) for _ in range(n_rounds)]
    seen = Counter(tuple(shown.items.tolist()) for shown in rankings)
    greedy = (1, 2, 0)
    orders = list(itertools.permutations(range(3)))
    chances = np.array([(1 - gamma) * (order == greedy) + gamma / 6 for order in orders])
    assert stats.chisquare([seen[order] for order in orders], n_rounds * chances).pvalue > 1e-4
    explored = sum(shown.explored for shown in rankings)
    assert abs(explored - gamma * n_rounds) < 5 * np.sqrt(gamma * (1 - gamma) * n_rounds)
    # Exploring rounds alone are even, and the others are greedy without exception.
    even = Counter(tuple(shown.items.tolist()) for shown in rankings if shown.explored)
    assert stats.chisquare([even[order] for order in orders]).pvalue > 1e-4
    assert {tuple(shown.items.tolist()) for shown in rankings if not shown.explored} == {greedy}


@pytest.mark.parametrize("n", [2, 3, 4])
def test_ties_are_broken_evenly_and_apart_from_exploration(n: int) -> None:
    gamma, n_rounds = 0.5, 12_000
    learner = Learner("kl", 1, gamma=gamma, n_features=1).at(np.zeros(1))
    X = np.ones((n, 1))
    pairs = [learner.show(X, int(key)) for key in np.random.default_rng(n).integers(0, 1 << 62, n_rounds)]
    for explored in (True, False):
        greedy = Counter(tuple(best.tolist()) for shown, best in pairs if shown.explored == explored)
        assert len(greedy) == factorial(n)
        assert stats.chisquare(list(greedy.values())).pvalue > 1e-4
    # Given the greedy order, an exploring round shows every order equally often.
    if n == 3:
        both = Counter(
            (tuple(best.tolist()), tuple(shown.items.tolist())) for shown, best in pairs if shown.explored
        )
        assert len(both) == 36
        assert stats.chisquare(list(both.values())).pvalue > 1e-4


@pytest.mark.judges("2016-096")
@pytest.mark.parametrize("tied", [True, False])
def test_propensities_are_exact_and_sum_to_one(tied: bool) -> None:
    gamma = 0.3
    learner = Learner("kl", 1, gamma=gamma, n_features=1).at(np.zeros(1) if tied else np.ones(1))
    X = np.arange(3.0)[:, None]
    chances: dict[tuple[int, ...], Any] = {}
    for (greedy, order), found in keys(3, gamma, tied=tied).items():
        for key in found:
            shown, _ = learner.show(X, key)
            table = chances.setdefault(greedy, np.full((3, 3), np.nan))
            for position, item in enumerate(order):
                chance = shown.propensities[position]
                assert chance == (1 - gamma) * (item == greedy[position]) + gamma / 3
                assert np.isnan(table[item, position]) or table[item, position] == chance
                table[item, position] = chance
    for table in chances.values():
        np.testing.assert_allclose(table.sum(axis=0), 1.0, rtol=1e-15)
        np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-15)


def test_propensities_follow_the_schedule_and_the_length_of_the_list() -> None:
    ranker = RTopKF(n_features=1, exploration=(4.0, 1.0))
    for t, gamma in ((0, 1.0), (3, 1.0), (7, 0.5), (39, 0.1)):
        ranker.state.t[0] = t
        for n in (1, 2, 7):
            shown = ranker.rank(np.arange(float(n))[:, None], rng=keyed(3))
            assert set(np.round(shown.propensities, 12)) <= {
                round(gamma / n, 12),
                round(1 - gamma + gamma / n, 12),
            }
            assert shown.propensities.max() <= 1.0


@pytest.mark.parametrize("learning_rate", ["adagrad", "camera-ready"])
def test_a_click_is_a_label_over_the_examination(learning_rate: str) -> None:
    rng = np.random.default_rng(1)
    X, chances = rng.random((6, 3)), [1.0, 0.5, 0.25]
    arguments: dict[str, Any] = {"n_features": 3, "k": 3, "learning_rate": learning_rate, "surrogate": "kl"}
    from_clicks = RTopKF(**arguments, estimator="horvitz-thompson", examination=chances)
    from_labels = RTopKF(**arguments, estimator="horvitz-thompson", max_grade=4)
    for clicks in ([1, 0, 1], [0, 1, 0], [0, 0, 0]):
        one = from_clicks.rank(X, rng=np.random.default_rng(5))
        other = from_labels.rank(X, rng=np.random.default_rng(5))
        np.testing.assert_array_equal(one.items, other.items)
        from_clicks.learn(one, clicks)
        from_labels.learn(other, np.array(clicks) / chances)
        np.testing.assert_array_equal(from_clicks.state.w, from_labels.state.w)
    assert from_clicks.state.w.any()


def test_it_takes_part_in_clicked_queries() -> None:
    queries = data.synthetic_letor(n_queries=40, n_features=4, seed=1).with_dtype("float32")
    checks.check_same_story(
        lambda: RTopKF(n_features=4, examination=1.0),
        lambda: environments.ClickedQueries(queries, clicks="navigational"),
        rounds=300,
    )


def test_it_learns_from_the_click_on_the_first_document() -> None:
    queries = data.synthetic_letor(n_queries=80, n_features=4, seed=1).with_dtype("float32")
    ranker = RTopKF(n_features=4, examination=1.0)
    users = environments.ClickedQueries(queries, clicks="informational")
    simulation.play(ranker, users, rounds=20_000, seed=1)
    assert users.greedy_values(ranker.state.w).mean() > users.greedy_values(np.zeros(4)).mean() + 0.15


@pytest.mark.parametrize("wrong", [0.0, 1.5, [1.0], [1.0, 0.0], [1.0, np.nan], "often"])
def test_an_examination_that_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="examination"):
        RTopKF(n_features=3, k=2, examination=wrong)


def test_more_than_a_click_is_refused() -> None:
    ranker = RTopKF(n_features=2, examination=0.5)
    shown = ranker.rank(np.eye(2), rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="feedback"):
        ranker.learn(shown, [2.0])


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


@pytest.mark.parametrize("feedback", [[4.5], [5.0]], ids=str)
def test_labels_above_the_highest_are_refused_and_change_nothing(feedback: Any) -> None:
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


def test_an_open_ranking_keeps_what_it_was_shown_with() -> None:
    # Labels that come late are weighed with the scores, chances, guesses and smoothing of their own round.
    for name, estimator, variate in FORMS:
        learner = Learner(name, 2, estimator, variate)
        learner.ranker = RTopKF(
            n_features=3,
            surrogate=name,
            k=2,
            learning_rate=(0.01, 0.5),
            exploration=(0.5, 0.5),
            radius=1e6,
            estimator=estimator,
            control_variate=variate,
            epsilon=(0.6, 0.5),
        )
        learner.at(np.array([0.3, -0.1, 0.2]), labels_seen=(3.0, 2.0))
        X, R = a_list(4, 3, seed=8)
        late, greedy = learner.show(X, 12)
        z = learner.z(X, late.items, greedy, R[late.items[:2]])
        X_as_it_was = X.copy()
        for key in range(3):
            learner.learn(learner.ranker.rank(*a_list(5, 3, seed=key)[:1], rng=keyed(key)), np.ones(5))
        X[:] = 99.0  # whoever asked may use the memory for the next request
        before = learner.ranker.state.w.copy()
        after = learner.learn(late, R)
        assert learner.ranker.state.t[0] == 4
        np.testing.assert_allclose(after, before - 0.01 * 4**-0.5 * z, rtol=1e-10, atol=1e-10)
        assert (X_as_it_was != X).any()


def _memo(change: Callable[[Any], Any], part: int = 0) -> Callable[[Ranking], Ranking]:
    def tampered(ticket: Ranking) -> Ranking:
        memo = [piece.copy() for piece in ticket.memo]
        memo[part] = change(memo[part])
        return dataclasses.replace(ticket, memo=tuple(memo))

    return tampered


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(_memo(lambda part: part[:-1], 1), id="fewer rows"),
        pytest.param(_memo(lambda part: part.astype(np.float32), 3), id="float32"),
        pytest.param(_memo(lambda part: part[:, :-1], 2), id="fewer features"),
    ],
)
def test_a_ticket_that_was_tampered_with_is_refused_and_changes_nothing(
    tamper: Callable[[Ranking], Ranking],
) -> None:
    ranker = RTopKF(n_features=2, k=3, estimator="horvitz-thompson")
    ticket = ranker.rank(np.eye(3)[:, :2], rng=keyed(1))
    with pytest.raises(ValueError, match=r"ranking|items|feedback"):
        ranker.learn(tamper(ticket), [1.0, 0.0, 0.0])
    assert not ranker.state.w.any()
    assert ranker.state.t[0] == 0


def _set(place: int, value: float) -> Callable[[Any], Any]:
    def change(part: Any) -> Any:
        part.flat[place] = value
        return part

    return change


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(_memo(_set(0, 50.0)), id="more items than shown"),
        pytest.param(_memo(_set(0, -1.0)), id="negative number of items"),
        pytest.param(_memo(_set(1, 0.0)), id="no exploration"),
        pytest.param(_memo(_set(0, np.nan)), id="NaN items"),
        pytest.param(_memo(_set(0, np.nan), 1), id="NaN score"),
        pytest.param(_memo(_set(0, np.inf), 3), id="infinite feature"),
    ],
)
def test_a_ticket_with_numbers_that_cannot_be_is_refused_or_does_no_harm(
    tamper: Callable[[Ranking], Ranking],
) -> None:
    # One label came back. A kernel that believes a ticket of 50 items reads on, beyond the end of the feedback.
    ranker = RTopKF(n_features=2, k=3, estimator="horvitz-thompson", exploration=0.5)
    ticket = ranker.rank(np.array([[0.5, 0.25]]), rng=keyed(1))
    try:
        ranker.learn(tamper(ticket), [1.0])
    except ValueError:
        assert ranker.state.t[0] == 0
    assert np.isfinite(ranker.state.w).all()
    assert ranker.state.labels[1] <= 1.0, "it counted more labels than came back"


@pytest.mark.parametrize(
    ("part", "given"),
    [
        ("t", [-1]),
        ("w", [np.nan, 0.0]),
        ("w", [0.0, 11.0]),  # out of the ball
        ("labels", [1.0, -1.0]),
        ("labels", [5.0, 1.0]),  # a mean above the highest grade
        ("w", [0.0]),
    ],
    ids=str,
)
def test_a_state_that_cannot_be_is_refused_and_changes_nothing(part: str, given: Any) -> None:
    # Round 0 to the power -2/3 is infinite, and so would be the step.
    ranker = RTopKF(
        n_features=2, learning_rate="camera-ready", control_variate="mean", radius=10.0, max_grade=4
    )
    ranker.learn(ranker.rank(np.eye(2), rng=keyed(1)), [3.0])
    before = ranker.save()
    with refused(ranker, "saved state"):
        ranker.load(before | {part: np.array(given, dtype=before[part].dtype)})
