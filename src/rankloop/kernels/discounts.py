"""What a gain counts for at each rank, and which gain a kernel uses, without loading the compiler."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import log2

# Which gain g(r) a kernel uses.
NOT_SEPARABLE = -1
IDENTITY = 0  # g(r) = r                                sum_loss, precision
EXP2 = 1  # g(r) = 2^r - 1                              dcg
NDCG = 2  # g(r) = (2^r - 1) / Z(r)                     ndcg
PAIRS = 3  # g(r) = r, offset -s(s+1)/2, binary r only  pairwise_loss
AUC = 4  # the same two divided by N(r) = s(m-s)        auc

_FEW = 2_000  # logarithms that are quicker had in Python than compiled for


def by_logarithm(n_items: int) -> NDArray[np.float64]:
    """1 / log2(1 + rank), ranks counting from 1: DCG's."""
    at_once = 1 << (n_items - 1).bit_length()  # one table for all lengths up to it: lists are of many lengths
    return _reciprocal_logarithms(min(at_once, max(n_items, _FEW)))[:n_items].copy()


@functools.lru_cache(maxsize=16)
def _reciprocal_logarithms(n_items: int) -> NDArray[np.float64]:
    if n_items > _FEW:
        from rankloop.kernels.measures import logarithms  # only now: naming a measure loads no compiler

        return 1.0 / logarithms(n_items)
    return 1.0 / np.array([log2(rank + 1.0) for rank in range(1, n_items + 1)])


def by_rank(n_items: int) -> NDArray[np.float64]:
    """1, 2, 3, ...: the rank itself."""
    return np.arange(1, n_items + 1, dtype=np.float64)


def evenly(n_items: int) -> NDArray[np.float64]:
    """1 everywhere."""
    return np.ones(n_items)
