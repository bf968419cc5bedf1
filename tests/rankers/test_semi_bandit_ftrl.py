"""SemiBanditFTRL: its leader, its lists, its estimates, and its rate."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from rankloop import environments, rankers, simulation
from rankloop.base import Ranking
from rankloop.rankers import semi_bandit_ftrl as kernels


def led(losses: list[float], *, measure: str = "dcg@2", t: int = 20, **arguments: Any) -> Any:
    """A ranker with these losses, and the leader that follows from them."""
    ranker = rankers.SemiBanditFTRL(n_items=len(losses), measure=measure, **arguments)
    ranker.state.L_hat[:] = losses
    ranker.state.t[0] = t
    kernels.lead(ranker.params, ranker.state, ranker.scratch(len(losses)))
    return ranker


@pytest.mark.parametrize("measure", ["dcg@1", "dcg@2", "dcg", "sum_loss"])
def test_no_exchange_improves_the_leader(measure: str) -> None:
    # x minimises a convex function over lists: moving weight round a cycle of two items and two positions, or from a
    # shown item to one whose chance of being shown is below 1, must not pay.
    ranker = led([0.0, 2.0, 7.0, 9.0, 30.0], measure=measure)
    x, w = ranker.state.x, ranker.params.worth
    slope = w[:, None] * ranker.state.L_hat - np.sqrt(ranker.params.squared * 20) / np.sqrt(x)
    n, m = x.shape
    np.testing.assert_allclose(x.sum(axis=1), 1)
    np.testing.assert_allclose(x.sum(axis=0), ranker.state.rows)
    assert x.min() > 0
    assert x.sum(axis=0).max() <= 1 + 1e-9
    for i, j in product(range(m), repeat=2):
        for p, q in product(range(n), repeat=2):
            swapped = slope[p, i] + slope[q, j] - slope[p, j] - slope[q, i]
            assert abs(swapped) < 1e-6
        if ranker.state.rows[i] < 1 - 1e-6:
            assert slope[0, i] - slope[0, j] > -1e-6


def test_lists_have_the_chances_that_they_say() -> None:
    ranker = led([0.0, 1.0, 3.0, 8.0, 30.0])
    rng, draws = np.random.default_rng(1), 20_000
    at = np.zeros((5, 5))
    for _ in range(draws):
        shown = ranker.rank(rng=rng)
        at[shown.items, np.arange(5)] += 1
    rows = ranker.state.rows
    wanted = np.column_stack([*ranker.state.x, *[(1 - rows) / 3] * 3])
    error = np.sqrt(wanted * (1 - wanted) / draws)
    assert (np.abs(at / draws - wanted) < 5 * error + 1e-12).all()
    np.testing.assert_allclose(shown.propensities, wanted[shown.items, np.arange(5)], rtol=1e-9)
    np.testing.assert_allclose(shown.memo[0], rows[shown.items[:2]], rtol=1e-12)


def test_one_step_of_learning() -> None:
    ranker = led([0.0, 1.0, 3.0, 8.0], max_grade=2)
    shown = ranker.rank(rng=np.random.default_rng(3))
    before, chances = ranker.state.L_hat.copy(), ranker.state.rows.copy()
    ranker.learn(shown, [1.0, 2.0])
    moved = ranker.state.L_hat - before
    first, second = shown.items[:2]
    assert moved[first] == pytest.approx((1 - 1 / 3) / chances[first])
    assert moved[second] == 0  # 2^2 - 1 is the largest gain
    assert np.count_nonzero(moved) == 1
    assert ranker.state.t[0] == 21


def test_estimates_are_unbiased() -> None:
    # An item is observed with chance rows_i, which is the sum of exact marginals: its mean estimate is its loss.
    ranker = led([0.0, 3.0, 5.0, 9.0])
    saved, relevance = ranker.save(), np.array([1.0, 0.0, 0.0, 1.0])
    mean = np.zeros(4)
    for p, i in product(range(2), range(4)):
        shown = ranker.rank(rng=np.random.default_rng(1))
        others = [j for j in range(4) if j != i]
        items = np.array([i, *others] if p == 0 else [others[0], i, *others[1:]])
        ticket = Ranking(items, shown.propensities, (ranker.state.rows[items[:2]].clip(max=1.0),))
        ranker.learn(ticket, relevance[items[:2]])
        mean[i] += saved["x"][p, i] * (ranker.state.L_hat[i] - saved["L_hat"][i])
        ranker.load(saved)
    np.testing.assert_allclose(mean, 1 - relevance, rtol=1e-9)


@pytest.mark.parametrize(
    ("measure", "labels"),
    [("dcg@3", 3), ("dcg", 5), ("sum_loss", 5), ("pairwise_loss", 5), ("precision@2", 2)],
)
def test_it_asks_for_the_labels_of_the_positions_that_count(measure: str, labels: int) -> None:
    assert rankers.SemiBanditFTRL(n_items=6, measure=measure).feedback.length(6) == labels


def worst(make: Any, rounds: int, measure: str, m: int) -> float:
    """The largest mean regret over worlds with gaps from 0.4 down."""
    regrets = []
    for gap in (0.4, 0.2, 0.1, 0.05, 0.025):
        chances = 0.5 + gap * (np.arange(m)[::-1] - (m - 1) / 2) / (m - 1)
        people = environments.FixedItems(environments.users.bernoulli(chances), measure=measure)
        runs = [simulation.play(make(), people, rounds=rounds, seed=seed, points=1) for seed in range(6)]
        regrets.append(np.mean([run.total_regret for run in runs]))
    return float(max(regrets))


@pytest.mark.parametrize(("measure", "m"), [("dcg@3", 10), ("dcg", 4)])
def test_regret_grows_as_the_square_root(measure: str, m: int) -> None:
    def make() -> Any:
        return rankers.SemiBanditFTRL(n_items=m, measure=measure)

    few, many = (worst(make, rounds, measure, m) for rounds in (1_000, 32_000))
    assert np.log(many / few) / np.log(32) <= 0.55
    assert many < make().regret_bound(32_000)


def test_regret_stays_below_the_bound_against_users_that_change_their_minds() -> None:
    phases = [np.roll([0.9, 0.7, 0.5, 0.1, 0.1, 0.1], shift) for shift in (0, 3)]
    people = environments.FixedItems(environments.users.switching(phases, period=2_000), measure="dcg@3")
    ranker = rankers.SemiBanditFTRL(n_items=6, measure="dcg@3")
    trace = simulation.play(ranker, people, rounds=20_000, seed=2, points=1)
    assert trace.total_regret < ranker.regret_bound(20_000)
    assert ranker.counters() == {"solver_fallbacks": 0, "solver_inexact": 0}


def test_odd_arguments_tickets_and_states_are_refused() -> None:
    with pytest.raises(
        ValueError, match="measure 'ndcg@2' cannot be learnt from the relevance of single items"
    ):
        rankers.SemiBanditFTRL(n_items=4, measure="ndcg@2")
    ranker = rankers.SemiBanditFTRL(n_items=4, measure="dcg@2")
    shown = ranker.rank(rng=np.random.default_rng(1))
    for chance in (0.0, -1.0, 1.5, np.nan):
        ticket = Ranking(shown.items, shown.propensities, (np.array([chance, 0.5]),))
        with pytest.raises(ValueError, match="chances in"):
            ranker.learn(ticket, [1.0, 0.0])
    saved = ranker.save()
    with pytest.raises(ValueError, match="chances of items at positions"):
        ranker.load(saved | {"x": np.full((2, 4), 0.5)})
    with pytest.raises(ValueError, match="must not be negative"):
        ranker.load(saved | {"L_hat": np.array([-1.0, 0.0, 0.0, 0.0])})
    with pytest.raises(ValueError, match="positive sums"):
        ranker.load(saved | {"v": np.array([-1.0, 1.0])})
