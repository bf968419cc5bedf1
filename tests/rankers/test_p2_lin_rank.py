"""P2LinRank: lists follow what all models agree on, and each model learns with noise of its own."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from rankloop import simulation
from rankloop.base import Floats
from rankloop.data import synthetic_letor
from rankloop.environments import ClickedQueries
from rankloop.kernels.random import uniform
from rankloop.rankers import P2LinRank
from rankloop.rankers.linear_bandits import normal
from rankloop.rankers.pdgd import FIRST, RATE

# Two models of four documents that are their own features. Both have 0 above 2 and 3, and 1 above 3.
MODELS = np.array([[4.0, 3.0, 2.0, 1.0], [3.0, 2.0, 2.5, 1.0]])


def with_models(models: Floats, **arguments: Any) -> P2LinRank:
    ranker = P2LinRank(n_features=models.shape[1], n_models=len(models), **arguments)
    ranker.state.models[:] = models
    ranker.state.w[:] = models.mean(axis=0)
    return ranker


def chance(models: Floats, order: Any) -> float:
    """Of a list: at each position one of those that no document left is above in every model."""
    left, product = list(order), 1.0
    for item in order:
        free = [i for i in left if not any((models[:, j] > models[:, i]).all() for j in left)]
        product *= (item in free) / max(len(free), 1)
        left.remove(item)
    return product


@pytest.mark.parametrize("models", [MODELS, np.zeros((2, 4)), MODELS[:, ::-1] * [[1], [-1]]])
def test_lists_are_drawn_among_the_documents_that_none_is_above(models: Floats) -> None:
    ranker, rng, n = with_models(models), np.random.default_rng(1), 3_000
    seen = Counter(tuple(ranker.rank(np.eye(4), rng=rng).items.tolist()) for _ in range(n))
    expected = {order: n * chance(models, order) for order in permutations(range(4))}
    assert sum(expected.values()) == pytest.approx(n)
    assert set(seen) <= {order for order, times in expected.items() if times > 0}
    possible = [order for order, times in expected.items() if times > 0]
    if len(possible) > 1:
        found = stats.chisquare([seen[order] for order in possible], [expected[order] for order in possible])
        assert found.pvalue > 1e-3


def test_models_that_agree_leave_nothing_to_draw() -> None:
    ranker = with_models(MODELS[[0, 0]])
    for seed in range(20):
        shown = ranker.rank(np.eye(4), rng=np.random.default_rng(seed))
        assert shown.items.tolist() == [0, 1, 2, 3]
        assert not shown.explored
    assert any(with_models(MODELS).rank(np.eye(4), rng=np.random.default_rng(s)).explored for s in range(3))


def test_those_that_are_not_shown_follow_by_the_mean_score() -> None:
    ranker = with_models(np.array([[1.0, 2.0, 3.0, 9.0, 5.0]] * 2), n_positions=1)
    assert ranker.rank(np.eye(5), rng=np.random.default_rng(1)).items.tolist() == [3, 4, 2, 1, 0]


def slow_step(ranker: P2LinRank, shown: Any, X: Floats, clicks: Any) -> Floats:
    """The models after one list, in plain NumPy."""
    m, models = len(clicks), np.array(ranker.state.models)
    rows = X[shown.items[:m]]
    scale = np.maximum(ranker.state.scale, np.ptp(rows, axis=0))
    last = max(j for j in range(m) if clicks[j])
    number, key = m, shown.memo[0][0]
    for model in models:
        gradient = np.zeros(X.shape[1])
        scores = rows @ model
        for i in range(last + 1):
            for j in range(min(last + 2, m)):
                if clicks[i] and not clicks[j]:
                    size = 1 - expit(scores[i] - scores[j]) + ranker.params.noise * normal(key, number)
                    gradient += size * (rows[i] - rows[j])
                    number += 2
        model += RATE * gradient / np.sqrt(gradient**2 + FIRST * scale**2) / scale
    return models


def test_one_step_is_that_of_every_preference_with_noise() -> None:
    rng = np.random.default_rng(1)
    for seed in range(20):
        ranker, X = P2LinRank(n_features=3, n_positions=5, noise=0.7), rng.normal(size=(6, 3))
        shown = ranker.rank(X, rng=np.random.default_rng(seed))
        clicks = (rng.random(5) < 0.4).astype(float)
        if 0 < clicks.sum() < 5:
            expected = slow_step(ranker, shown, X, clicks)
            ranker.learn(shown, clicks)
            np.testing.assert_allclose(ranker.state.models, expected, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(ranker.state.w, expected.mean(axis=0), rtol=1e-9, atol=1e-12)
            assert len(np.unique(ranker.state.models[:, 0])) > 1


def test_the_noise_is_not_that_of_the_draws() -> None:
    # Numbers 0 to m - 1 of the key drew the list; a perturbation made of them would depend on what was shown.
    key = np.uint64(7)
    used = {uniform(key, i) for i in range(5)}
    assert not used & {uniform(key, i) for i in range(5, 100)}


@pytest.mark.parametrize("clicks", [[0, 0, 0], [1, 1, 1]])
def test_without_a_preference_nothing_is_learnt(clicks: list[int]) -> None:
    ranker = P2LinRank(n_features=3)
    before = ranker.state.models.copy()
    ranker.learn(ranker.rank(np.eye(3), rng=np.random.default_rng(1)), clicks)
    np.testing.assert_array_equal(ranker.state.models, before)
    assert ranker.state.t[0] == 1


def test_without_noise_all_models_are_one() -> None:
    ranker, rng = P2LinRank(n_features=4, noise=0.0), np.random.default_rng(1)
    for _ in range(30):
        ranker.learn(ranker.rank(rng.random((5, 4)), rng=rng), (rng.random(5) < 0.5).astype(float))
    assert np.ptp(ranker.state.models, axis=0).max() == 0.0
    assert np.abs(ranker.state.w).max() > 0.0


def test_units_of_features_have_no_influence() -> None:
    units, learnt = np.array([1024.0, 1.0, 0.125]), []
    for scale in (np.ones(3), units):  # powers of two: nothing is rounded otherwise
        ranker, rng = P2LinRank(n_features=3), np.random.default_rng(2)
        lists = []
        for _ in range(50):
            X = rng.normal(size=(6, 3))
            shown = ranker.rank(X * scale, rng=rng)
            lists.append(shown.items.tolist())
            ranker.learn(shown, (X[shown.items, 0] > 0.5).astype(float))
        learnt.append((lists, ranker.state.w * scale))
    assert learnt[0][0] == learnt[1][0]
    np.testing.assert_allclose(learnt[0][1], learnt[1][1], rtol=1e-12)


def test_it_learns_from_clicks_and_explores_less_and_less() -> None:
    train, test = synthetic_letor(n_queries=200, n_features=8, seed=1).split(train=0.8)
    ranker, users = P2LinRank(n_features=8), ClickedQueries(train, clicks="navigational")
    first = simulation.play(ranker, users, rounds=300, seed=1, points=1)
    simulation.play(ranker, users, rounds=4_000, seed=2, points=1)
    last = simulation.play(ranker, users, rounds=300, seed=3, points=1)
    assert last.exploration_share < first.exploration_share
    unseen = ClickedQueries(test)
    random = unseen.greedy_values(np.zeros(8)).mean()
    assert unseen.greedy_values(ranker.state.w).mean() > random + 0.15


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"n_features": 0}, "n_features"),
        ({"n_features": 2, "n_models": 0}, "n_models"),
        ({"n_features": 2, "noise": -0.1}, "noise"),
        ({"n_features": 2, "noise": np.nan}, "noise"),
        ({"n_features": 2, "warm_start": [1.0]}, "warm_start"),
    ],
)
def test_arguments_that_make_no_sense_are_named(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        P2LinRank(**arguments)


def test_a_ticket_of_another_length_is_refused_and_changes_nothing() -> None:
    ranker = P2LinRank(n_features=3)
    shown = ranker.rank(np.eye(3), rng=np.random.default_rng(1))
    shown.memo[0][1] = 2
    with pytest.raises(ValueError, match=r"ranking\.memo must be of 3 items"):
        ranker.learn(shown, [1, 0, 0])
    assert ranker.state.t[0] == 0
