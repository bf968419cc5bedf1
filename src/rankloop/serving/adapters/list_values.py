"""What lists are worth: discounts by position, gains by relevance, and discounts summed over many lists."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from rankloop import measures

Floats = NDArray[np.float64]


@functools.lru_cache(maxsize=64)
def discounts(n: int, k: int) -> Floats:
    """The weight of a gain at each position: DCG's discount in the first row, Precision@k's 1/k in the second."""
    return np.stack([measures.get("dcg").discount(n), (np.arange(n) < k) / k])


def gains(relevance: Floats) -> Floats:
    """The gain of a relevance: 2^r - 1 for DCG, and for Precision whether there is any."""
    return np.stack([np.exp2(relevance) - 1.0, (relevance > 0).astype(np.float64)])


def add_discounts(sums: Floats, lists: list[NDArray[np.int64]], weights: Floats) -> None:
    """Add to the sums of each item the weights of its positions in lists of all items, in the order of the lists."""
    items = np.concatenate(lists)
    for summed, weight in zip(sums, weights, strict=True):
        np.add.at(summed, items, np.tile(weight, len(lists)))
