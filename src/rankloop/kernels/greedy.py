"""The order of falling scores, with equal scores in random order (2016, erratum B10).

A stable sort would show documents with equal scores as the file lists them, and files list the good ones first.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import hot, inlined
from rankloop.kernels.random import below
from rankloop.kernels.sorting import by_falling_score


@inlined
def greedy_order(scores: Any, n: int, key: Any, first: int, items: Any, room: Any) -> None:
    """Write the order to `items`; ties draw on the numbers of `key` at `first` and after."""
    by_falling_score(scores, n, items, room)
    tied = False
    for i in range(1, n):
        tied |= scores[items[i]] == scores[items[i - 1]]
    if tied:
        _shuffle_ties(scores, n, key, first, items)


@hot
def _shuffle_ties(scores: Any, n: int, key: Any, first: int, items: Any) -> None:
    start = 0
    for i in range(1, n):
        if scores[items[i]] != scores[items[i - 1]]:
            start = i
            continue
        j = start + below(key, first + i, i - start + 1)  # Fisher-Yates within the run of ties, growing
        items[i], items[j] = items[j], items[i]
