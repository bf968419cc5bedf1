"""Items by falling score, without a branch that the processor could mispredict.

Short lists count, for every item, how many beat it (n**2 comparisons, but eight at a time); longer ones
are radix-sorted on the bits of their scores. A comparison sort loses to one or the other at every length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import kernel

COUNT_UP_TO = 128  # where counting and radix sort cost the same
_SIGN = np.uint64(1 << 63)


class SortScratch(NamedTuple):
    """Room to sort in; its contents mean nothing between calls."""

    beaten_by: NDArray[np.int32]
    keys: NDArray[np.uint64]
    other_keys: NDArray[np.uint64]
    other_items: NDArray[np.int64]
    counts: NDArray[np.int64]


def scratch(n: int) -> SortScratch:
    """Room to sort `n` items."""
    long = n if n > COUNT_UP_TO else 0
    return SortScratch(
        beaten_by=np.empty(n if n <= COUNT_UP_TO else 0, np.int32),
        keys=np.empty(long, np.uint64),
        other_keys=np.empty(long, np.uint64),
        other_items=np.empty(long, np.int64),
        counts=np.empty((8, 256) if long else (0, 0), np.int64),
    )


@kernel
def by_falling_score(scores: Any, items: Any, room: Any) -> None:
    """Write to `items` the indices of `scores`, highest first; equal scores keep the order of their indices."""
    if len(scores) <= COUNT_UP_TO:
        _by_counting(scores, items, room.beaten_by)
    else:
        _by_radix(scores, items, room)


@kernel
def _by_counting(scores: Any, items: Any, beaten_by: Any) -> None:
    n = len(scores)
    for i in range(n):
        beaten_by[i] = 0
    for j in range(n):
        score = scores[j]
        for i in range(n):
            beaten_by[i] += score > scores[i]
    places = 0
    for i in range(n):
        places += beaten_by[i]
        items[beaten_by[i]] = i
    if places != n * (n - 1) // 2:  # every tied pair loses one place
        _by_insertion(scores, items)


@kernel
def _by_insertion(scores: Any, items: Any) -> None:
    for i in range(len(scores)):
        j = i
        while j > 0 and scores[items[j - 1]] < scores[i]:
            items[j] = items[j - 1]
            j -= 1
        items[j] = i


@kernel
def _falling_key(score: float) -> Any:
    # IEEE bits ordered as unsigned integers, inverted so that the highest score comes first; + 0.0 merges -0.0 into 0.0
    bits = np.float64(score + 0.0).view(np.uint64)
    return bits if bits & _SIGN else ~(bits | _SIGN)


@kernel
def _by_radix(scores: Any, items: Any, room: Any) -> None:
    n = len(scores)
    counts = room.counts
    for digit in range(8):
        for value in range(256):
            counts[digit, value] = 0
    for i in range(n):
        key = _falling_key(scores[i])
        room.keys[i] = key
        items[i] = i
        for digit in range(8):
            counts[digit, (key >> np.uint64(8 * digit)) & np.uint64(255)] += 1
    keys, other_keys, here, there = room.keys, room.other_keys, items, room.other_items
    swapped = False
    for digit in range(8):
        shift = np.uint64(8 * digit)
        if counts[digit, (keys[0] >> shift) & np.uint64(255)] == n:
            continue
        start = 0
        for value in range(256):
            size = counts[digit, value]
            counts[digit, value] = start
            start += size
        for i in range(n):
            value = (keys[i] >> shift) & np.uint64(255)
            to = counts[digit, value]
            counts[digit, value] = to + 1
            other_keys[to] = keys[i]
            there[to] = here[i]
        keys, other_keys, here, there = other_keys, keys, there, here
        swapped = not swapped
    if swapped:
        for i in range(n):
            items[i] = room.other_items[i]
