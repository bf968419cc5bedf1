"""Exact arithmetic: fractions, spans, strict inequalities and measures, all decided without rounding.

Whether two losses tie, or a difference of losses is observable, is a question of equality. Rounded numbers cannot
answer it, so everything that decides here is a fraction of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from rankloop.measures import Measure

Whole = NDArray[Any]  # of Python's whole numbers, which are unbounded
Floats = NDArray[np.float64]
Point = tuple[int, ...]  # up to a factor; its sum is not 1

LOG_BITS = 256  # binary digits of 1 / log2 n
_PRIME = (1 << 31) - 1
_GRID = 1 << 50
_CLEAR = 1e-7  # below, an optimum of HiGHS is not told from zero
_SURE = 1e-9  # a sum of floats this far from zero has the right sign: rounding is below 1e-12
_DENSE = 20_000  # entries; beyond, the matrix goes to HiGHS as a sparse one
_ROUNDING = 32  # roundings that a computed value may have gone through
_LONGEST = 10_000  # denominator of a fraction that a float is taken for
_CHANCE = 1e-6  # that a number which is none is as near to one
_FEWEST_BITS = 256
_MOST_WORK = 1 << 21  # cut-off times binary digits: more takes more than a second or so


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


def recovered(value: Any) -> Fraction:
    """`value` exactly; of a float that was computed, the one short fraction next to it, or a ValueError.

    Sums of rounded numbers differ by a little where they should be equal, and lose what adds up to zero. So a float
    counts as a fraction only where chance would put one in a million as near to one as short. Others are refused.

    >>> recovered(1 / 2 + 1 / 3), recovered(0.1 + 0.2)
    (Fraction(5, 6), Fraction(3, 10))
    """
    if not isinstance(value, float | np.floating) or float(value).is_integer():
        return fraction(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    off = _ROUNDING * float(np.finfo(type(value)).eps) * max(1.0, abs(float(value)))
    longest = max(1, min(_LONGEST, math.isqrt(int(_CHANCE / off))))
    decimals = 10 ** min(8, max(0, math.floor(math.log10(_CHANCE / off))))
    exact = Fraction(float(value))
    for short in (exact.limit_denominator(longest), Fraction(round(exact * decimals), decimals)):
        if abs(short - exact) <= off:
            return short
    raise ValueError(
        f"{value!r} is a rounded number, and the class of a game depends on exact sums: give fractions, "
        "such as fractions.Fraction(1, 3)"
    )


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


class Mixture(NamedTuple):
    """weights D <= s e in every column."""

    weights: dict[int, Fraction]  # by row of D
    s: Fraction


def decide(D: Whole, e: Whole | None = None, *, interior: bool = True) -> Point | Mixture:
    """P with D p > 0 and e p = 0, or a mixture that excludes it; p > 0 if `interior`, otherwise p >= 0.

    e has both signs. By Motzkin's theorem there is such a p, or else there are weights lambda >= 0, not all zero, and
    a number s with  lambda D <= s e  in every column, but not both. HiGHS finds a candidate for the one or the other
    in floating point, which is then confirmed in whole numbers; where it cannot be, a simplex in whole numbers decides.
    """
    if len(D) == 0 and e is None:
        return (1,) * int(D.shape[1])
    return _by_highs(D, e, interior=interior) or by_simplex(D, e, interior=interior)


def scaled(rows: Whole) -> tuple[Floats, list[int]]:
    """Each row divided by its largest entry, as floats, and these entries. Division of whole numbers rounds once."""
    tops = [int(top) or 1 for top in np.abs(rows).max(axis=1, initial=0)]
    return np.array([row / top for row, top in zip(rows, tops, strict=True)], dtype=np.float64), tops


def _by_highs(D: Whole, e: Whole | None, *, interior: bool) -> Point | Mixture | None:
    n, m = D.shape
    F, tops = scaled(D)
    # p = q + epsilon, q >= 0 (interior); maximise epsilon with D p >= epsilon, e p = 0, sum p = 1.
    shift = F.sum(axis=1) if interior else np.zeros(n)
    above = np.column_stack([-F, 1.0 - shift])
    equal = [np.append(np.ones(m), float(m) if interior else 0.0)]
    if e is not None:
        (E,), (top,) = scaled(e[None, :])
        equal.append(np.append(E, E.sum() if interior else 0.0))
    result = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=csr_array(above) if above.size > _DENSE else above,
        b_ub=np.zeros(n),
        A_eq=np.array(equal),
        b_eq=np.append(1.0, np.zeros(len(equal) - 1)),
        bounds=[(0, None)] * m + [(None, 1)],
        method="highs",
    )
    if result.status != 0:
        return None
    if -result.fun > _CLEAR:
        p = result.x[:m] + (result.x[m] if interior else 0.0)
        return confirm_point(p, D, F, e, interior=interior)
    weights = -np.asarray(result.ineqlin.marginals)
    level = np.asarray(result.eqlin.marginals)[1] if e is not None else 0.0
    gap = weights @ F + (level * E if e is not None else 0.0)
    shared = max(tops)
    weights = weights * [shared / own for own in tops]  # of the rows of D, no longer of F
    if e is not None:
        level *= shared / top
    return _confirm_mixture(weights, level, gap, D, e)


def confirm_point(p: Floats, D: Whole, F: Floats, e: Whole | None, *, interior: bool = True) -> Point | None:
    """`p` as whole numbers that satisfy everything exactly, or None. F is D up to the scale of its rows."""
    grid = [round(float(x) * _GRID) for x in p / p.sum()]
    if e is not None:
        missing = sum(int(a) * x for a, x in zip(e, grid, strict=True))
        if missing:
            # Put it right where that takes the smallest step.
            against = max(range(len(grid)), key=lambda x: -int(e[x]) if missing > 0 else int(e[x]))
            size = abs(int(e[against]))
            if size == 0:
                return None
            grid = [size * x for x in grid]
            grid[against] += abs(missing)
    if min(grid) < (1 if interior else 0) or not any(grid):
        return None
    point = tuple(grid)
    return point if positive(point, D, F) else None


def positive(point: Point, D: Whole, F: Floats) -> bool:
    """Whether D p > 0: in floating point where rounding cannot change the answer, otherwise in whole numbers."""
    total = sum(point)
    p = np.array([x / total for x in point])
    values = F @ p
    for i in np.flatnonzero(values <= _SURE):
        if values[i] < -_SURE or sum(int(a) * x for a, x in zip(D[i], point, strict=True) if a) <= 0:
            return False
    return True


def _confirm_mixture(weights: Floats, level: float, gap: Floats, D: Whole, e: Whole | None) -> Mixture | None:
    largest = weights.max(initial=0.0)
    if not (largest > 0 and np.isfinite(largest)):
        return None
    rows = [int(i) for i in np.flatnonzero(weights > 1e-7 * largest)]
    simple = {i: Fraction(float(weights[i] / largest)).limit_denominator(1000) for i in rows}
    guess = Mixture(simple, Fraction(float(-level / largest)).limit_denominator(1000))
    if excludes(guess, D, e):
        return guess
    tight = np.flatnonzero(gap > -1e-7 * np.abs(gap).max(initial=1.0))
    columns = [D[i] for i in rows] + ([-e] if e is not None else [])
    entries = [[column[x] for column in columns] for x in tight]
    system = np.array(entries, dtype=object).reshape(len(tight), len(columns))
    reduced, d, pivots = eliminate(system)
    free = [j for j in range(len(columns)) if j not in pivots]
    if len(free) != 1:
        return None  # more than one candidate: let the simplex choose
    solution = [Fraction(0)] * len(columns)
    solution[free[0]] = Fraction(1)
    for row, pivot in zip(reduced, pivots, strict=True):
        solution[pivot] = Fraction(-int(row[free[0]]), int(d))
    sign = 1 if sum(solution[: len(rows)]) > 0 else -1
    exact = {row: sign * value for row, value in zip(rows, solution, strict=False) if value}
    mixture = Mixture(exact, sign * solution[-1] if e is not None else Fraction(0))
    return mixture if excludes(mixture, D, e) else None


def excludes(mixture: Mixture, D: Whole, e: Whole | None) -> bool:
    """Whether the weights are none negative, not all zero, and weights D <= s e in every column."""
    weights, s = mixture
    if not weights or min(weights.values()) < 0 or not any(weights.values()):
        return False
    total: Any = np.zeros(D.shape[1], dtype=object)
    for row, weight in weights.items():
        total = total + weight * D[row]
    return bool((total <= (s * e if e is not None else 0)).all())


def by_simplex(D: Whole, e: Whole | None = None, *, interior: bool = True) -> Point | Mixture:
    """The same by a simplex in whole numbers (Edmonds' pivots, Bland's rule): slow and never wrong."""
    n, m = D.shape
    shift = D.sum(axis=1) if interior else np.zeros(n, dtype=object)
    rows = [[-int(a) for a in D[i]] + [1 - int(shift[i]), 0] for i in range(n)]
    if e is not None:
        total = int(e.sum()) if interior else 0
        rows += [[sign * int(a) for a in e] + [sign * total, 0] for sign in (1, -1)]
    rows.append([1] * m + [m if interior else 0, 1])
    rows.append([0] * m + [-1, 0])  # maximise epsilon
    if not interior:
        rows.insert(-1, [0] * m + [1, 1])
    T = np.array(rows, dtype=object)
    d = 1
    across = list(range(m + 1))  # which variable a column stands for
    down = list(range(m + 1, m + len(T)))  # and a row; from m + 1 on they are slacks
    while True:
        entering = [j for j in range(m + 1) if T[-1, j] < 0]
        if not entering:
            break
        c = min(entering, key=lambda j: across[j])
        leaving = [i for i in range(len(T) - 1) if T[i, c] > 0]
        r = min(leaving, key=lambda i: (Fraction(int(T[i, -1]), int(T[i, c])), down[i]))
        pivot, row, column = T[r, c], T[r].copy(), T[:, c].copy()
        T = (T * pivot - np.outer(column, row)) // d
        T[r] = row
        T[:, c] = -column
        T[r, c] = d
        d = pivot
        across[c], down[r] = down[r], across[c]
    if T[-1, -1] > 0:
        values = {variable: int(T[i, -1]) for i, variable in enumerate(down)}
        epsilon = values.get(m, 0) if interior else 0
        return tuple(values.get(x, 0) + epsilon for x in range(m))
    slacks = ((j, variable - m - 1) for j, variable in enumerate(across) if variable > m)
    dual = {slack: Fraction(int(T[-1, j]), int(d)) for j, slack in slacks}
    weights = {i: dual[i] for i in range(n) if dual.get(i)}
    s = dual.get(n, Fraction(0)) - dual.get(n + 1, Fraction(0)) if e is not None else Fraction(0)
    return Mixture(weights, s)


# The measures (2015, section 3; errata A6, A16, A17).


def exact_value(
    measure: Measure, order: Sequence[int], relevance: Sequence[int], *, max_grade: int = 1
) -> Fraction:
    """The value of `order`; logarithms are taken to 256 binary digits.

    >>> from rankloop import measures
    >>> exact_value(measures.get("map"), [0, 1, 2], [0, 1, 1])
    Fraction(7, 12)
    """
    shown = [int(relevance[item]) for item in order]
    top = shown[: measure.cutoff]
    match measure.family:
        case "sum_loss":
            return Fraction(sum(rank * r for rank, r in enumerate(shown, 1)))
        case "pairwise_loss":
            return _wrong_pairs(shown)
        case "auc":
            pairs = sum(shown) * (len(shown) - sum(shown))
            return _wrong_pairs(shown) / pairs if pairs else Fraction(0)
        case "dcg":
            return _dcg(top)
        case "ndcg":
            ideal = _dcg(sorted(shown, reverse=True)[: measure.cutoff])
            return _dcg(top) / ideal if ideal else Fraction(1)
        case "precision":
            return Fraction(sum(top))
        case "average_precision":
            return _average_precision(top, sum(shown))
        case "err":
            return _err(top, max_grade)
    raise KeyError(measure.family)


def discounts(measure: Measure, n_items: int) -> list[Fraction]:
    """The weight of gain at each position, f; the rank itself for losses."""
    if measure.kind < 0:
        raise ValueError(f"{measure.name} is not of the form f(order) . g(relevance)")
    cutoff = measure.cutoff or n_items
    ranks = range(1, n_items + 1)
    if measure.family in ("dcg", "ndcg"):
        return [log_discount(rank) if rank <= cutoff else Fraction(0) for rank in ranks]
    if measure.family == "precision":
        return [Fraction(int(rank <= cutoff)) for rank in ranks]
    return [Fraction(rank) for rank in ranks]


def _dcg(shown: list[int]) -> Fraction:
    return sum(((2**r - 1) * log_discount(rank) for rank, r in enumerate(shown, 1) if r), Fraction(0))


def _wrong_pairs(shown: list[int]) -> Fraction:
    above: dict[int, int] = {}
    pairs = 0
    for r in shown:
        pairs += sum(count for grade, count in above.items() if grade < r)
        above[r] = above.get(r, 0) + 1
    return Fraction(pairs)


def _average_precision(top: list[int], n_relevant: int) -> Fraction:
    hits, total = 0, Fraction(0)
    for rank, r in enumerate(top, 1):
        if r:
            hits += 1
            total += Fraction(hits, rank)
    return total / n_relevant if n_relevant else Fraction(1)


def _err(top: list[int], max_grade: int) -> Fraction:
    reading, value = Fraction(1), Fraction(0)
    for rank, r in enumerate(top, 1):
        if r:
            stop = Fraction(2**r - 1, 2**max_grade)
            value += reading * stop / rank
            reading *= 1 - stop
    return value


def mean_gains(
    measure: Measure, vectors: Sequence[Sequence[int]], chances: Sequence[Fraction]
) -> list[Fraction]:
    """E[g(relevance)] of a separable measure, binary: r over what depends on the number of relevant items alone."""
    m = len(vectors[0])
    mean = [Fraction(0)] * m
    by_count: dict[int, dict[int, Fraction]] = {}
    for vector, chance in zip(vectors, chances, strict=True):
        of_item = by_count.setdefault(sum(vector), {})
        for item, r in enumerate(vector):
            if r:
                of_item[item] = of_item.get(item, Fraction(0)) + chance
    for s, of_item in by_count.items():
        unit = _divisor(measure, s, m)
        for item, chance in of_item.items():
            mean[item] += chance / unit
    return mean


def _divisor(measure: Measure, s: int, m: int) -> Fraction:
    # What r is divided by where s items are relevant; with all of them relevant, no order of auc matters.
    if measure.family == "ndcg" and s:
        return _dcg([1] * min(s, measure.cutoff or s))
    if measure.family == "auc":
        return Fraction(s * (m - s)) or Fraction(1)
    return Fraction(1)


# Differences of 1 / DCG with a cut-off: whether they are zero, decided with bounds on every rounding.


@cache
def _ideals(n: int, bits: int) -> tuple[int, ...]:
    # S_j = sum of 1 / log2(1 + i) for i <= j, in units of 2^-bits; each is off by less than 2 j units.
    with localcontext() as context:
        context.prec = math.ceil(bits * 0.30103) + 20
        scale = Decimal(2).ln() * Decimal(2**bits)
        sums = [0]
        for i in range(1, n + 1):
            sums.append(sums[-1] + int(scale / Decimal(i + 1).ln()))
    return tuple(sums)


def difference_is_nonzero(order: int, *, start: int, cutoff: int, base: bool = False) -> bool | None:
    """Whether the difference of this order of s -> 1 / Z(min(s, cutoff)) at `start` is not zero; None if undecided.

    Z(s) = S_s, the largest DCG of s relevant items, or S_cutoff + 2 S_s with `base`: all items have grade 1 or 2,
    and s have 2. True is a proof: the sum is further from zero than its rounding can be.

    >>> difference_is_nonzero(5, start=1, cutoff=3)
    True
    """
    # From the cut-off on the sequence is constant: only these differ from its last value.
    terms = cutoff - start
    if terms <= 0:
        return order == 0
    bits = _FEWEST_BITS
    while bits * cutoff <= _MOST_WORK:
        one = 1 << bits
        sums = _ideals(cutoff, bits)
        bounds = [sums[cutoff] + 2 * s if base else s for s in sums]
        # Z >= 1 is off by at most 6 * cutoff units, so 1 / Z by that and one unit more.
        inverse = [one * one // Z if Z else 0 for Z in bounds]
        off = 2 * (6 * cutoff + 2)
        total, size, binomial = 0, 0, 1
        for j in range(min(terms, order + 1)):
            total += (-1) ** j * binomial * (inverse[start + j] - inverse[cutoff])
            size += binomial
            binomial = binomial * (order - j) // (j + 1)
        if abs(total) > off * size:
            return True
        bits *= 2
    return None
