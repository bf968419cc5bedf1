"""Items by falling score, without a branch that the processor could mispredict; also only the first places of them.

Short lists count, for every item, how many beat it (n**2 comparisons, but several at a time); longer ones are
radix-sorted. A comparison sort loses to one or the other at every length. Of equal scores the lower index is first, or
the first from a given index on, or a random one. Everywhere `items` is where the order of the first `n` of `scores`
goes, and `scratch` is what the function of that name gave for n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import Ints, apart, hot, kernel
from rankloop.kernels.random import below
from rankloop.kernels.vectors import LANES, count_above

COUNT_UP_TO = 128  # where counting and radix sort cost the same
_SIGN = np.uint64(1 << 63)
_BITS = np.uint64(11)
_BINS = 1 << 11  # two tables of counts fit into the first-level cache
_LOW = np.uint64(_BINS - 1)
_CROWD = 16  # insertion sort moves no item further than this


def scratch(n: int) -> Ints:
    """Scratch to sort `n` items; what is in it means nothing between calls."""
    return np.empty(scratch_bytes(n) // 8, np.int64)


def scratch_bytes(n: int) -> int:
    """Bytes of the scratch to sort `n` items."""
    return 8 * (n if n <= COUNT_UP_TO else 3 * n + 2 * _BINS)


@hot
def by_falling_score(scores: Any, n: int, items: Any, scratch: Any) -> bool:
    """Write to `items` the indices of the first `n` of `scores`, highest first; of equal ones the lower index is first.

    Returns
    -------
    bool
        Whether some are equal.
    """
    if n <= COUNT_UP_TO:
        return by_count(scores, n, items, scratch)
    _by_place(scores, n, items, scratch)
    tied = False
    for i in range(1, n):
        tied |= scores[items[i]] == scores[items[i - 1]]
    return tied


@hot
def by_falling_score_from(first: int, scores: Any, n: int, turned: Any, items: Any, scratch: Any) -> None:
    """The same, but of equal `scores` the index that comes first from `first` on, counting in a circle.

    With another `first` each round, no item is favoured by its number. `turned` has n places to work in.
    """
    for i in range(n):
        turned[i] = scores[(i + first) % n]
    by_falling_score(turned, n, items, scratch)
    for place in range(n):
        items[place] = (items[place] + first) % n


@hot
def greedy_order(scores: Any, n: int, key: Any, first: int, items: Any, scratch: Any) -> None:
    """The same, but equal `scores` in random order, from the numbers of `key` at `first` and after.

    A stable sort would show documents with equal scores as the file lists them, and files list the good ones first
    (2016, erratum B10).
    """
    if by_falling_score(scores, n, items, scratch):
        shuffle_ties(scores, n, key, first, items)


@apart
def shuffle_ties(scores: Any, n: int, key: Any, first: int, items: Any) -> None:
    """Give equal `scores`, neighbours in the `n` places of `items`, a random order, from `key` at `first` on."""
    start = 0
    for i in range(1, n):
        if scores[items[i]] != scores[items[i - 1]]:
            start = i
            continue
        j = start + below(key, first + i, i - start + 1)  # Fisher-Yates within the run of ties, growing
        items[i], items[j] = items[j], items[i]


@kernel
def sorted_copy(values: Any) -> Any:
    """A copy of `values`, none NaN, lowest first: a Shell sort compiles in a fraction of the time of numba's own."""
    rising = values.copy()
    gap = 1
    while gap < len(rising) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(rising)):
            value = rising[i]
            j = i
            while j >= gap and rising[j - gap] > value:
                rising[j] = rising[j - gap]
                j -= gap
            rising[j] = value
        gap //= 3
    return rising


@hot
def by_count(scores: Any, n: int, items: Any, beaten_by: Any) -> bool:
    """As `by_falling_score`, by counting for every item how many beat it; `beaten_by` has n places for that."""
    if n < LANES:
        for i in range(n):
            count = 0
            for j in range(n):
                count += scores[j] > scores[i]
            beaten_by[i] = count
    else:
        count_above(scores, n, beaten_by)
    places: Any = 0
    for i in range(n):
        places += np.int64(beaten_by[i])
        items[beaten_by[i]] = i
    tied = bool(places != n * (n - 1) // 2)  # every tied pair loses one place
    if tied:
        _place_ties(beaten_by, n, items)
    return tied


@apart
def _place_ties(beaten_by: Any, n: int, items: Any) -> None:
    for place in range(n):
        items[place] = -1
    for i in range(n):
        at: Any = np.int64(beaten_by[i])
        while items[at] >= 0:  # taken by an equal one
            at += 1
        items[at] = i


@apart
def _put_right(scores: Any, n: int, items: Any) -> None:
    # Insertion sort, for orders that are right but for a few.
    for i in range(1, n):
        item = items[i]
        j = i
        while j > 0 and scores[items[j - 1]] < scores[item]:
            items[j] = items[j - 1]
            j -= 1
        items[j] = item


@apart
def _by_place(scores: Any, n: int, items: Any, scratch: Any) -> None:
    # Two radix passes over where a score lies between the highest and the lowest, in 2**22 steps; the few that
    # share a step are put right by insertion. Where many do, the bits of the scores decide. Scores must not be NaN.
    words, other_items = scratch.view(np.uint64), scratch[2 * n : 3 * n]
    places, other_places = words[:n], words[n : 2 * n]
    low, high = words[3 * n : 3 * n + _BINS], words[3 * n + _BINS : 3 * n + 2 * _BINS]
    lowest = highest = scores[0]
    for i in range(n):
        lowest = scores[i] if scores[i] < lowest else lowest
        highest = scores[i] if scores[i] > highest else highest
    steps = float(_BINS * _BINS - 1) / (highest - lowest)
    if not 0.0 < steps < np.inf:
        _by_radix(scores, n, items, scratch)
        return
    low[:] = 0
    high[:] = 0
    for i in range(n):
        places[i] = np.uint64((highest - scores[i]) * steps)
    for i in range(n):
        low[places[i] & _LOW] += np.uint64(1)
        high[places[i] >> _BITS] += np.uint64(1)
    low_start = high_start = np.uint64(0)
    for value in range(_BINS):
        low_size, high_size = low[value], high[value]
        low[value] = low_start
        high[value] = high_start
        low_start += low_size
        high_start += high_size
    for i in range(n):
        value = places[i] & _LOW
        to = low[value]
        low[value] = to + np.uint64(1)
        other_places[to] = places[i]
        other_items[to] = i
    for i in range(n):
        value = other_places[i] >> _BITS
        to = high[value]
        high[value] = to + np.uint64(1)
        places[to] = other_places[i]
        items[to] = other_items[i]
    run = longest = 0
    for i in range(1, n):
        run = run + 1 if places[i] == places[i - 1] else 0
        longest = run if run > longest else longest
    if longest > _CROWD:
        _by_radix(scores, n, items, scratch)
    elif longest > 0:
        _put_right(scores, n, items)


@hot
def _falling_key(score: float) -> Any:
    # IEEE bits ordered as unsigned integers, inverted so that the highest score comes first; + 0.0 merges -0.0 into 0.0
    bits = np.float64(score + 0.0).view(np.uint64)
    return bits if bits & _SIGN else ~(bits | _SIGN)


@apart
def _by_radix(scores: Any, n: int, items: Any, scratch: Any) -> None:
    words, other_items = scratch.view(np.uint64), scratch[2 * n : 3 * n]
    keys, other_keys = words[:n], words[n : 2 * n]
    counts = words[3 * n : 3 * n + 8 * 256]  # 256 for each of the 8 digits
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


_GROUPS = 16  # with more wanted places than groups, all of a list is ordered
_SORT_ALL = 48  # up to this length, that is as quick


@hot
def greedy_top(scores: Any, n: int, m: int, key: Any, first: int, items: Any, scratch: Any) -> None:
    """The first `m` places of `greedy_order`, with its `key` and `first`: for lists of which no more is looked at."""
    if n <= _SORT_ALL or m > _GROUPS or not _few(scores, n, m, key, first, items, scratch):
        greedy_order(scores, n, key, first, items, scratch)


@apart
def _few(scores: Any, n: int, m: int, key: Any, first: int, items: Any, scratch: Any) -> bool:
    # Of the highest scores of sixteen groups, take the m-th: at least m items reach it, and about twice as many do.
    # These alone are ordered. False where too many reach it.
    least = _reached_by(m, scores, n, scratch)
    number = 0
    for i in range(n):
        scratch[number] = i
        number += scores[i] >= least
    if number < m or 3 * number > n:
        return False
    chosen, counts = scratch[:number], scratch[number : 2 * number]
    high = scratch[2 * number : 3 * number].view(np.float64)
    for i in range(number):
        high[i] = scores[chosen[i]]
    tied = by_count(high, number, items, counts)
    for place in range(number):
        items[place] = chosen[items[place]]
    if tied:
        shuffle_ties(scores, number, key, first, items)
    return True


@hot
def _reached_by(m: int, scores: Any, n: int, scratch: Any) -> Any:
    highest, counts = scratch[:_GROUPS].view(np.float64), scratch[_GROUPS : 2 * _GROUPS]
    for group in range(_GROUPS):
        highest[group] = scores[group]
    for start in range(_GROUPS, n - _GROUPS + 1, _GROUPS):
        for group in range(_GROUPS):
            score = scores[start + group]
            highest[group] = score if score > highest[group] else highest[group]
    count_above(highest, _GROUPS, counts)
    least = np.inf
    for group in range(_GROUPS):
        score = highest[group] if counts[group] < m else np.inf
        least = score if score < least else least
    return least
