"""Rows of features in a kernel: dense in float64 or float32, or sparse, scored and added without a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from rankloop.kernels.jit import IN_CALLERS, inlined
from rankloop.kernels.vectors import NARROW_LANES as _LANES
from rankloop.kernels.vectors import add_four, dot, narrow_dot, narrow_dots, sparse_dot, weigh_row, weigh_rows

# Rows of features of which most are zero, kept as the others. It needs no compiler, so that data can have them.


class SparseRows(NamedTuple):
    """Rows of features as CSR, such as `scipy.sparse` keeps them.

    Parameters
    ----------
    data : ndarray of float
        The entries that are not zero, float32 or float64, row after row.
    indices : ndarray of int
        The feature of each entry, rising within a row.
    indptr : ndarray of int
        Row i has the entries from ``indptr[i]`` up to, not including, ``indptr[i + 1]``.
    shape : tuple of int
        The number of rows, and the number of features.

    Examples
    --------
    >>> SparseRows([3.0, 1.0, 2.0], [0, 1, 3], [0, 1, 3], (2, 4)).shape  # 3 0 0 0 and 0 1 0 2
    (2, 4)
    """

    data: NDArray[Any]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    shape: tuple[int, int]


# What the kernels of linear rankers do with sparse rows of features.
#
# Each function has a twin for dense rows, and gives the same bits: a zero adds nothing to a sum, and what is left is
# added in the same order. Row i has the entries from `indptr[i]` up to, not including, `indptr[i + 1]`; its columns
# rise.


def sparse_score(features: Any, w: Any, scores: Any) -> None:
    """Scores X w, in the lanes of the dense dot product."""
    for i in range(features.shape[0]):
        first, last = features.indptr[i], features.indptr[i + 1]
        scores[i] = sparse_dot(features.data, features.indices, first, last, w)


def sparse_combine(features: Any, weights: Any, out: Any) -> None:
    """X^T v, row after row."""
    for j in range(features.shape[1]):
        out[j] = 0.0
    for i in range(features.shape[0]):
        weight = weights[i]
        for entry in range(features.indptr[i], features.indptr[i + 1]):
            out[features.indices[entry]] += weight * features.data[entry]


def sparse_copy_row(features: Any, i: Any, out: Any) -> None:
    """Row i with its zeros."""
    for j in range(features.shape[1]):
        out[j] = 0.0
    for entry in range(features.indptr[i], features.indptr[i + 1]):
        out[features.indices[entry]] = features.data[entry]


def sparse_bounds(features: Any, least: Any, most: Any) -> None:
    """The least and the largest entry of every feature, zeros among them."""
    n, d = features.shape
    first, last = features.indptr[0], features.indptr[n]
    for j in range(d):
        most[j] = 0.0
    for entry in range(first, last):
        most[features.indices[entry]] += 1.0  # how many rows have an entry
    for j in range(d):
        everywhere = most[j] == n
        least[j] = np.inf if everywhere else 0.0
        most[j] = -np.inf if everywhere else 0.0
    for entry in range(first, last):
        j = features.indices[entry]
        least[j] = min(least[j], features.data[entry])
        most[j] = max(most[j], features.data[entry])


def sparse_plain_dot(features: Any, i: Any, w: Any) -> Any:
    """Row i times w, one entry after the other."""
    total = 0.0
    for entry in range(features.indptr[i], features.indptr[i + 1]):
        total += features.data[entry] * w[features.indices[entry]]
    return total


# What the kernels of linear rankers do with rows of features, dense or sparse: the compiler chooses by their type.


def score(features: Any, w: Any, scores: Any) -> None:
    """Scores X w."""
    for i in range(features.shape[0]):
        scores[i] = dot(features[i], w)


def combine(features: Any, weights: Any, out: Any) -> None:
    """X^T v, row after row; four in one pass over `out`, whose place in memory would otherwise cost up to half."""
    n, d = features.shape
    for j in range(d):
        out[j] = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):
        v_0, v_1, v_2, v_3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(d):
            first_two = (out[j] + v_0 * features[i, j]) + v_1 * features[i + 1, j]
            out[j] = (first_two + v_2 * features[i + 2, j]) + v_3 * features[i + 3, j]
    for i in range(whole, n):
        weight = weights[i]
        for j in range(d):
            out[j] += weight * features[i, j]


def copy_row(features: Any, i: Any, out: Any) -> None:
    """Row i."""
    for j in range(features.shape[1]):
        out[j] = features[i, j]


def bounds(features: Any, least: Any, most: Any) -> None:
    """The least and the largest entry of every feature."""
    n, d = features.shape
    for j in range(d):
        least[j] = features[0, j]
        most[j] = features[0, j]
    for i in range(1, n):
        for j in range(d):
            least[j] = min(least[j], features[i, j])
            most[j] = max(most[j], features[i, j])


def plain_dot(features: Any, i: Any, w: Any) -> Any:
    """Row i times w, one entry after the other."""
    total = 0.0
    for j in range(len(w)):
        total += features[i, j] * w[j]
    return total


def _chosen(features: Any, dense: Callable[..., Any], sparse: Callable[..., Any]) -> Callable[..., Any]:
    return sparse if getattr(features, "instance_class", None) is SparseRows else dense


@overload(score, jit_options=IN_CALLERS)
def _score(features: Any, w: Any, scores: Any) -> Any:
    return _chosen(features, score, sparse_score)


@overload(combine, jit_options=IN_CALLERS)
def _combine(features: Any, weights: Any, out: Any) -> Any:
    return _chosen(features, combine, sparse_combine)


@overload(copy_row, jit_options=IN_CALLERS)
def _copy_row(features: Any, i: Any, out: Any) -> Any:
    return _chosen(features, copy_row, sparse_copy_row)


@overload(bounds, jit_options=IN_CALLERS)
def _bounds(features: Any, least: Any, most: Any) -> Any:
    return _chosen(features, bounds, sparse_bounds)


@overload(plain_dot, jit_options=IN_CALLERS)
def _plain_dot(features: Any, i: Any, w: Any) -> Any:
    return _chosen(features, plain_dot, sparse_plain_dot)


# Scores and sums of rows of features that are kept in float32, in float32: half the bytes, twice as many at a time.
#
# As in `vector_sums` the order of every sum is fixed, so that it is the same on every machine: sixteen lanes, lane l
# sums entries l, l + 16, l + 32 and so on; what is left over at the end of a row is added to the last lanes; lanes
# are added in pairs. Four rows go side by side, so that no addition waits for the one before it. A sum too large for
# float32 is made again in float64, and rows in float64 are added up as everywhere else.
#
# `scratch` is float32: the weights, sixteen of them for the end of a row, sixteen lanes; and the same for sums.


def narrow_scratch(d: int) -> NDArray[np.float32]:
    """Room for `score` and `combine` of rows of `d` features.

    Parameters
    ----------
    d : int
        The number of features.

    Returns
    -------
    ndarray of float
        The array; what is in it means nothing between calls.
    """
    return np.empty(2 * (d + 2 * _LANES), np.float32)


def narrow_score(features: Any, w: Any, scratch: Any, scores: Any) -> None:
    """Scores X w.

    Parameters
    ----------
    features : ndarray or SparseRows
        The rows, float32 or float64.
    w : ndarray of float
        The weights.
    scratch : ndarray of float
        What `scratch` gave.
    scores : ndarray of float
        Where the scores go.
    """
    score(features, w, scores)


def narrow_combine(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    """X^T v, row after row.

    Parameters
    ----------
    features : ndarray or SparseRows
        The rows, float32 or float64.
    weights : ndarray of float
        A number for each row, v.
    scratch : ndarray of float
        What `scratch` gave.
    out : ndarray of float
        Where the sums go.
    """
    combine(features, weights, out)


def average(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    """The mean row. What all rows share is its own mean, to the bit: four equal numbers have an exact sum.

    Parameters
    ----------
    features : ndarray or SparseRows
        The rows, float32 or float64.
    weights : ndarray of float
        Room for a number for each row.
    scratch : ndarray of float
        What `scratch` gave.
    out : ndarray of float
        Where the mean goes.
    """
    _wide_average(features, weights, out)


@inlined
def _wide_average(features: Any, weights: Any, out: Any) -> None:
    n = features.shape[0]
    for i in range(n):
        weights[i] = 1.0 / n
    combine(features, weights, out)


def _narrow_score(features: Any, w: Any, scratch: Any, scores: Any) -> None:
    n, d = features.shape
    whole = _narrow_weights(w, scratch)
    if d < _LANES:
        for i in range(n):
            _score_short(features, i, scratch, scores)
    elif n < 4:
        for i in range(n):
            narrow_dot(features, i, scratch, whole, scores)
    else:
        for i in range(0, n, 4):
            narrow_dots(features, min(i, n - 4), scratch, whole, scores)  # the last four may be scored twice
    if not _all_finite(scores, n):
        score(features, w, scores)


@inlined
def _score_short(features: Any, i: int, scratch: Any, scores: Any) -> None:
    d = features.shape[1]
    lanes = scratch[d + _LANES : d + 2 * _LANES]
    for lane in range(_LANES):
        lanes[lane] = np.float32(0.0)
    for j in range(d):
        lanes[_LANES - d + j] = features[i, j] * scratch[_LANES - d + j]
    scores[i] = _add_in_pairs(lanes)


@inlined
def _no_sums(scratch: Any, whole: int) -> Any:
    # In the order of the weights: as many as fill the lanes, then sixteen for the last entries of a row.
    sums = scratch[len(scratch) // 2 :]
    for j in range(whole + _LANES):
        sums[j] = np.float32(0.0)
    return sums


@inlined
def _add_four(features: Any, i: int, weights: Any, whole: int, sums: Any) -> None:
    if features.shape[1] < _LANES:
        for row in range(i, i + 4):
            _add_short(features, row, weights, sums)
    else:
        weigh_rows(features, i, weights, whole, sums)


@inlined
def _add_one(features: Any, i: int, weights: Any, whole: int, sums: Any) -> None:
    if features.shape[1] < _LANES:
        _add_short(features, i, weights, sums)
    else:
        weigh_row(features, i, weights, whole, sums)


@inlined
def _add_short(features: Any, i: int, weights: Any, sums: Any) -> None:
    d, weight = features.shape[1], np.float32(weights[i])
    for j in range(d):
        sums[_LANES - d + j] += weight * features[i, j]


@inlined
def _unfold(sums: Any, whole: int, d: int, out: Any) -> None:
    for j in range(whole):
        out[j] = sums[j]
    for j in range(whole, d):
        out[j] = sums[whole + _LANES - d + j]


def _narrow_sparse_score(features: Any, w: Any, scratch: Any, scores: Any) -> None:
    n, d = features.shape
    whole = _narrow_weights(w, scratch)
    lanes = scratch[d + _LANES : d + 2 * _LANES]
    for i in range(n):
        for lane in range(_LANES):
            lanes[lane] = np.float32(0.0)
        for entry in range(features.indptr[i], features.indptr[i + 1]):
            j = features.indices[entry]
            at = j if j < whole else whole + _LANES - d + j
            lanes[at % _LANES] += features.data[entry] * scratch[at]
        scores[i] = _add_in_pairs(lanes)
    if not _all_finite(scores, n):
        score(features, w, scores)


@inlined
def _narrow_weights(w: Any, scratch: Any) -> Any:
    # As many as fill the lanes, then sixteen for the last entries of a row, the first of them 0. Returns how many fill.
    d = len(w)
    whole = d - d % _LANES
    for j in range(whole):
        scratch[j] = w[j]
    for j in range(whole, whole + _LANES):
        scratch[j] = 0.0
    for j in range(whole, d):
        scratch[_LANES - d + whole + j] = w[j]
    return whole


@inlined
def _add_in_pairs(lanes: Any) -> Any:
    # (0 + 8), (1 + 9), ... then (0 + 8) + (4 + 12), ... then all.
    half = _LANES // 2
    while half > 0:
        for lane in range(half):
            lanes[lane] += lanes[lane + half]
        half //= 2
    return lanes[0]


@inlined
def _all_finite(values: Any, n: int) -> Any:
    others = 0
    for i in range(n):
        others += not abs(values[i]) < np.inf
    return others == 0


def _narrow_combine(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    n, d = features.shape
    whole = d - d % _LANES
    sums = _no_sums(scratch, whole)
    for i in range(0, n - 3, 4):
        _add_four(features, i, weights, whole, sums)
    for i in range(n - n % 4, n):
        _add_one(features, i, weights, whole, sums)
    _unfold(sums, whole, d, out)
    if not _all_finite(out, d):
        combine(features, weights, out)


def _narrow_sparse_combine(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    n, d = features.shape
    sums = scratch[:d]
    for j in range(d):
        sums[j] = np.float32(0.0)
    for i in range(n):
        weight = np.float32(weights[i])
        for entry in range(features.indptr[i], features.indptr[i + 1]):
            sums[features.indices[entry]] += weight * features.data[entry]
    for j in range(d):
        out[j] = sums[j]
    if not _all_finite(out, d):
        combine(features, weights, out)


def _narrow_average(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    n, d = features.shape
    for j in range(d):
        out[j] = 0.0
    whole = d - d % _LANES
    for i in range(0, n - 3, 4):
        add_four(features, i, out, whole)
        for j in range(whole, d):
            first_two = features[i, j] + features[i + 1, j]
            out[j] += np.float64(first_two + (features[i + 2, j] + features[i + 3, j]))
    for i in range(n - n % 4, n):
        for j in range(d):
            out[j] += features[i, j]
    for j in range(d):
        out[j] /= n
    if not _all_finite(out, d):
        _wide_average(features, weights, out)


def _narrow_sparse_average(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    n, d = features.shape
    first_two, last_two = scratch[:d], scratch[d : 2 * d]
    for j in range(d):
        first_two[j] = np.float32(0.0)
        last_two[j] = np.float32(0.0)
        out[j] = 0.0
    for i in range(0, n - 3, 4):
        start, middle, stop = features.indptr[i], features.indptr[i + 2], features.indptr[i + 4]
        for entry in range(start, middle):
            first_two[features.indices[entry]] += features.data[entry]
        for entry in range(middle, stop):
            last_two[features.indices[entry]] += features.data[entry]
        for entry in range(start, stop):
            j = features.indices[entry]
            # Of several rows with this entry, the first adds all.
            out[j] += np.float64(first_two[j] + last_two[j])
            first_two[j] = np.float32(0.0)
            last_two[j] = np.float32(0.0)
    for entry in range(features.indptr[n - n % 4], features.indptr[n]):
        out[features.indices[entry]] += features.data[entry]
    for j in range(d):
        out[j] /= n
    if not _all_finite(out, d):
        _wide_average(features, weights, out)


def _narrow_chosen(features: Any, wide: Any, dense: Any, sparse: Any) -> Any:
    if getattr(features, "instance_class", None) is SparseRows:
        return sparse if features.types[0].dtype == types.float32 else wide
    return dense if features.dtype == types.float32 else wide


@overload(narrow_score, jit_options=IN_CALLERS)
def _choose_narrow_score(features: Any, w: Any, scratch: Any, scores: Any) -> Any:
    return _narrow_chosen(features, narrow_score, _narrow_score, _narrow_sparse_score)


@overload(narrow_combine, jit_options=IN_CALLERS)
def _choose_narrow_combine(features: Any, weights: Any, scratch: Any, out: Any) -> Any:
    return _narrow_chosen(features, narrow_combine, _narrow_combine, _narrow_sparse_combine)


@overload(average, jit_options=IN_CALLERS)
def _average(features: Any, weights: Any, scratch: Any, out: Any) -> Any:
    return _narrow_chosen(features, average, _narrow_average, _narrow_sparse_average)
