"""Vectors: sums, products and counts in lanes of a fixed order, as NumPy has them.

numba either adds one number after another, or lets the compiler choose an order that depends on the machine. Here the
order is fixed, so that a sum has the same bits everywhere: lane l of eight sums entries l, l + 8, l + 16 and so on, and
lanes are added in pairs, (0 + 4), (1 + 5), ..., then (0 + 4) + (2 + 6), ... then all.

Compiled kernels have the same arithmetic in vector instructions, which `llvm` writes; tests compare the two bit by bit.
What stands here runs where kernels are plain Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

LANES = 8
NARROW_LANES = 16  # of float32
TERMS = 8  # of the polynomials that `polynomials` evaluates


class Vector:
    """A function for kernels: what it does in Python; `llvm` has what it does when it is compiled."""

    def __init__(self, twin: Callable[..., Any]) -> None:
        functools.update_wrapper(self, twin)
        self.twin = twin

    def __call__(self, *arguments: Any) -> Any:
        return self.twin(*arguments)

    def __reduce__(self) -> str:
        return self.twin.__name__


def _in_pairs(lanes: Any) -> Any:
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]


def _in_lanes(values: Any) -> Any:
    # Of as many as fill the lanes, a sum in each of them.
    whole = len(values) // LANES * LANES
    return reduce(np.add, values[:whole].reshape(-1, LANES), np.zeros(LANES))


# Dot products and sums of any length. Of a dot product, what is left over goes to lane 0.


@Vector
def dot(x: Any, w: Any) -> Any:
    """The sum over j of x[j] * w[j]; x of float32 or float64 and not the shorter, w of float64."""
    products = x[: len(w)].astype(np.float64) * w
    lanes = _in_lanes(products)
    lanes[0] = reduce(np.add, products[len(w) // LANES * LANES :], lanes[0])
    return _in_pairs(lanes)


@Vector
def sparse_dot(data: Any, indices: Any, first: int, last: int, w: Any) -> Any:
    """The sum over entries e from first up to last of data[e] * w[indices[e]], in the lanes that `dot` has for them."""
    lanes, whole = np.zeros(LANES), len(w) // LANES * LANES
    for entry in range(first, last):
        j = indices[entry]
        lanes[j % LANES if j < whole else 0] += np.float64(data[entry]) * w[j]
    return _in_pairs(lanes)


@Vector
def sum_stretch(x: Any, j: int, start: int, stop: int) -> Any:
    """x[j, start] + ... + x[j, stop - 1]; what is left over is added at the end."""
    values = x[j, start:stop]
    return reduce(np.add, values[len(values) // LANES * LANES :], _in_pairs(_in_lanes(values)))


# Rows of float32 in sixteen lanes: what `rows` scores and adds up narrow rows with.
#
# Rows have at least sixteen entries. Weights and sums are in vectors: as many as fill them, `whole` entries, then
# sixteen for the last entries of a row. Some of these are among the others already: they have weight 0, and their sums
# are not read.


def _narrow_dots(number: int, features: Any, i: int, weights: Any, whole: int, scores: Any) -> None:
    d = features.shape[1]
    for row in range(i, i + number):
        products = features[row, :whole] * weights[:whole]
        lanes = reduce(np.add, products.reshape(-1, NARROW_LANES), np.zeros(NARROW_LANES, np.float32))
        if whole < d:
            lanes = lanes + features[row, d - NARROW_LANES :] * weights[whole : whole + NARROW_LANES]
        scores[row] = _in_pairs(lanes)


@Vector
def narrow_dot(features: Any, i: int, weights: Any, whole: int, scores: Any) -> None:
    """scores[i] = row i times the weights."""
    _narrow_dots(1, features, i, weights, whole, scores)


@Vector
def narrow_dots(features: Any, i: int, weights: Any, whole: int, scores: Any) -> None:
    """The same of rows i to i + 3, side by side, so that no addition waits for the one before it."""
    _narrow_dots(4, features, i, weights, whole, scores)


def _weigh(number: int, features: Any, i: int, weights: Any, whole: int, sums: Any) -> None:
    d = features.shape[1]
    for row in range(i, i + number):
        weight = np.float32(weights[row])
        sums[:whole] += weight * features[row, :whole]
        if whole < d:
            sums[whole : whole + NARROW_LANES] += weight * features[row, d - NARROW_LANES :]


@Vector
def weigh_row(features: Any, i: int, weights: Any, whole: int, sums: Any) -> None:
    """To each of `sums` the entry of row i, times the row's weight."""
    _weigh(1, features, i, weights, whole, sums)


@Vector
def weigh_rows(features: Any, i: int, weights: Any, whole: int, sums: Any) -> None:
    """The same of rows i to i + 3, one after the other, in one pass over the sums."""
    _weigh(4, features, i, weights, whole, sums)


@Vector
def add_four(features: Any, i: int, out: Any) -> None:
    """To `out`, float64, the entries of rows i to i + 3, of any length: two and two in float32, then all."""
    a, b, c, d = features[i : i + 4]
    out += ((a + b) + (c + d)).astype(np.float64)


# Sorting: every number meets eight others at once, whose counts stay in one register.


@Vector
def count_above(values: Any, n: int, counts: Any) -> None:
    """Into counts[i], for the first n values, at least eight: how many of them are larger than values[i]."""
    counts[:n] = (values[:n] > values[:n, None]).sum(axis=1)


# Whole rows of matrices, as long as a multiple of eight: entry by entry, and dot products.
#
# In plain code a vector is read right after its entries were written one by one, which the processor waits for.


@Vector
def fill_row(out: Any, i: int, x: Any, beyond: float) -> None:
    """out[i] = x, and `beyond` where x has no entry any more."""
    number = min(len(x), out.shape[1])
    out[i] = beyond
    out[i, :number] = x[:number]


@Vector
def scale(values: Any, number: int, factor: float) -> None:
    """Multiply the first `number` entries, a multiple of eight, of a vector or a matrix."""
    values.reshape(-1)[:number] *= factor


@Vector
def add_row(out: Any, i: int, x: Any, j: int, factor: float) -> None:
    """out[i] += factor * x[j]."""
    out[i] += factor * x[j]


@Vector
def multiply_rows(out: Any, i: int, x: Any, j: int, y: Any, k: int) -> None:
    """out[i] = x[j] * y[k]."""
    out[i] = x[j] * y[k]


@Vector
def inverse_cubes(out: Any, i: int, x: Any, j: int, y: Any, k: int, c: float, t: float) -> None:
    """out[i] = t / (x[j] + y[k] + c)^3."""
    inverse = 1.0 / (x[j] + c + y[k])
    out[i] = t * inverse * inverse * inverse


@Vector
def sum_rows(out: Any, i: int, x: Any, j: int, y: Any, number: int) -> None:
    """out[i] = x[j] + y[0] + y[1] + ..., `number` rows of y."""
    out[i] = reduce(np.add, y[:number], x[j])


@Vector
def subtract_rows(out: Any, i: int, y: Any, weights: Any, number: int) -> None:
    """out[i] = out[i] - weights[0] * y[0] - weights[1] * y[1] - ..., `number` rows of y."""
    for a in range(number):
        out[i] -= weights[a] * y[a]


@Vector
def row_dot(x: Any, i: int, y: Any, j: int) -> Any:
    """The sum over k of x[i, k] * y[j, k]."""
    return _in_pairs(reduce(np.add, (x[i] * y[j]).reshape(-1, LANES)))


@Vector
def row_dots(out: Any, i: int, x: Any, j: int, y: Any, number: int) -> None:
    """out[i, b] = the sum over k of x[j, k] * y[b, k], for each b below `number`; rows of `out` have any length."""
    for b in range(number):
        out[i, b] = row_dot(x, j, y, b)


# What FTRL-PBM's minimiser does in every step of Newton's method: see `tsallis` and `list_plan`.


@Vector
def find_tight_slots(u: Any, rows: Any, most: float, tight: Any) -> int:
    """Write to `tight` where `u` is not zero or the row sum not at most `most`; returns how many, -1 without space.

    Both arrays are as long as a multiple of eight. Few slots are tight, and those that are not cost next to nothing.
    """
    places = np.flatnonzero((u != 0.0) | ~(rows <= most))
    if len(places) > len(tight):
        return -1
    tight[: len(places)] = places
    return len(places)


@Vector
def polynomials(sums: Any, j: int, d: float, t: float, n_bins: int, whole: Any) -> None:
    """whole[j, b] = t times the sum over k of sums[j, k, b] d^k, for `n_bins` bins and up to seven more."""
    bins = -(-n_bins // LANES) * LANES
    value = sums[j, TERMS - 1, :bins]
    for k in range(TERMS - 2, -1, -1):
        value = value * d + sums[j, k, :bins]
    whole[j, :bins] = value * t


@Vector
def evaluate_column(L: Any, j: int, u: Any, v: float, t: float, weight: float, x: Any, rows: Any) -> Any:
    """x[j] = t / D^2, D = L[j] + u + v, with one division an entry, added to `rows`, which column 0 begins.

    Returns the sums of x over the items and of h = x / D, which counts where the multiplier is zero, times `weight`.
    """
    inverse = 1.0 / (L[j] + u + v)
    x[j] = t * inverse * inverse
    rows[:] = x[j] if j == 0 else rows + x[j]
    h = x[j] * inverse * np.where(u == 0.0, weight, 0.0)
    whole = len(u) // LANES * LANES
    return tuple(reduce(np.add, part[whole:], _in_pairs(_in_lanes(part))) for part in (x[j], h))
