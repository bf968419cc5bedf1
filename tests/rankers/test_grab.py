"""GRAB: the leader, its neighbours, its turns, and worlds whose positions are in no order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rankloop import rankers
from rankloop.base import Ranking
from rankloop.kernels.click_counts import upper_bound
from rankloop.rankers import grab
from tests.rankers.odd_positions import regret_where_the_middle_is_seen_first


def filled(seed: int) -> rankers.GRAB:
    ranker, rng = rankers.GRAB(n_items=5, n_positions=3), np.random.default_rng(seed)
    ranker.state.N[...] = rng.integers(5, 60, (3, 5))
    ranker.state.S[...] = rng.binomial(ranker.state.N.astype(int), rng.random((3, 5)))
    return ranker


def neighbours(leader: np.ndarray, means: np.ndarray, n: int) -> list[np.ndarray]:
    """The paper's neighbourhood, written out."""
    order = np.argsort(-means[np.arange(len(leader)), leader], kind="stable")
    found = []
    for one, other in pairwise(order):
        swapped = leader.copy()
        swapped[[one, other]] = swapped[[other, one]]
        found.append(swapped)
    for item in sorted(set(range(n)) - set(leader.tolist())):
        replaced = leader.copy()
        replaced[order[-1]] = item
        found.append(replaced)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_the_neighbour_with_the_largest_bounds_is_shown(seed: int) -> None:
    ranker = filled(seed)
    S, N = ranker.state.S, ranker.state.N
    leader, level = ranker.current(), 3.0
    around = [leader, *neighbours(leader, S / N, 5)]
    assert len(around) == 5  # K - 1 neighbours and itself

    def bound(items: np.ndarray) -> float:
        return sum(upper_bound(S[j, i] / N[j, i], N[j, i], level) for j, i in enumerate(items))

    items = leader.copy()
    changed = grab.to_best_neighbour(ranker.state, level, np.empty(3, np.int64), items)
    best = max(around, key=bound)
    assert items.tolist() == best.tolist()
    assert changed == (best.tolist() != leader.tolist())


def test_every_gamma_times_the_leader_is_shown() -> None:
    ranker = rankers.GRAB(n_items=4, n_positions=2, gamma=3)
    ranker.state.N[...] = 10
    ranker.state.S[...] = [[9, 5, 5, 5], [5, 9, 5, 5]]
    leader, explored = [0, 1], []
    for _ in range(7):
        shown = ranker.rank(rng=np.random.default_rng(1))
        assert shown.memo[0].tolist() == leader
        explored.append(shown.explored)
        ranker.learn(Ranking(np.array(leader), None, shown.memo), [1, 1])  # as if the leader had been shown
    assert explored[::3] == [False, False, False]
    assert ranker.state.led.max() == 7


def test_the_table_keeps_leaders_apart_and_forgets_the_least() -> None:
    ranker = rankers.GRAB(n_items=4, n_positions=2)
    keys = {int(grab.leader_key(np.array([i, j]))) for i in range(4) for j in range(4)}
    assert len(keys) == 16
    assert 0 not in keys
    size = len(ranker.state.leaders)
    key = 7
    slots = [(key + probe) % size for probe in range(8)]
    ranker.state.leaders[slots] = np.arange(100, 108, dtype=np.uint64)
    ranker.state.led[slots] = [5, 4, 9, 2, 8, 7, 6, 3]
    assert grab.find(ranker.state, np.uint64(key)) == slots[3]


def test_positions_may_be_in_any_order() -> None:
    assert regret_where_the_middle_is_seen_first(rankers.GRAB(n_items=5, n_positions=3)) < 600


def test_bad_tickets_and_states_are_named() -> None:
    ranker = rankers.GRAB(n_items=3, n_positions=2)
    with pytest.raises(ValueError, match="must name items below 3"):
        ranker.learn(Ranking(np.array([0, 1]), None, (np.array([0, 5]),)), [0, 1])
    with pytest.raises(ValueError, match="'led' must not be negative"):
        ranker.load(ranker.save() | {"led": ranker.state.led - 1})
    with pytest.raises(ValueError, match="gamma must be"):
        rankers.GRAB(n_items=3, gamma=0)
