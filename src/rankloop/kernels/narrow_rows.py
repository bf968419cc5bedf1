"""Scores and sums of rows of features that are kept in float32, in float32: half the bytes, twice as many at a time.

As in `vector_sums` the order of every sum is fixed, so that it is the same on every machine: sixteen lanes, lane l sums
entries l, l + 16, l + 32 and so on; what is left over at the end of a row is added to the last lanes; lanes are
added in pairs. Four rows go side by side, so that no addition waits for the one before it. A sum too large for
float32 is made again in float64, and rows in float64 are added up as everywhere else.

`room` is float32: the weights, sixteen of them for the end of a row, sixteen lanes; and the same for sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from rankloop.kernels import feature_rows
from rankloop.kernels.jit import IN_CALLERS, inlined
from rankloop.kernels.narrow_sums import LANES as _LANES
from rankloop.kernels.narrow_sums import add_four, dot, dots, weigh_row, weigh_rows
from rankloop.kernels.sparse_rows import SparseRows


def scratch(d: int) -> NDArray[np.float32]:
    """Room for `score` and `combine` of rows of `d` features.

    Parameters
    ----------
    d : int
        The number of features.

    Returns
    -------
    ndarray of float
        The room; what is in it means nothing between calls.
    """
    return np.empty(2 * (d + 2 * _LANES), np.float32)


def score(features: Any, w: Any, room: Any, scores: Any) -> None:
    """Scores X w.

    Parameters
    ----------
    features : ndarray or SparseRows
        The rows, float32 or float64.
    w : ndarray of float
        The weights.
    room : ndarray of float
        What `scratch` gave.
    scores : ndarray of float
        Where the scores go.
    """
    feature_rows.score(features, w, scores)


def combine(features: Any, weights: Any, room: Any, out: Any) -> None:
    """X^T v, row after row.

    Parameters
    ----------
    features : ndarray or SparseRows
        The rows, float32 or float64.
    weights : ndarray of float
        A number for each row, v.
    room : ndarray of float
        What `scratch` gave.
    out : ndarray of float
        Where the sums go.
    """
    feature_rows.combine(features, weights, out)


def average(features: Any, weights: Any, room: Any, out: Any) -> None:
    """The mean row. What all rows share is its own mean, to the bit: four equal numbers have an exact sum.

    Parameters
    ----------
    features : ndarray or SparseRows
        The rows, float32 or float64.
    weights : ndarray of float
        Room for a number for each row.
    room : ndarray of float
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
    feature_rows.combine(features, weights, out)


def _narrow_score(features: Any, w: Any, room: Any, scores: Any) -> None:
    n, d = features.shape
    whole = _narrow_weights(w, room)
    if d < _LANES:
        for i in range(n):
            _score_short(features, i, room, scores)
    elif n < 4:
        for i in range(n):
            dot(features, i, room, whole, scores)
    else:
        for i in range(0, n, 4):
            dots(features, min(i, n - 4), room, whole, scores)  # the last four may be scored twice
    if not _all_finite(scores, n):
        feature_rows.score(features, w, scores)


@inlined
def _score_short(features: Any, i: int, room: Any, scores: Any) -> None:
    d = features.shape[1]
    lanes = room[d + _LANES : d + 2 * _LANES]
    for lane in range(_LANES):
        lanes[lane] = np.float32(0.0)
    for j in range(d):
        lanes[_LANES - d + j] = features[i, j] * room[_LANES - d + j]
    scores[i] = _add_in_pairs(lanes)


@inlined
def _no_sums(room: Any, whole: int) -> Any:
    # In the order of the weights: as many as fill the lanes, then sixteen for the last entries of a row.
    sums = room[len(room) // 2 :]
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


def _narrow_sparse_score(features: Any, w: Any, room: Any, scores: Any) -> None:
    n, d = features.shape
    whole = _narrow_weights(w, room)
    lanes = room[d + _LANES : d + 2 * _LANES]
    for i in range(n):
        for lane in range(_LANES):
            lanes[lane] = np.float32(0.0)
        for entry in range(features.indptr[i], features.indptr[i + 1]):
            j = features.indices[entry]
            at = j if j < whole else whole + _LANES - d + j
            lanes[at % _LANES] += features.data[entry] * room[at]
        scores[i] = _add_in_pairs(lanes)
    if not _all_finite(scores, n):
        feature_rows.score(features, w, scores)


@inlined
def _narrow_weights(w: Any, room: Any) -> Any:
    # As many as fill the lanes, then sixteen for the last entries of a row, the first of them 0. Returns how many fill.
    d = len(w)
    whole = d - d % _LANES
    for j in range(whole):
        room[j] = w[j]
    for j in range(whole, whole + _LANES):
        room[j] = 0.0
    for j in range(whole, d):
        room[_LANES - d + whole + j] = w[j]
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


def _narrow_combine(features: Any, weights: Any, room: Any, out: Any) -> None:
    n, d = features.shape
    whole = d - d % _LANES
    sums = _no_sums(room, whole)
    for i in range(0, n - 3, 4):
        _add_four(features, i, weights, whole, sums)
    for i in range(n - n % 4, n):
        _add_one(features, i, weights, whole, sums)
    _unfold(sums, whole, d, out)
    if not _all_finite(out, d):
        feature_rows.combine(features, weights, out)


def _narrow_sparse_combine(features: Any, weights: Any, room: Any, out: Any) -> None:
    n, d = features.shape
    sums = room[:d]
    for j in range(d):
        sums[j] = np.float32(0.0)
    for i in range(n):
        weight = np.float32(weights[i])
        for entry in range(features.indptr[i], features.indptr[i + 1]):
            sums[features.indices[entry]] += weight * features.data[entry]
    for j in range(d):
        out[j] = sums[j]
    if not _all_finite(out, d):
        feature_rows.combine(features, weights, out)


def _narrow_average(features: Any, weights: Any, room: Any, out: Any) -> None:
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


def _narrow_sparse_average(features: Any, weights: Any, room: Any, out: Any) -> None:
    n, d = features.shape
    first_two, last_two = room[:d], room[d : 2 * d]
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


def _chosen(features: Any, wide: Any, dense: Any, sparse: Any) -> Any:
    if getattr(features, "instance_class", None) is SparseRows:
        return sparse if features.types[0].dtype == types.float32 else wide
    return dense if features.dtype == types.float32 else wide


@overload(score, jit_options=IN_CALLERS)
def _score(features: Any, w: Any, room: Any, scores: Any) -> Any:
    return _chosen(features, score, _narrow_score, _narrow_sparse_score)


@overload(combine, jit_options=IN_CALLERS)
def _combine(features: Any, weights: Any, room: Any, out: Any) -> Any:
    return _chosen(features, combine, _narrow_combine, _narrow_sparse_combine)


@overload(average, jit_options=IN_CALLERS)
def _average(features: Any, weights: Any, room: Any, out: Any) -> Any:
    return _chosen(features, average, _narrow_average, _narrow_sparse_average)
