"""GRAB: clicks by positions whose order is unknown (Gauthier, Gaudel, Fromont and Lompo 2021).

Arrays are position-major: S[j, i] are the clicks on item i at position j, N[j, i] how often it stood there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.kernels import lists
from rankloop.kernels.click_counts import count, draw_unseen, log_level, upper_bound
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import assign, best_list, in_order
from rankloop.kernels.random import word
from rankloop.ranges import Range, Whole
from rankloop.rankers.click_ranker import ClickRanker, check_counts

_PROBES = 8


class GRABParams(NamedTuple):
    """Every how many times that it leads a leader is shown whatever its neighbours look like."""

    gamma: int


class GRABState(NamedTuple):
    """Clicks and displays; and how often each leader has led, in a table of limited size."""

    t: Ints  # rounds with feedback
    S: Floats  # by position and item: clicks
    N: Floats  # by position and item: displays
    leaders: NDArray[np.uint64]  # keys of lists, 0 where there is none
    led: Ints  # how often each of them has led


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1. Exploring: not the leader. The ticket keeps the leader, -1 in the beginning, which has none."""
    m, n = state.S.shape
    leader = memo[0]
    first, _ = draw_unseen(state.N, key)
    if first >= 0:
        for j in range(m):
            items[j] = (first + j) % n
            leader[j] = -1
        return True
    find_leader(state, scratch, leader)
    for j in range(m):
        items[j] = leader[j]
    times = state.led[find(state, leader_key(leader))] if led_before(state, leader) else 0
    if times % params.gamma == 0:
        return False
    return to_best_neighbour(state, log_level(float(times)), scratch[2], items)


@hot
def find_leader(state: Any, scratch: Any, leader: Any) -> None:
    """The list with most clicks by the means so far; of equal ones, favouring another item each round."""
    gains, assign_scratch = scratch[0], scratch[1]
    m, n = state.S.shape
    shift = state.t[0] % n
    for j in range(m):
        for i in range(n):
            item = (i + shift) % n
            gains[j, i] = state.S[j, item] / max(state.N[j, item], 1.0)
    assign(gains, leader, assign_scratch)
    for j in range(m):
        leader[j] = (leader[j] + shift) % n


@hot
def to_best_neighbour(state: Any, level: float, by_mean: Any, items: Any) -> bool:
    """Change `items` to its neighbour with the largest sum of indices, if that is larger; returns whether it did.

    Neighbours swap the items of two positions that follow each other in the order of the leader's means, or replace
    the item of the last of them.
    """
    m, n = state.S.shape
    for place in range(m):  # insertion sort by falling mean
        mean = state.S[place, items[place]] / state.N[place, items[place]]
        at = place
        while at > 0:
            above = by_mean[at - 1]
            if state.S[above, items[above]] / state.N[above, items[above]] >= mean:
                break
            by_mean[at] = above
            at -= 1
        by_mean[at] = place
    best, first, second, replacement = 0.0, -1, -1, -1
    for place in range(m - 1):
        one, other = by_mean[place], by_mean[place + 1]
        gain = (
            _index(state, one, items[other], level)
            + _index(state, other, items[one], level)
            - _index(state, one, items[one], level)
            - _index(state, other, items[other], level)
        )
        if gain > best:
            best, first, second = gain, one, other
    last = by_mean[m - 1]
    own = _index(state, last, items[last], level)
    for i in range(n):
        shown = False
        for j in range(m):
            shown |= items[j] == i
        if shown:
            continue
        gain = _index(state, last, i, level) - own
        if gain > best:
            best, first, replacement = gain, last, i
    if first < 0:
        return False
    if replacement >= 0:
        items[first] = replacement
    else:
        items[first], items[second] = items[second], items[first]
    return True


@hot
def _index(state: Any, j: int, i: int, level: float) -> Any:
    N = state.N[j, i]
    return upper_bound(state.S[j, i] / N, N, level)


@hot
def leader_key(leader: Any) -> Any:
    """A number for a list, never 0."""
    key = np.uint64(1)
    for j in range(len(leader)):
        key = word(key ^ np.uint64(leader[j]), j)
    return key | np.uint64(1)


@hot
def find(state: Any, key: Any) -> int:
    """The slot of this list: its own, or an empty one, or that of the list near it that led least often."""
    size = np.uint64(len(state.leaders))
    least = int(key % size)
    for probe in range(_PROBES):
        slot = int((key + np.uint64(probe)) % size)
        if state.leaders[slot] == key or state.leaders[slot] == np.uint64(0):
            return slot
        if state.led[slot] < state.led[least]:
            least = slot
    return least


@hot
def led_before(state: Any, leader: Any) -> bool:
    """Whether the table knows this list."""
    key = leader_key(leader)
    return bool(state.leaders[find(state, key)] == key)


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Count clicks and displays, and that this leader has led."""
    count(state.S, state.N, items, clicks)
    state.t[0] += 1
    if memo[0][0] >= 0:
        key = leader_key(memo[0])
        slot = find(state, key)
        state.led[slot] = state.led[slot] + 1 if state.leaders[slot] == key else 1
        state.leaders[slot] = key


_TABLE = 4096  # leaders that are remembered; a run has a few hundred


class GRAB(ClickRanker):
    """Moves from the best list so far to the neighbour that could be better, one step at a time.

    Every item at every position has a mean and an upper bound. The best list by the means leads. Shown is the leader
    or, unless its turn has come, the neighbour with the largest sum of bounds: two positions next to each other in
    attention exchange their items, or the item at the least attended position is replaced. It needs to know neither the
    examination probabilities nor which positions are looked at most.

    Parameters
    ----------
    n_items : int
        How many items there are, K.
    n_positions : int, optional
        How many of them are shown, L; None shows all.
    gamma : int, optional
        Every how many times that it leads a leader is shown for certain; None is K.

    Notation
    --------
    rho_hat: state.S / state.N; T_k,i: state.N; T~: state.led; F: the KL-UCB index of level log T~ + 3 log log T~.

    Departures
    ----------
    It begins with the K circular lists, in random order, so that late feedback does not hold it up. Equally good
    leaders take turns. How often each list has led is kept in a table of limited size, which forgets lists that led
    least. t counts the rounds with feedback.

    References
    ----------
    C. Gauthier, R. Gaudel, E. Fromont and B. A. Lompo, Parametric graph for unimodal ranking bandit, ICML 2021.

    Examples
    --------
    >>> ranker = GRAB(n_items=5, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(200):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, (shown.items == 3) & (np.arange(2) == 1))  # item 3, and only at the second position
    >>> int(ranker.current()[1])
    3
    """

    summary = "Observes clicks, and explores the neighbours of the best list so far."
    kernels = RankerKernels(rank, learn)
    algorithm_version = 2

    def __init__(self, *, n_items: int, n_positions: int | None = None, gamma: int | None = None) -> None:
        n, m = self.read_size(n_items, n_positions)
        self.gamma = n if gamma is None else whole("gamma", gamma, at_least=1)
        self.params = GRABParams(self.gamma)
        self.state = GRABState(
            t=np.zeros(1, np.int64),
            S=np.zeros((m, n)),
            N=np.zeros((m, n)),
            leaders=np.zeros(_TABLE, np.uint64),
            led=np.zeros(_TABLE, np.int64),
        )

    def tunable(self) -> Mapping[str, Range]:
        return {"gamma": Whole(1, 2 * self.n_items)}

    def scratch(self, n: int) -> tuple[Any, ...]:
        m, k = self.n_positions, self.n_items
        return np.empty((m, k)), lists.assignment_scratch(m, k), np.empty(m, np.int64)

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(n, np.int64),)

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return [(f"memo must name items below {self.n_items}", memo[0], -1, self.n_items - 1)]

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_counts(saved["S"], saved["N"])
        if (saved["led"] < 0).any():
            raise ValueError("saved state 'led' must not be negative")

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """A new item was never shown: the circular lists that lack it come first, then it is one among neighbours."""
        self.carry_counts(old, origin, positions)
        state = self.state
        # Lists of other items have led so far. The present leader has been shown about as often as the one of its
        # places that was shown least.
        leader = np.empty(self.n_positions, np.int64)
        find_leader(state, self.scratch(self.n_positions), leader)
        key = np.uint64(leader_key(leader))
        state.leaders[find(state, key)] = key
        state.led[find(state, key)] = int(state.N[np.arange(self.n_positions), leader].min())

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        self.state.S[np.ix_(positions, items)] = part.state.S
        self.state.N[np.ix_(positions, items)] = part.state.N
        self.state.t[0] += 1

    def translated_memo(self, ranking: Ranking, before: Ints) -> Memo:
        return (np.full(self.n_positions, -1, np.int64),)  # another list led

    def learn_shown(self, items: Ints, feedback: Any) -> bool:
        """Learns: its counts are of whatever was shown."""
        self.learn(Ranking(items, None, (np.full(len(items), -1, np.int64),)), feedback)
        return True

    def current(self, context: Any = None) -> Ints:
        """The leader: the list with the most clicks according to the means so far."""
        self.read_context(context)
        means = self.state.S / np.maximum(self.state.N, 1.0)
        leader = np.empty(self.n_positions, np.int64)
        best_list(means, leader)
        return in_order(means, leader)

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 24 * m * n + 40 * n + 16 * (m + _TABLE)
