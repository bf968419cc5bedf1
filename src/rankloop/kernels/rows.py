"""Rows of features in a kernel: dense in float64 or float32, or sparse, scored and added without a copy.

Each function has a form for dense and one for sparse rows, which gives the same bits: a zero adds nothing to a sum, and
what is left is added in the same order. The `narrow_` ones keep rows of float32 in float32: half the bytes, twice as
many at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankloop.kernels.elementary import both
from rankloop.kernels.jit import Floats32, chosen_by_type, hot
from rankloop.kernels.sparse_rows import SparseRows
from rankloop.kernels.vectors import NARROW_LANES as _LANES
from rankloop.kernels.vectors import (
    add_four,
    dot,
    narrow_dot,
    narrow_dots,
    sparse_dot,
    weigh_row,
    weigh_rows,
)


def _by_kind(dense: Any, sparse: Any, narrow: Any = None, narrow_sparse: Any = None) -> Callable[..., Any]:
    """One function for all kinds of rows: numba chooses when it compiles a caller, Python when it is called.

    `narrow` and `narrow_sparse` are for rows of float32, where that makes a difference.
    """

    def chosen(features: Any, *others: Any) -> Any:
        if isinstance(features, SparseRows) or getattr(features, "instance_class", None) is SparseRows:
            data = features.data if isinstance(features, SparseRows) else features.types[0]
            return narrow_sparse if narrow_sparse is not None and str(data.dtype) == "float32" else sparse
        return narrow if narrow is not None and str(features.dtype) == "float32" else dense

    def function(features: Any, *others: Any) -> Any:
        return chosen(features)(features, *others)

    function.__doc__ = dense.__doc__
    return chosen_by_type(function, chosen)


# In float64. Row i of sparse rows has the entries from `indptr[i]` up to, not including, `indptr[i + 1]`.


def _score(features: Any, w: Any, scores: Any) -> None:
    """Scores X w."""
    for i in range(features.shape[0]):
        scores[i] = dot(features[i], w)


def _sparse_score(features: Any, w: Any, scores: Any) -> None:
    for i in range(features.shape[0]):
        first, last = features.indptr[i], features.indptr[i + 1]
        scores[i] = sparse_dot(features.data, features.indices, first, last, w)


score = _by_kind(_score, _sparse_score)


def _combine(features: Any, weights: Any, out: Any) -> None:
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


def _sparse_combine(features: Any, weights: Any, out: Any) -> None:
    for j in range(features.shape[1]):
        out[j] = 0.0
    for i in range(features.shape[0]):
        weight = weights[i]
        for entry in range(features.indptr[i], features.indptr[i + 1]):
            out[features.indices[entry]] += weight * features.data[entry]


combine = _by_kind(_combine, _sparse_combine)


def _copy_row(features: Any, i: Any, out: Any) -> None:
    """Row i."""
    for j in range(features.shape[1]):
        out[j] = features[i, j]


def _sparse_copy_row(features: Any, i: Any, out: Any) -> None:
    for j in range(features.shape[1]):
        out[j] = 0.0
    for entry in range(features.indptr[i], features.indptr[i + 1]):
        out[features.indices[entry]] = features.data[entry]


copy_row = _by_kind(_copy_row, _sparse_copy_row)


def _bounds(features: Any, least: Any, most: Any) -> None:
    """The least and the largest entry of every feature."""
    n, d = features.shape
    for j in range(d):
        least[j] = features[0, j]
        most[j] = features[0, j]
    for i in range(1, n):
        for j in range(d):
            least[j] = min(least[j], features[i, j])
            most[j] = max(most[j], features[i, j])


def _sparse_bounds(features: Any, least: Any, most: Any) -> None:
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


bounds = _by_kind(_bounds, _sparse_bounds)


def _plain_dot(features: Any, i: Any, w: Any) -> Any:
    """Row i times w, one entry after the other."""
    total = 0.0
    for j in range(len(w)):
        total += features[i, j] * w[j]
    return total


def _sparse_plain_dot(features: Any, i: Any, w: Any) -> Any:
    total = 0.0
    for entry in range(features.indptr[i], features.indptr[i + 1]):
        total += features.data[entry] * w[features.indices[entry]]
    return total


plain_dot = _by_kind(_plain_dot, _sparse_plain_dot)


# In float32, where rows are. As in `vectors` the order of every sum is fixed: sixteen lanes, lane l sums entries l,
# l + 16, l + 32 and so on; what is left over at the end of a row is added to the last lanes; lanes are added in pairs.
# A sum too large for float32 is made again in float64, and rows in float64 are added up as above.
#
# `scratch` is float32: the weights, sixteen of them for the end of a row, sixteen lanes; and the same for sums.


def narrow_scratch(d: int) -> Floats32:
    """Scratch for `narrow_score`, `narrow_combine` and `average` of rows of `d` features; never state."""
    return np.empty(2 * (d + 2 * _LANES), np.float32)


def _wide_score(features: Any, w: Any, scratch: Any, scores: Any) -> None:
    """Scores X w."""
    score(features, w, scores)


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


@hot
def _score_short(features: Any, i: int, scratch: Any, scores: Any) -> None:
    d = features.shape[1]
    lanes = scratch[d + _LANES : d + 2 * _LANES]
    for lane in range(_LANES):
        lanes[lane] = np.float32(0.0)
    for j in range(d):
        lanes[_LANES - d + j] = features[i, j] * scratch[_LANES - d + j]
    scores[i] = _add_in_pairs(lanes)


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


@hot
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


@hot
def _add_in_pairs(lanes: Any) -> Any:
    # (0 + 8), (1 + 9), ... then (0 + 8) + (4 + 12), ... then all.
    half = _LANES // 2
    while half > 0:
        for lane in range(half):
            lanes[lane] += lanes[lane + half]
        half //= 2
    return lanes[0]


@hot
def _all_finite(values: Any, n: int) -> Any:
    others = 0
    for i in range(n):
        others += not abs(values[i]) < np.inf
    return others == 0


narrow_score = _by_kind(_wide_score, _wide_score, _narrow_score, _narrow_sparse_score)


def _wide_combine(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    """X^T v, row after row."""
    combine(features, weights, out)


def _narrow_combine(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    n, d = features.shape
    whole = d - d % _LANES
    # In the order of the weights: as many as fill the lanes, then sixteen for the last entries of a row.
    sums = scratch[len(scratch) // 2 :]
    for j in range(whole + _LANES):
        sums[j] = np.float32(0.0)
    if d < _LANES:
        for i in range(n):
            weight = np.float32(weights[i])
            for j in range(d):
                sums[_LANES - d + j] += weight * features[i, j]
    else:
        for i in range(0, n - 3, 4):
            weigh_rows(features, i, weights, whole, sums)
        for i in range(n - n % 4, n):
            weigh_row(features, i, weights, whole, sums)
    for j in range(whole):
        out[j] = sums[j]
    for j in range(whole, d):
        out[j] = sums[whole + _LANES - d + j]
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


narrow_combine = _by_kind(_wide_combine, _wide_combine, _narrow_combine, _narrow_sparse_combine)


@both
def _wide_average(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    """The mean row, with `weights` to work in. What all rows share is its own mean: four equal numbers sum exactly."""
    n = features.shape[0]
    for i in range(n):
        weights[i] = 1.0 / n
    combine(features, weights, out)


def _narrow_average(features: Any, weights: Any, scratch: Any, out: Any) -> None:
    n, d = features.shape
    for j in range(d):
        out[j] = 0.0
    for i in range(0, n - 3, 4):
        add_four(features, i, out)
    for i in range(n - n % 4, n):
        for j in range(d):
            out[j] += features[i, j]
    for j in range(d):
        out[j] /= n
    if not _all_finite(out, d):
        _wide_average(features, weights, scratch, out)


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
        _wide_average(features, weights, scratch, out)


average = _by_kind(_wide_average, _wide_average, _narrow_average, _narrow_sparse_average)
