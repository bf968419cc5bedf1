"""TopRank (2018, Algorithm 1): items in blocks, best block first, each block shuffled until clicks tell it apart.

U_ij = C_i - C_j counts only while i and j share a block, an item that is not shown among them. The blocks that were
shown travel in the ticket, so that late feedback is counted for the blocks it was about.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import log
from rankloop.kernels.jit import hot
from rankloop.kernels.random import below


class TopRankParams(NamedTuple):
    """log(c / delta) with c = 4 sqrt(2 / pi) / erf(sqrt 2)."""

    log_c_delta: float


class TopRankState(NamedTuple):
    """Click statistics of each pair of items, what follows from them, and the number of rounds with feedback."""

    t: NDArray[np.int64]
    S: NDArray[np.float64]  # [i, j]: clicks on i and not on j, less those on j and not on i
    N: NDArray[np.float64]  # [i, j]: clicks on just one of them
    worse: NDArray[np.int64]  # [i, j]: 1 where i is known to be worse than j, the relation G
    block: NDArray[np.int64]  # of each item, counted from 0
    order: NDArray[np.int64]  # items by block


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, lines 5-9. Exploring: some shown position was drawn from more than one item."""
    shuffled, drawn = scratch[0], 0
    n, start, explored = len(state.block), 0, False
    for i in range(n):
        shuffled[i] = state.order[i]
        memo[0][i] = state.block[i]
    while start < len(items):
        stop = start + 1
        while stop < n and state.block[shuffled[stop]] == state.block[shuffled[start]]:
            stop += 1
        for j in range(start, min(stop, len(items))):
            other = j + below(
                key, drawn, stop - j
            )  # Fisher-Yates from the front: only what is shown is drawn
            drawn += 1
            shuffled[j], shuffled[other] = shuffled[other], shuffled[j]
            items[j] = shuffled[j]
            propensities[j] = 1.0 / (stop - start)
        explored |= stop > start + 1
        start = stop
    return explored


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
    block, clicked = memo[0], scratch[1]
    n, found = len(block), False
    for i in range(n):
        clicked[i] = 0.0
    for j in range(len(items)):
        clicked[items[j]] = feedback[j]
    for j in range(len(items)):
        i = items[j]
        if feedback[j] == 0.0:
            continue
        for k in range(n):
            if block[k] != block[i] or clicked[k] != 0.0:
                continue
            state.S[i, k] += 1.0
            state.S[k, i] -= 1.0
            N = state.N[i, k] + 1.0
            state.N[i, k] = N
            state.N[k, i] = N
            S = state.S[i, k]
            # S >= sqrt(2 N log((c / delta) sqrt N)); the logarithm of N only where the rest of it is passed
            square = S * S / (2.0 * N)
            known = S <= 0.0 or state.worse[k, i] == 1 or square < params.log_c_delta
            if not known and square >= params.log_c_delta + 0.5 * log(N):
                state.worse[k, i] = 1
                found = True
    state.t[0] += 1
    if found:
        partition(state.worse, state.block, state.order)


@hot
def partition(worse: Any, block: Any, order: Any) -> None:
    """Alg. 1, line 6: a block is every item that is worse than none of those left; of a cycle, all that are left."""
    n, placed, number = len(block), 0, 0
    for i in range(n):
        block[i] = -1
    while placed < n:
        before = placed
        for i in range(n):
            if block[i] >= 0:
                continue
            free = True
            for j in range(n):
                free &= not (worse[i, j] == 1 and (block[j] < 0 or block[j] == number))
            if free:
                order[placed] = i
                placed += 1
        if placed == before:  # only sampling noise makes a cycle, with a chance of at most delta n^2
            for i in range(n):
                if block[i] < 0:
                    order[placed] = i
                    placed += 1
        for place in range(before, placed):
            block[order[place]] = number
        number += 1
