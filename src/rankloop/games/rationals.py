"""Exact arithmetic: decimal numbers become fractions, and spans are decided without rounding.

Whether two losses tie, or a difference of losses is observable, is a question of equality. Rounded numbers cannot
answer it, so everything that decides here is a fraction of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[Any]  # of Python's whole numbers, which are unbounded

LOG_BITS = 256  # binary digits of 1 / log2 n
_PRIME = (1 << 31) - 1


def fraction(value: Any) -> Fraction:
    """`value` exactly; of a float, the simplest fraction that rounds to it, of a float32 the shortest decimal.

    >>> fraction(0.1), fraction("1/3"), fraction(1 / 3), fraction(np.float32(0.1))
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 3), Fraction(1, 10))
    """
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        if not isinstance(value, float):  # of numpy, with fewer digits than a float has, or more
            return Fraction(np.format_float_scientific(value, unique=True, trim="-"))
        exact = Fraction(float(value))
        for digits in range(18):
            simple = exact.limit_denominator(10**digits)
            if float(simple) == float(value):
                return simple
        return exact
    if isinstance(value, np.integer | np.bool_):
        return Fraction(int(value))
    try:
        return Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise ValueError(f"{value!r} is not a number") from None


@cache
def log_discount(rank: int) -> Fraction:
    """1 / log2(1 + rank), to 256 binary digits.

    1 / log2(b^e) is made of 1 / log2(b), so that 1 / log2(9) is exactly half of 1 / log2(3): identities that hold for
    all bases hold for these fractions too, and no others are known among logarithms.

    >>> log_discount(1), log_discount(3), log_discount(8) * 2 == log_discount(2)
    (Fraction(1, 1), Fraction(1, 2), True)
    """
    base, power = _root(1 + rank)
    if base == 2:
        return Fraction(1, power)
    with localcontext() as context:
        context.prec = LOG_BITS // 2
        inverse = Decimal(2).ln() / Decimal(base).ln()
        return Fraction(int(inverse * 2**LOG_BITS), 2**LOG_BITS) / power


def _root(n: int) -> tuple[int, int]:
    for power in range(n.bit_length(), 1, -1):
        base = round(n ** (1 / power))
        if base**power == n:
            return base, power
    return n, 1


def whole_numbers(rows: Iterable[Iterable[Fraction]]) -> tuple[Whole, Fraction]:
    """The rows as whole numbers times one unit."""
    table = [list(row) for row in rows]
    unit = Fraction(1, math.lcm(*(value.denominator for row in table for value in row)))
    ints = [[value.numerator * (unit.denominator // value.denominator) for value in row] for row in table]
    matrix = np.empty((len(table), len(table[0])), dtype=object)
    matrix[:] = ints
    return matrix, unit


def eliminate(matrix: Whole) -> tuple[Whole, int, list[int]]:
    """Gauss and Jordan without fractions (Bareiss): the reduced rows times d, then d, and the pivot columns.

    >>> reduced, d, pivots = eliminate(np.array([[2, 4], [1, 3]], dtype=object))
    >>> (reduced // d).tolist(), pivots
    ([[1, 0], [0, 1]], [0, 1])
    """
    rows = np.array(matrix, dtype=object)
    d, rank = 1, 0
    pivots: list[int] = []
    for column in range(rows.shape[1]):
        if rank == len(rows):
            break
        below = [i for i in range(rank, len(rows)) if rows[i, column] != 0]
        if not below:
            continue
        rows[[rank, below[0]]] = rows[[below[0], rank]]
        pivot = rows[rank, column]
        others = np.arange(len(rows)) != rank
        rows[others] = (pivot * rows[others] - np.outer(rows[others, column], rows[rank])) // d
        d = pivot
        pivots.append(column)
        rank += 1
    return rows[:rank], d, pivots


class RowSpace:
    """The span of some rows of whole numbers: whether a vector is in it, how, and if not, why not.

    >>> seen = RowSpace(np.array([[1, 1, 0], [0, 1, 1]]))
    >>> seen.coefficients([1, 2, 1])
    [Fraction(1, 1), Fraction(1, 1)]
    >>> seen.coefficients([1, 1, 1]) is None, seen.unseen([1, 1, 1])
    (True, [1, -1, 1])
    """

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self.n_columns = int(rows.shape[1])
        self.chosen: list[int] = []
        distinct, first = np.unique(rows, axis=0, return_index=True)
        prime = _PRIME
        while not self._choose(distinct, prime):
            prime = _next_prime(prime)
        self.chosen = [int(first[i]) for i in self.chosen]

    def _choose(self, rows: NDArray[np.int64], prime: int) -> bool:
        # False where rows that depend on others modulo this prime only were left out: another prime will do.
        self.chosen, self.pivots = _independent(rows, prime)
        basis = rows[self.chosen].astype(object)
        size = len(self.chosen)
        inverse, self.d, _ = eliminate(
            np.hstack([basis[:, self.pivots], np.eye(size, dtype=int).astype(object)])
        )
        self._inverse = inverse[:, size:]  # d times the inverse
        self._reduced = self._inverse @ basis  # d times the reduced rows
        self.free = [column for column in range(self.n_columns) if column not in set(self.pivots)]
        return bool(
            (rows[:, self.pivots].astype(object) @ self._reduced == self.d * rows.astype(object)).all()
        )

    def coefficients(self, vector: Any) -> list[Fraction] | None:
        """Of the chosen rows, so that they add up to `vector`; None where no sum does."""
        target = np.asarray(vector, dtype=object)
        ahead = target[self.pivots]
        if (ahead @ self._reduced != self.d * target).any():
            return None
        return [Fraction(int(c), self.d) for c in ahead @ self._inverse]

    def unseen(self, vector: Any) -> list[int]:
        """A direction that no row sees, and `vector` does; ValueError where there is none."""
        target = np.asarray(vector, dtype=object)
        left = self.d * target - target[self.pivots] @ self._reduced
        for column in self.free:
            if left[column] != 0:
                return self.hidden([1 if other == column else 0 for other in self.free])
        raise ValueError("the vector is a sum of the rows")

    def hidden(self, of_free: list[int]) -> list[int]:
        """The direction that no row sees with these entries in the free columns, up to a factor."""
        direction = np.zeros(self.n_columns, dtype=object)
        direction[self.free] = [self.d * value for value in of_free]
        if self.pivots and self.free:
            direction[self.pivots] = -(self._reduced[:, self.free] @ np.array(of_free, dtype=object))
        shared = math.gcd(*(int(value) for value in direction)) * (1 if self.d > 0 else -1)
        return [int(value) // shared for value in direction] if shared else [0] * self.n_columns


def _independent(rows: NDArray[np.int64], prime: int) -> tuple[list[int], list[int]]:
    # Rows and columns whose minor is not zero modulo a prime, and so not zero.
    left = np.array(rows, dtype=np.int64) % prime
    order = np.arange(len(left))
    chosen: list[int] = []
    pivots: list[int] = []
    for column in range(left.shape[1]):
        rank = len(chosen)
        if rank == len(left):
            break
        below = np.flatnonzero(left[rank:, column])
        if len(below) == 0:
            continue
        first = rank + int(below[0])
        left[[rank, first]] = left[[first, rank]]
        order[[rank, first]] = order[[first, rank]]
        left[rank] = left[rank] * pow(int(left[rank, column]), -1, prime) % prime
        lower = left[rank + 1 :]
        touched = np.flatnonzero(lower[:, column])
        lower[touched] = (lower[touched] - lower[touched, column][:, None] * left[rank]) % prime
        chosen.append(int(order[rank]))
        pivots.append(column)
    return chosen, pivots


def _next_prime(prime: int) -> int:
    below = prime - 2
    while any(below % divisor == 0 for divisor in range(3, math.isqrt(below) + 1, 2)):
        below -= 2
    return below
