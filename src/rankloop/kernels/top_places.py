"""The first places of a list by falling score, without sorting what comes after them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import apart, inlined
from rankloop.kernels.order_vectors import count_above
from rankloop.kernels.sorting import by_count, greedy_order, shuffle_ties

_GROUPS = 16  # with more wanted places than groups, all of a list is ordered
_SORT_ALL = 48  # up to this length, that is as quick


@inlined
def greedy_top(scores: Any, n: int, m: int, key: Any, first: int, items: Any, room: Any) -> None:
    """The first `m` places of `greedy_order`, which may be all it writes: for lists of which no more is looked at.

    Parameters
    ----------
    scores : ndarray of float
        One score for each item.
    n : int
        How many items there are.
    m : int
        How many of them are wanted.
    key : numpy.uint64
        The key of the stream that breaks ties.
    first : int
        Where in the stream to begin.
    items : ndarray of int
        Where the order goes; room for all n.
    room : ndarray of int
        What `sorting.scratch` gave for `n`.
    """
    if n <= _SORT_ALL or m > _GROUPS or not _few(scores, n, m, key, first, items, room):
        greedy_order(scores, n, key, first, items, room)


@apart
def _few(scores: Any, n: int, m: int, key: Any, first: int, items: Any, room: Any) -> bool:
    # Of the highest scores of sixteen groups, take the m-th: at least m items reach it, and about twice as many do.
    # These alone are ordered. False where too many reach it.
    whole = room.view(np.int64)
    least = _reached_by(m, scores, n, whole)
    number = 0
    for i in range(n):
        whole[number] = i
        number += scores[i] >= least
    if number < m or 3 * number > n:
        return False
    chosen, counts = whole[:number], whole[number : 2 * number]
    high = whole[2 * number : 3 * number].view(np.float64)
    for i in range(number):
        high[i] = scores[chosen[i]]
    tied = by_count(high, number, items, counts)
    for place in range(number):
        items[place] = chosen[items[place]]
    if tied:
        shuffle_ties(scores, number, key, first, items)
    return True


@inlined
def _reached_by(m: int, scores: Any, n: int, room: Any) -> Any:
    highest, counts = room[:_GROUPS].view(np.float64), room[_GROUPS : 2 * _GROUPS]
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
