"""What each action reveals of each outcome: a symbol, or a distribution over symbols, as matrices of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.games.rationals import fraction

_LARGEST_SCALE = 1 << 31  # whole numbers of signal matrices are kept in 64 bits


class Observations:
    """The symbols of each action, numbered in order of appearance, and their chances in each outcome.

    >>> noisy = Observations([["?", "?"], [{"yes": "3/4", "no": "1/4"}, "no"]])
    >>> noisy.symbols, noisy.scale, noisy.matrix(1).tolist()
    ([['?'], ['yes', 'no']], 4, [[3, 0], [1, 4]])
    """

    def __init__(self, seen: list[list[Any]]) -> None:
        self.symbols: list[list[Any]] = []
        self._chances: list[list[dict[int, Fraction]]] = []
        self.certain = True
        for a, row in enumerate(seen):
            codes: dict[Any, int] = {}
            self._chances.append([])
            for x, entry in enumerate(row):
                where = f"signal[{a}, {x}]"
                drawn = isinstance(entry, Mapping)
                chances = _distribution(where, entry) if drawn else [(entry, Fraction(1))]
                self.certain &= not drawn
                self._chances[-1].append({_code(where, symbol, codes): p for symbol, p in chances})
            self.symbols.append(list(codes))
        every = (p for row in self._chances for chances in row for p in chances.values())
        self.scale = 1 if self.certain else math.lcm(*(p.denominator for p in every))
        if self.scale > _LARGEST_SCALE:
            raise ValueError(f"signal has chances with a common denominator of {self.scale}: too large")

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The number of the symbol for each action and outcome; ValueError where symbols are drawn."""
        if not self.certain:
            raise ValueError("the signals of this game are distributions: use signal_rows")
        return np.array([[next(iter(chances)) for chances in row] for row in self._chances], dtype=np.int64)

    def matrix(self, action: int) -> NDArray[np.int64]:
        """`scale` times the chance of each symbol of `action` in each outcome: symbols x outcomes."""
        row = self._chances[action]
        matrix = np.zeros((len(self.symbols[action]), len(row)), dtype=np.int64)
        for x, chances in enumerate(row):
            for code, p in chances.items():
                matrix[code, x] = int(p * self.scale)
        return matrix

    @cached_property
    def keys(self) -> list[bytes]:
        """For each action bytes that are equal where two actions reveal the same."""
        if self.certain:
            return [row.tobytes() for row in self.codes]
        return [self.matrix(a).tobytes() for a in range(len(self.symbols))]


def _distribution(where: str, entry: Mapping[Any, Any]) -> list[tuple[Any, Fraction]]:
    try:
        chances = {symbol: fraction(p) for symbol, p in entry.items()}
    except ValueError as problem:
        raise ValueError(f"{where}: {problem}") from None
    if not chances or min(chances.values()) < 0 or sum(chances.values()) != 1:
        raise ValueError(f"{where} must hold chances that sum to 1, got {dict(entry)!r}")
    return [(symbol, p) for symbol, p in chances.items() if p]


def _code(where: str, symbol: Any, codes: dict[Any, int]) -> int:
    if _is_nan(symbol):
        # NaN equals nothing, not even itself: each would be a signal of its own, and reveal everything.
        raise ValueError(f"{where} must be a number or a word, got NaN")
    try:
        return codes.setdefault(symbol, len(codes))
    except TypeError:
        raise ValueError(f"{where} must be a number or a word, got {symbol!r}") from None


def _is_nan(symbol: Any) -> bool:
    if isinstance(symbol, tuple):
        return any(map(_is_nan, symbol))
    return bool(isinstance(symbol, float | complex | Decimal | np.generic) and symbol != symbol)
