"""The estimate of the whole list's value from its top: unbiased by enumeration, and covering in simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop import environments, rankers
from rankloop.base import Ranking
from rankloop.servable import Servable
from rankloop.serving.adapters.estimates import GAIN, LENGTH, OWN, VALUE, Estimates, weigh
from rankloop.serving.adapters.list_values import discounts, gains
from rankloop.serving.log.records import Decision
from tests.rankers.test_top_ftrl import at, outcomes

NOTHING = Decision(0, 0, b"", b"", 0, False)


def _values(order: NDArray[np.int64], relevance: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """DCG and Precision@k, as five lines of numpy."""
    dcg = sum((2.0**r - 1) / math.log2(place + 2) for place, r in enumerate(relevance[order]))
    return np.array([dcg, float((relevance[order[:k]] > 0).mean())])


def _front(base: NDArray[np.int64], item: int) -> NDArray[np.int64]:
    return np.array([item, *(other for other in base if other != item)], np.int64)


class _Blocks(Servable):
    """A ranker whose one block of exploration ends after L rounds: what the estimate looks at."""

    feedback = rankers.RTop1F(n_items=2).feedback
    estimate_from = "blocks"

    def __init__(self, m: int) -> None:
        self.block = 0
        self.learnable = rankers.RTop1F(n_items=m).learnable

    def exploration_block(self) -> tuple[int, ...]:
        return (self.block,)

    def explored_items(self, ranking: Ranking) -> int:
        return int(ranking.explored)


@pytest.mark.parametrize("grades", [1, 3])
def test_a_block_of_rtop1f_is_unbiased_by_enumeration(grades: int) -> None:
    """All ways to explore 2 items in 4 rounds, times all base lists, with a base law that prefers one order."""
    m, L = 2, 4
    rng = np.random.default_rng(grades)
    relevance = rng.integers(0, grades + 1, (L, m)).astype(float)
    orders = [np.array(order, np.int64) for order in itertools.permutations(range(m))]
    law = [0.8, 0.2]
    expected, truth, total = np.zeros(2), np.zeros(2), 0.0
    by_item_expected = np.zeros((2, m))
    assignments = list(itertools.permutations(range(L), m))  # the round in which each item is explored
    for rounds in assignments:
        for bases in itertools.product(range(len(orders)), repeat=L):
            chance = float(np.prod([law[base] for base in bases])) / len(assignments)
            ranker: Any = _Blocks(m)
            estimates = Estimates.of(ranker, n_items=m, fresh=True)
            for t in range(L):
                shown, explored = orders[bases[t]], t in rounds
                if explored:
                    shown = _front(shown, rounds.index(t))
                truth += chance * _values(shown, relevance[t], estimates.k)
                before = ranker.exploration_block()
                ranker.block = int(t == L - 1)
                ticket = Ranking(shown, None, (), explored)
                estimates.add(ranker, ticket, relevance[t, shown[:1]], NOTHING, before)
            assert estimates.units == 1
            expected += chance * estimates.sums[VALUE]
            by_item_expected += chance * estimates.by_item.sum(axis=0)[:, 0]
            total += chance
    assert total == pytest.approx(1.0)
    np.testing.assert_allclose(expected, truth, rtol=1e-12)
    # ... and so are the summed gains of each item, and with them the value of any fixed order.
    np.testing.assert_allclose(by_item_expected, gains(relevance).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("tied", [False, True])
def test_a_list_of_rtopkf_is_unbiased_by_enumeration(k: int, tied: bool) -> None:
    n, gamma = 4, 0.3
    features = np.eye(n)
    w = np.array([0.5, 0.1, 0.5, 0.2]) if tied else np.array([0.4, 0.1, 0.3, 0.2])
    relevance = np.array([1.0, 0.0, 3.0, 2.0])
    ranker = rankers.RTopKF(n_features=n, k=k, exploration=gamma)
    ranker.state.w[:] = w
    greedy = [
        np.array(order, np.int64)
        for order in itertools.permutations(range(n))
        if all(w[a] >= w[b] for a, b in itertools.pairwise(order))
    ]
    assert len(greedy) == (2 if tied else 1)
    expected, truth = np.zeros(2), np.zeros(2)
    law = [((1 - gamma) / len(greedy), order) for order in greedy]
    law += [
        (gamma / math.factorial(n), np.array(order, np.int64)) for order in itertools.permutations(range(n))
    ]
    for chance, shown in law:
        weights = weigh(ranker, features, Ranking(shown, None, (np.array([n, gamma, 1.0]),)), k=2)
        assert weights is not None
        decision = Decision(0, 0, b"", b"", 0, False, weights=weights.tobytes())
        estimates = Estimates.of(ranker, n_items=0, fresh=True)
        estimates.add(ranker, Ranking(shown), relevance[shown[:k]], decision, ())
        expected += chance * estimates.sums[VALUE]
        truth += chance * _values(shown, relevance, 2)
    np.testing.assert_allclose(expected, truth, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("known", [0.0, 30.0])
def test_a_list_of_top_ftrl_is_unbiased_by_enumeration(k: int, known: float) -> None:
    """Whatever the estimate holds an item for so far, and with lists that a change of items made too short."""
    m, relevance = 4, np.array([1.0, 0.0, 1.0, 1.0])
    ranker = at([3.0, 9.0, 1.0, 8.5], beta=20.0, k=k)
    expected, gain, value = np.zeros(2), np.zeros(m), np.zeros(2)
    for chance, items, place in outcomes(ranker):
        shown = Ranking(np.array(items), None, (np.ones(k),), place >= 0)
        weights = weigh(ranker, None, shown, k=2)
        assert weights is not None
        decision = Decision(0, 0, b"", b"", 0, False, weights=weights.tobytes())
        estimates = Estimates.of(ranker, n_items=m, fresh=True)
        estimates.k = 2
        estimates.block[:] = [[0.0, 10.0, 20.0, 30.0], [5.0, 5.0, 5.0, 5.0], [known] * 4]
        estimates.add(ranker, shown, relevance[shown.items[:k]], decision, ())
        expected += chance * estimates.sums[VALUE]
        gain += chance * estimates.by_item[:, 0, GAIN].sum(axis=0)
        value += chance * _values(shown.items, relevance, 2)
        estimates.add(ranker, Ranking(shown.items[:3]), relevance[:k], decision, ())
        assert estimates.units == 1
    np.testing.assert_allclose(expected, value, rtol=1e-9)
    np.testing.assert_allclose(gain, relevance, atol=1e-9)


def test_the_gain_over_a_random_order_is_surer_than_the_value() -> None:
    """TopFTRL on the users of the paper: 95% intervals for the gain hold the truth, in 20 runs of 400 lists."""
    m, rounds = 6, 400
    chances = np.linspace(0.9, 0.1, m)
    discount = discounts(m, 5)[0]
    covered = 0
    for seed in range(20):
        ranker = rankers.TopFTRL(n_items=m)
        estimates = Estimates.of(ranker, n_items=m, fresh=True)
        rng, truth = np.random.default_rng(seed), 0.0
        for _ in range(rounds):
            shown = ranker.rank(rng=rng)
            weights = weigh(ranker, None, shown, k=5)
            assert weights is not None
            decision = Decision(0, 0, b"", b"", 0, False, weights=weights.tobytes())
            answer = (rng.random(1) < chances[shown.items[0]]).astype(float)
            truth += float((discount - discount.mean()) @ chances[shown.items]) / rounds
            ranker.learn(shown, answer)
            estimates.add(ranker, shown, answer, decision, ())
        gain, value, random = estimates.over_random(0), estimates.value(0), estimates.fixed(0, None)
        assert gain is not None
        assert value is not None
        assert random is not None
        assert gain.mean == pytest.approx(value.mean - random.mean)
        assert gain.high - gain.low < 0.8 * (value.high - value.low)
        covered += gain.low <= truth <= gain.high
    assert covered >= 16


def test_who_is_told_everything_needs_no_estimate() -> None:
    ranker = rankers.FTPL(n_items=3)
    estimates = Estimates.of(ranker, n_items=3, fresh=True)
    rng = np.random.default_rng(1)
    truth, sums = np.zeros(2), np.zeros(3)
    for _ in range(50):
        shown = ranker.rank(rng=rng)
        relevance = rng.integers(0, 2, 3).astype(float)
        truth += _values(shown.items, relevance, 3)
        sums += relevance
        ranker.learn(shown, relevance[shown.items])
        estimates.add(ranker, shown, relevance[shown.items], NOTHING, ())
    np.testing.assert_allclose(estimates.sums[VALUE], truth)
    np.testing.assert_allclose(estimates.by_item.sum(axis=0)[0, 0], sums)


@pytest.mark.parametrize("delay", [0, 20])
def test_intervals_cover_the_truth_in_simulation(delay: int) -> None:
    """RTop1F on simulated users: 95% intervals for mean DCG, Precision@5 and regret, over 40 runs."""
    runs, rounds, m = 30, 1_500, 8
    discount = discounts(m, 5)
    covered = np.zeros(4)
    told = 0
    for seed in range(runs):
        ranker = rankers.RTop1F(n_items=m, measure="dcg")
        people = environments.FixedItems(environments.users.noisy_halves(n_items=m), measure="dcg")
        estimates, truth, sums = Estimates.of(ranker, n_items=m, fresh=True), np.zeros(2), np.zeros(m)
        rng, users = np.random.default_rng(seed), np.random.default_rng(1_000 + seed)
        waiting = []
        block_truth, block_sums = np.zeros(2), np.zeros(m)
        for _ in range(rounds):
            people.arrive(rng=users)
            shown = ranker.rank(rng=rng)
            by_place = people.respond(shown, rng=users)
            relevance = np.empty(m)
            relevance[shown.items] = by_place
            waiting.append((shown, by_place, relevance))
            if len(waiting) <= delay:
                continue
            shown, by_place, relevance = waiting.pop(0)
            before, units = ranker.exploration_block(), estimates.units
            ranker.learn(shown, by_place[:1])
            estimates.add(ranker, shown, by_place[:1], NOTHING, before)
            block_truth += discount @ by_place  # relevance is 0 or 1, so it is its own gain
            block_sums += relevance
            if estimates.units > units:  # what the closed blocks are about
                truth += block_truth
                sums += block_sums
                block_truth, block_sums = np.zeros(2), np.zeros(m)
        length = estimates.sums[LENGTH, 0]
        for which in (0, 1):
            interval = estimates.value(which)
            assert interval is not None
            covered[which] += interval.low <= truth[which] / length <= interval.high
            best = np.sort(sums)[::-1] @ discount[which]
            regret = estimates.regret(which)
            assert regret is not None
            covered[2 + which] += regret.low <= (best - truth[which]) / length <= regret.high
            told += regret.high - regret.low < 1.0
    assert (covered / runs >= 0.9).all(), covered / runs
    assert told == 2 * runs  # the intervals say something


def test_baselines_are_what_arithmetic_says() -> None:
    ranker = rankers.FTPL(n_items=3)
    estimates = Estimates.of(ranker, n_items=3, fresh=True)
    for _ in range(40):
        estimates.add(ranker, Ranking(np.array([2, 0, 1])), np.array([1.0, 0.0, 0.0]), NOTHING, ())
    told = estimates.report()
    assert told["value"]["dcg"].mean == pytest.approx(1.0)
    assert told["frozen"]["dcg"].mean == pytest.approx(0.5)  # item 2 is third in the order of the beginning
    assert told["random"]["dcg"].mean == pytest.approx(discounts(3, 3)[0].mean())
    assert estimates.points()["dcg.frozen"] == pytest.approx(0.5)


def test_regret_is_measured_from_the_best_order() -> None:
    """A ranker that shows the worst order of what is known has just the regret that arithmetic says."""
    ranker = rankers.FTPL(n_items=3)
    estimates = Estimates.of(ranker, n_items=3, fresh=True)
    relevance = np.array([0.0, 0.0, 1.0])
    for _ in range(40):
        estimates.add(ranker, Ranking(np.array([0, 1, 2])), relevance, NOTHING, ())
    regret = estimates.regret(0)
    assert regret is not None
    assert regret.mean == pytest.approx(1 - 0.5)
    assert regret.high - regret.low < 1e-6
    assert estimates.by_item[:, 0, OWN].sum() == pytest.approx(40 * 0.5)


def test_estimates_survive_a_snapshot() -> None:
    ranker = rankers.RTop1F(n_items=3)
    estimates = Estimates.of(ranker, n_items=3, fresh=True)
    rng = np.random.default_rng(1)
    for _ in range(500):
        shown = ranker.rank(rng=rng)
        before = ranker.exploration_block()
        ranker.learn(shown, [1.0])
        estimates.add(ranker, shown, np.ones(1), NOTHING, before)
    again = Estimates.restore(estimates.save())
    assert again.report() == estimates.report()
    assert estimates.value(0).mean == pytest.approx(discounts(3, 3)[0].sum())
