"""Items by falling score, without a branch that the processor could mispredict.

Short lists count, for every item, how many beat it (n**2 / 2 comparisons, but several at a time); longer ones
are radix-sorted on the bits of their scores. A comparison sort loses to one or the other at every length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot, inlined

COUNT_UP_TO = 128  # where counting and radix sort cost the same
_SIGN = np.uint64(1 << 63)


def scratch(n: int) -> NDArray[np.uint64]:
    """Room to sort `n` items; what is in it means nothing between calls."""
    return np.empty(n if n <= COUNT_UP_TO else 3 * n + 8 * 256, np.uint64)


@inlined
def by_falling_score(scores: Any, n: int, items: Any, room: Any) -> None:
    """Write to `items` the indices of the first n `scores`, highest first; of equal ones, the lower index."""
    if n <= COUNT_UP_TO:
        _by_counting(scores, n, items, room)
    else:
        _by_radix(scores, n, items, room)


@inlined
def _by_counting(scores: Any, n: int, items: Any, beaten_by: Any) -> None:
    for j in range(n):
        score = scores[j]
        losses = 0
        for i in range(j):
            wins = score > scores[i]
            beaten_by[i] += wins
            losses += 1 - wins
        beaten_by[j] = losses
    for i in range(n):
        items[beaten_by[i]] = i


@inlined
def _falling_key(score: float) -> Any:
    # IEEE bits ordered as unsigned integers, inverted so that the highest score comes first; + 0.0 merges -0.0 into 0.0
    bits = np.float64(score + 0.0).view(np.uint64)
    return bits if bits & _SIGN else ~(bits | _SIGN)


@hot
def _by_radix(scores: Any, n: int, items: Any, room: Any) -> None:
    keys, other_keys, other_items = room[:n], room[n : 2 * n], room[2 * n : 3 * n].view(np.int64)
    counts = room[3 * n : 3 * n + 8 * 256]  # 256 for each of the 8 digits
    counts[:] = 0
    for i in range(n):
        key = _falling_key(scores[i])
        keys[i] = key
        items[i] = i
        for digit in range(8):
            counts[256 * digit + ((key >> np.uint64(8 * digit)) & np.uint64(255))] += np.uint64(1)
    here, there = items, other_items
    swapped = False
    for digit in range(8):
        shift = np.uint64(8 * digit)
        bins = counts[256 * digit : 256 * digit + 256]
        if bins[(keys[0] >> shift) & np.uint64(255)] == n:
            continue
        start = np.uint64(0)
        for value in range(256):
            size = bins[value]
            bins[value] = start
            start += size
        for i in range(n):
            value = (keys[i] >> shift) & np.uint64(255)
            to = bins[value]
            bins[value] = to + np.uint64(1)
            other_keys[to] = keys[i]
            there[to] = here[i]
        keys, other_keys, here, there = other_keys, keys, there, here
        swapped = not swapped
    if swapped:
        for i in range(n):
            items[i] = other_items[i]
