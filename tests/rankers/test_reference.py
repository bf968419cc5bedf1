"""The rankers that never learn: Uniform, Fixed, BestInHindsight."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from rankloop import environments, measures, rankers, simulation


def test_uniform_shows_every_order_equally_often() -> None:
    ranker = rankers.Uniform(n_items=4)
    rng = np.random.default_rng(1)
    shown = [ranker.rank(rng=rng) for _ in range(9_000)]
    counts = Counter(tuple(ranking.items.tolist()) for ranking in shown)
    assert stats.chisquare([counts[order] for order in permutations(range(4))]).pvalue > 1e-4
    # The propensity of an item at a position is how often it stands there.
    at = np.zeros((4, 4))
    for ranking in shown:
        at[np.arange(4), ranking.items] += 1 / len(shown)
    assert np.abs(at - 1 / 4).max() < 4.5 * np.sqrt(3 / 16 / len(shown))


@pytest.mark.parametrize("m", [1, 2, 3, 7, 1000])
def test_uniform_tells_its_propensities_exactly(m: int) -> None:
    shown = rankers.Uniform(n_items=m).rank(rng=np.random.default_rng(2))
    assert shown.propensities is not None
    np.testing.assert_array_equal(shown.propensities, np.full(m, 1 / m))
    assert shown.explored


def test_uniform_shows_every_list_of_some_items_equally_often() -> None:
    ranker = rankers.Uniform(n_items=5, n_positions=2)
    rng = np.random.default_rng(4)
    shown = [ranker.rank(rng=rng) for _ in range(9_000)]
    counts = Counter(tuple(ranking.items.tolist()) for ranking in shown)
    assert stats.chisquare([counts[items] for items in permutations(range(5), 2)]).pvalue > 1e-4
    assert shown[0].propensities is not None
    np.testing.assert_array_equal(shown[0].propensities, [0.2, 0.2])


@pytest.mark.parametrize("n_positions", [0, 4, 1.5, None])
def test_a_list_of_some_items_must_fit(n_positions: Any) -> None:
    if n_positions is None:
        assert rankers.Uniform(n_items=3, n_positions=None).n_positions == 3
        return
    with pytest.raises(ValueError, match="n_positions"):
        rankers.Uniform(n_items=3, n_positions=n_positions)


def test_fixed_may_show_some_of_the_items() -> None:
    ranker = rankers.Fixed(order=[4, 1], n_items=5)
    assert (ranker.n_items, ranker.n_positions) == (5, 2)
    with pytest.raises(ValueError, match="order must list every item once"):
        rankers.Fixed(order=[5, 1], n_items=5)
    with pytest.raises(ValueError, match="n_items"):
        rankers.Fixed(order=[1, 0, 2], n_items=2)


@given(st.permutations(range(6)), st.sampled_from([np.int8, np.int32, np.int64, np.uint8]))
def test_fixed_always_shows_its_order(order: list[int], dtype: Any) -> None:
    given_order = np.array(order, dtype=dtype)
    ranker = rankers.Fixed(order=given_order)
    given_order[:] = 0  # the ranker has its own
    rng = np.random.default_rng(3)
    for _ in range(3):
        shown = ranker.rank(rng=rng)
        assert shown.items.tolist() == order
        assert shown.items.dtype == np.int64
        assert not shown.explored
        assert shown.propensities is None
        shown.items[:] = 0  # a ticket in other hands does not reach back
        ranker.learn(rankers.Fixed(order=order).rank(rng=rng), [])
    assert ranker.state.t[0] == 3


@pytest.mark.parametrize(
    "order",
    [
        [],
        [[0, 1]],
        [0, 2],
        [1, 2],
        [0, 0],
        [-1, 0],
        [0.0, 1.0],
        [True, False],
        ["a", "b"],
        None,
        3,
        [[0], [0, 1]],
    ],
    ids=repr,
)
def test_an_order_that_is_none_is_refused(order: Any) -> None:
    with pytest.raises(ValueError, match="order"):
        rankers.Fixed(order=order)


@pytest.mark.parametrize("n_items", [0, -1, 1.5, "x"])
def test_a_number_of_items_that_is_none_is_refused(n_items: Any) -> None:
    with pytest.raises(ValueError, match="n_items"):
        rankers.Uniform(n_items=n_items)


MEASURES = ["sum_loss", "pairwise_loss", "dcg", "dcg@2", "precision@2", "ndcg", "ndcg@3", "auc"]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", [1, 2])
def test_best_in_hindsight_has_no_regret_on_its_own_users(measure: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    users = rng.binomial(1, rng.random(7), (300, 7))
    ranker = rankers.BestInHindsight(relevance=users, measure=measure)
    people = environments.FixedItems(users, measure=measure)
    trace = simulation.play(ranker, people, rounds=300, seed=1)
    assert abs(trace.total_regret) < 1e-9
    assert (trace.regret > -1e-9).all()


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 10), st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("measure", ["sum_loss", "dcg", "ndcg", "precision@2"])
def test_best_in_hindsight_is_the_best_of_all_orders_for_grades(
    measure: str, m: int, rounds: int, seed: int
) -> None:
    assume(m >= 2 or measure != "precision@2")
    users = np.random.default_rng(seed).integers(0, 4, (rounds, m))
    scored = measures.get(measure)
    order = rankers.BestInHindsight(relevance=users, measure=measure).rank(rng=np.random.default_rng(1)).items
    totals = np.array([np.sum(scored(np.array(other), users)) for other in permutations(range(m))])
    best = totals.min() if scored.is_loss else totals.max()
    np.testing.assert_allclose(np.sum(scored(order, users)), best, rtol=1e-12)


@pytest.mark.parametrize(
    ("relevance", "measure", "named"),
    [
        ([1, 0], "dcg", "relevance"),
        ([[]], "dcg", "relevance"),
        ([], "dcg", "relevance"),
        ([[1, np.nan]], "dcg", "relevance"),
        ([[1, -1]], "dcg", "relevance"),
        ([[1, 2]], "auc", "relevance"),
        ([[1, 2]], "pairwise_loss", "relevance"),
        ([[1], [1, 2]], "dcg", "relevance"),
        ([["a", "b"]], "dcg", "relevance"),
        (None, "dcg", "relevance"),
        ([[1, 0]], "average_precision", "average_precision"),
        ([[1, 0]], "err", "err"),
        ([[1, 0]], "best", "best"),
        ([[1, 0]], "precision", "precision"),
    ],
)
def test_best_in_hindsight_refuses_what_it_cannot_sort(relevance: Any, measure: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        rankers.BestInHindsight(relevance=relevance, measure=measure)
