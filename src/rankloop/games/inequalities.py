"""Strict inequalities, decided: a point that satisfies them, or a mixture that shows there is none.

Asked is for p > 0 with D p > 0 and e p = 0, where e has both signs. By Motzkin's theorem there is such a p, or else
there are weights lambda >= 0, not all zero, and a number s with  lambda D <= s e  in every column, but not both. HiGHS
finds a candidate for the one or the other in floating point, which is then confirmed in whole numbers; where it cannot
be, a simplex in whole numbers decides.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from rankloop.games.rationals import Whole, eliminate

Floats = NDArray[np.float64]

_GRID = 1 << 50
_CLEAR = 1e-7  # below, an optimum of HiGHS is not told from zero
_SURE = 1e-9  # a sum of floats this far from zero has the right sign: rounding is below 1e-12
_DENSE = 20_000  # entries; beyond, the matrix goes to HiGHS as a sparse one


class Mixture(NamedTuple):
    """weights D <= s e in every column."""

    weights: dict[int, Fraction]  # by row of D
    s: Fraction


Point = tuple[int, ...]  # up to a factor; its sum is not 1


def decide(D: Whole, e: Whole | None = None, *, interior: bool = True) -> Point | Mixture:
    """P with D p > 0 and e p = 0, or a mixture that excludes it; p > 0 if `interior`, otherwise p >= 0."""
    if len(D) == 0 and e is None:
        return (1,) * int(D.shape[1])
    found = _by_highs(D, e, interior=interior)
    return found if found is not None else by_simplex(D, e, interior=interior)


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
    system = np.array([[column[x] for column in columns] for x in tight], dtype=object).reshape(
        len(tight), len(columns)
    )
    reduced, d, pivots = eliminate(system)
    free = [j for j in range(len(columns)) if j not in pivots]
    if len(free) != 1:
        return None  # more than one candidate: let the simplex choose
    solution = [Fraction(0)] * len(columns)
    solution[free[0]] = Fraction(1)
    for row, pivot in zip(reduced, pivots, strict=True):
        solution[pivot] = Fraction(-int(row[free[0]]), int(d))
    sign = 1 if sum(solution[: len(rows)]) > 0 else -1
    found = Mixture(
        {row: sign * value for row, value in zip(rows, solution, strict=False) if value},
        sign * solution[-1] if e is not None else Fraction(0),
    )
    return found if excludes(found, D, e) else None


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
    dual = {
        variable - m - 1: Fraction(int(T[-1, j]), int(d)) for j, variable in enumerate(across) if variable > m
    }
    weights = {i: dual[i] for i in range(n) if dual.get(i)}
    return Mixture(
        weights, dual.get(n, Fraction(0)) - dual.get(n + 1, Fraction(0)) if e is not None else Fraction(0)
    )
