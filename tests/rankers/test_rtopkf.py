"""RTop-kF: every step is the reference's, and the chances of what is shown are exact."""

from __future__ import annotations

import itertools
from collections import Counter
from math import factorial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rankloop.rankers import RTopKF
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
