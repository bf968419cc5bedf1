"""GRAB (2021, Algorithm 1): the best list so far, and lists that differ from it by one step.

Arrays are position-major: S[j, i] are the clicks on item i at position j, N[j, i] how often it stood there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.click_counts import count, first_unseen, log_level, upper_bound
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import assign
from rankloop.kernels.random import word

_PROBES = 8


class GRABParams(NamedTuple):
    """Every how many times that it leads a leader is shown whatever its neighbours look like."""

    gamma: int


class GRABState(NamedTuple):
    """Clicks and displays; and how often each leader has led, in a table of limited size."""

    t: NDArray[np.int64]  # rounds with feedback
    S: NDArray[np.float64]  # by position and item: clicks
    N: NDArray[np.float64]  # by position and item: displays
    leaders: NDArray[np.uint64]  # keys of lists, 0 where there is none
    led: NDArray[np.int64]  # how often each of them has led


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1. Exploring: not the leader. The ticket keeps the leader, -1 in the beginning, which has none."""
    m, n = state.S.shape
    leader = memo[0]
    first = first_unseen(state.N)
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
    gains, room = scratch[0], scratch[1]
    m, n = state.S.shape
    shift = state.t[0] % n
    for j in range(m):
        for i in range(n):
            item = (i + shift) % n
            gains[j, i] = state.S[j, item] / max(state.N[j, item], 1.0)
    assign(gains, leader, room)
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
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """Count clicks and displays, and that this leader has led."""
    count(state.S, state.N, items, feedback)
    state.t[0] += 1
    if memo[0][0] >= 0:
        key = leader_key(memo[0])
        slot = find(state, key)
        state.led[slot] = state.led[slot] + 1 if state.leaders[slot] == key else 1
        state.leaders[slot] = key
