"""What the kernels of linear rankers do with rows of features, dense or sparse: the compiler chooses by their type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from rankloop.kernels import sparse_sums
from rankloop.kernels.jit import IN_CALLERS
from rankloop.kernels.sparse_rows import SparseRows
from rankloop.kernels.vector_sums import dot


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
    return _chosen(features, score, sparse_sums.score)


@overload(combine, jit_options=IN_CALLERS)
def _combine(features: Any, weights: Any, out: Any) -> Any:
    return _chosen(features, combine, sparse_sums.combine)


@overload(copy_row, jit_options=IN_CALLERS)
def _copy_row(features: Any, i: Any, out: Any) -> Any:
    return _chosen(features, copy_row, sparse_sums.copy_row)


@overload(bounds, jit_options=IN_CALLERS)
def _bounds(features: Any, least: Any, most: Any) -> Any:
    return _chosen(features, bounds, sparse_sums.bounds)


@overload(plain_dot, jit_options=IN_CALLERS)
def _plain_dot(features: Any, i: Any, w: Any) -> Any:
    return _chosen(features, plain_dot, sparse_sums.plain_dot)
