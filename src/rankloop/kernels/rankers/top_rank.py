"""TopRank (2018, Algorithm 1): items in blocks, best block first, each block shuffled until clicks tell it apart.

U_ij = C_i - C_j counts only while i and j share a block, an item that is not shown among them: a click on i changes the
statistics of as many pairs as the block has items. Here it changes one number, the clicks on i. For each pair there is
what that number has too much: see `wins`. And a pair is looked at only when its lead may have reached its bound, which
takes many clicks. So a round costs what was shown and clicked, however many items there are.

The blocks that were shown travel in the ticket, so that late feedback is counted for the blocks it was about.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import log
from rankloop.kernels.jit import apart, hot, inlined
from rankloop.kernels.random import below, word

_WORD = 64  # items in a word of `worse`
_ROUNDING = 1e-6  # of a number of clicks that is a square root


class TopRankParams(NamedTuple):
    """log(c / delta) with c = 4 sqrt(2 / pi) / erf(sqrt 2)."""

    log_c_delta: float


class TopRankState(NamedTuple):
    """Click statistics of each pair of items, what follows from them, and the number of rounds with feedback."""

    t: NDArray[np.int64]
    clicks: NDArray[np.int64]  # on each item
    pairs: NDArray[
        np.int32
    ]  # [i, k]: of the clicks on i, in one block with k those that do not count, else `wins`
    worse: NDArray[np.uint64]  # [i]: a bit for each item that i is known to be worse than, the relation G
    fingerprint: NDArray[np.int64]  # of G: equal where G is
    block: NDArray[np.int64]  # of each item, counted from 0
    order: NDArray[np.int64]  # items by block
    ends: NDArray[np.int64]  # of each block, in `order`
    due: NDArray[np.int64]  # clicks on each item from which on one of its pairs may reach its bound


@inlined
def wins(clicks: Any, pairs: Any, block: Any, i: int, k: int) -> Any:
    """Clicks on i and not on k while they shared a block; S_ik is wins_ik - wins_ki, N_ik is wins_ik + wins_ki."""
    return clicks[i] - pairs[i, k] if block[i] == block[k] else np.int64(pairs[i, k])


@inlined
def is_worse(worse: Any, i: int, k: int) -> Any:
    """Whether i is known to be worse than k."""
    return (worse[i, k // _WORD] >> np.uint64(k % _WORD)) & np.uint64(1) == np.uint64(1)


@inlined
def _mark_worse(state: Any, i: int, k: int) -> None:
    state.worse[i, k // _WORD] |= np.uint64(1) << np.uint64(k % _WORD)
    state.fingerprint[0] ^= _share(len(state.block), i, k)


@inlined
def _share(n: int, i: int, k: int) -> Any:
    # Of a pair in the fingerprint of G.
    return np.int64(word(np.uint64(0), i * n + k))


@apart
def take_fingerprint(state: Any) -> None:
    """From all pairs of G."""
    n = len(state.block)
    state.fingerprint[0] = 0
    for i in range(n):
        for k in range(n):
            if state.worse[i, k // _WORD] != np.uint64(0) and is_worse(state.worse, i, k):
                state.fingerprint[0] ^= _share(n, i, k)


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, lines 5-9. Exploring: some shown position was drawn from more than one item."""
    slots, places, held = scratch[0], scratch[1], scratch[2]
    fingerprint, blocks = memo
    if fingerprint[0] != state.fingerprint[0]:  # otherwise the last round of a compiled loop wrote the same
        fingerprint[0] = state.fingerprint[0]
        for i in range(len(blocks)):
            blocks[i] = state.block[i]
    start, number, explored = 0, 0, False
    while start < len(items):
        stop = state.ends[number]
        for j in range(start, min(stop, len(items))):
            # Fisher-Yates from the front: only what is shown is drawn, and only what it moved is written down.
            other = j + below(key, j, stop - j)
            items[j] = _item_at(other, j, state.order, slots, places, held)
            held[j] = _item_at(j, j, state.order, slots, places, held)
            places[j] = other
            slots[other] = j
            propensities[j] = 1.0 / (stop - start)
        explored |= stop > start + 1
        start = stop
        number += 1
    return explored


@inlined
def _item_at(place: int, n_moved: int, order: Any, slots: Any, places: Any, held: Any) -> Any:
    # `slots` may hold anything, from other lists too: an entry counts if the place it leads to says so.
    slot = slots[place]
    return held[slot] if 0 <= slot < n_moved and places[slot] == place else order[place]


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
    """Alg. 1, lines 10-13, for the blocks that were shown."""
    found = False
    if memo[0][0] == state.fingerprint[0]:
        for j in range(len(items)):
            if feedback[j] == 0.0:
                continue
            i = items[j]
            state.clicks[i] += 1
            for other in range(j):
                k = items[other]
                if feedback[other] != 0.0 and state.block[i] == state.block[k]:
                    state.pairs[i, k] += 1  # U_ik = 0
                    state.pairs[k, i] += 1
        for j in range(len(items)):
            if feedback[j] != 0.0 and state.clicks[items[j]] >= state.due[items[j]]:
                found |= _compare(params.log_c_delta, state, items[j])
    else:
        found = _learn_late(params.log_c_delta, state, scratch[4], items, memo[1], feedback)
    state.t[0] += 1
    if found:
        regroup(params.log_c_delta, state, scratch[3], scratch[5])


@apart
def _compare(log_c_delta: float, state: Any, i: int) -> bool:
    # Every pair of i in its block, after a click on i; and at how many clicks on i the next one may reach its bound.
    number, found, least = state.block[i], False, np.inf
    for place in range(state.ends[number - 1] if number > 0 else 0, state.ends[number]):
        k = state.order[place]
        won = state.clicks[i] - state.pairs[i, k]
        missing = 2.0 * log_c_delta - won  # if k has won nothing
        if k == i:
            missing = np.inf
        elif missing <= 0.0:
            lost = state.clicks[k] - state.pairs[k, i]
            missing = _missing(log_c_delta, won, lost)
            if is_worse(state.worse, k, i):
                missing = np.inf
            elif reached(log_c_delta, won, lost):
                _mark_worse(state, k, i)
                found, missing = True, np.inf
        least = min(least, missing)
    state.due[i] = _due(state.clicks[i], least)
    return found


@inlined
def _missing(log_c_delta: float, won: Any, lost: Any) -> Any:
    # S^2 / (2 N) = log_c_delta, which is below the bound, solved for how much more must be won.
    return lost + log_c_delta + np.sqrt(log_c_delta * (log_c_delta + 4.0 * lost)) - won


@inlined
def _due(clicks: Any, missing: float) -> Any:
    return clicks + np.int64(min(max(1.0, np.ceil(missing - _ROUNDING)), 1e15))


@inlined
def reached(log_c_delta: float, won: Any, lost: Any) -> Any:
    """S >= sqrt(2 N log((c / delta) sqrt N)); the logarithm of N only where the rest of it is passed."""
    S, N = float(won - lost), float(won + lost)
    if S <= 0.0:
        return False
    square = S * S / (2.0 * N)
    return square >= log_c_delta and square >= log_c_delta + 0.5 * log(N)


@apart
def _learn_late(log_c_delta: float, state: Any, clicked: Any, items: Any, blocks: Any, feedback: Any) -> bool:
    # G has grown since the list was shown: every pair that shared a block then.
    found = False
    for i in range(len(blocks)):
        clicked[i] = False
    for j in range(len(items)):
        clicked[items[j]] = feedback[j] != 0.0
    for j in range(len(items)):
        state.clicks[items[j]] += clicked[items[j]]
    for j in range(len(items)):
        i = items[j]
        if not clicked[i]:
            continue
        for k in range(len(blocks)):
            if k == i:
                continue
            counts = blocks[k] == blocks[i] and not clicked[k]
            state.pairs[i, k] += counts != (state.block[i] == state.block[k])
            if counts and not is_worse(state.worse, k, i):
                won = wins(state.clicks, state.pairs, state.block, i, k)
                lost = wins(state.clicks, state.pairs, state.block, k, i)
                if reached(log_c_delta, won, lost):
                    _mark_worse(state, k, i)
                    found = True
    return found


@apart
def regroup(log_c_delta: float, state: Any, before: Any, left: Any) -> None:
    """The blocks of G as it is now, and the pairs of items that meet or part."""
    n = len(state.block)
    for i in range(n):
        before[i] = state.block[i]
    partition(state.worse, left, state.block, state.order, state.ends)
    for i in range(n):
        if before[i] == state.block[i]:
            continue
        for k in range(n):
            meet = state.block[i] == state.block[k]
            both_move = before[k] != state.block[k]
            if meet == (before[i] == before[k]) or (both_move and k < i):
                continue
            state.pairs[i, k] = state.clicks[i] - state.pairs[i, k]
            state.pairs[k, i] = state.clicks[k] - state.pairs[k, i]
            if meet:
                _expect(log_c_delta, state, i, k)
                _expect(log_c_delta, state, k, i)


@inlined
def _expect(log_c_delta: float, state: Any, i: int, k: int) -> None:
    # That i, which has met k, may reach the bound.
    won, lost = state.clicks[i] - state.pairs[i, k], state.clicks[k] - state.pairs[k, i]
    state.due[i] = min(state.due[i], _due(state.clicks[i], _missing(log_c_delta, won, lost)))


@apart
def partition(worse: Any, left: Any, block: Any, order: Any, ends: Any) -> None:
    """Alg. 1, line 6: a block is every item that is worse than none of those left; of a cycle, all that are left."""
    n, placed, number = len(block), 0, 0
    left[:] = np.uint64(0)
    for i in range(n):
        block[i] = -1
        left[i // _WORD] |= np.uint64(1) << np.uint64(i % _WORD)
    while placed < n:
        before = placed
        for i in range(n):
            if block[i] >= 0:
                continue
            word = 0
            while word < len(left) and worse[i, word] & left[word] == np.uint64(0):
                word += 1
            if word == len(left):
                order[placed] = i
                placed += 1
        if placed == before:  # only sampling noise makes a cycle, with a chance of at most delta n^2
            for i in range(n):
                if block[i] < 0:
                    order[placed] = i
                    placed += 1
        for place in range(before, placed):
            i = order[place]
            block[i] = number
            left[i // _WORD] &= ~(np.uint64(1) << np.uint64(i % _WORD))
        ends[number] = placed
        number += 1
    for rest in range(number, n):
        ends[rest] = n


@apart
def leads(state: Any, out: Any) -> None:
    """For each item the sum of S_ik over the items of its block."""
    for i in range(len(state.block)):
        out[i] = 0.0
    for i in range(len(state.block)):
        for k in range(len(state.block)):
            if i != k and state.block[i] == state.block[k]:
                won = float(state.clicks[i] - state.pairs[i, k])
                out[i] += won
                out[k] -= won
