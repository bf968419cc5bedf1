"""What a gain counts for at each rank, ranks counting from 1. In plain numpy, so that naming one compiles nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def log_divisor(rank: Any) -> Any:
    """log2(1 + rank), what DCG divides the gain at a rank by; kernels compile it."""
    return np.log2(rank + 1.0)


def by_logarithm(n_items: int) -> NDArray[np.float64]:
    """1 / log2(1 + rank): DCG's."""
    discount: NDArray[np.float64] = 1.0 / log_divisor(by_rank(n_items))
    return discount


def by_rank(n_items: int) -> NDArray[np.float64]:
    """1, 2, 3, ...: the rank itself."""
    return np.arange(1, n_items + 1, dtype=np.float64)


def evenly(n_items: int) -> NDArray[np.float64]:
    """1 everywhere."""
    return np.ones(n_items)
