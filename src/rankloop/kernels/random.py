"""Counter-based random numbers: the i-th number of a key, in any order, on any machine (SplitMix64)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import hot

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 1.0 / (1 << 53)


@hot
def word(key: np.uint64, i: int) -> np.uint64:
    """The `i`-th 64-bit word of the stream that belongs to `key`."""
    z = key + (np.uint64(i) + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@hot
def uniform(key: np.uint64, i: int) -> float:
    """The `i`-th number of `key` in [0, 1), 53 bits."""
    return float(word(key, i) >> np.uint64(11)) * _TO_UNIT


@hot
def below(key: np.uint64, i: int, n: int) -> int:
    """The `i`-th number of `key` in {0, ..., `n` - 1}; off from uniform by less than n / 2**53."""
    return int(uniform(key, i) * n)


@hot
def shuffle(key: np.uint64, first: int, n: int, items: Any) -> None:
    """Write 0..`n`-1 to `items` in random order (inside-out Fisher-Yates), from the numbers of `key` at `first` on."""
    draw(key, first, n, n, items)


@hot
def draw(key: np.uint64, first: int, n: int, m: int, items: Any) -> None:
    """Write `m` of 0..`n`-1 to `items`, every such list equally likely; `key` and `first` as in `shuffle`."""
    for i in range(m):
        j = below(key, first + i, i + 1)
        items[i] = items[j]
        items[j] = i
    for i in range(m, n):
        j = below(key, first + i, i + 1)
        if j < m:
            items[j] = i
