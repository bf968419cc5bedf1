"""What the kernels of linear rankers do with sparse rows of features.

Each function has a twin for dense rows, and gives the same bits: a zero adds nothing to a sum, and what is left is
added in the same order. Row i has the entries from `indptr[i]` up to, not including, `indptr[i + 1]`; its columns rise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.vector_sums import sparse_dot


def score(features: Any, w: Any, scores: Any) -> None:
    """Scores X w, in the lanes of the dense dot product."""
    for i in range(features.shape[0]):
        first, last = features.indptr[i], features.indptr[i + 1]
        scores[i] = sparse_dot(features.data, features.indices, first, last, w)


def combine(features: Any, weights: Any, out: Any) -> None:
    """X^T v, row after row."""
    for j in range(features.shape[1]):
        out[j] = 0.0
    for i in range(features.shape[0]):
        weight = weights[i]
        for entry in range(features.indptr[i], features.indptr[i + 1]):
            out[features.indices[entry]] += weight * features.data[entry]


def copy_row(features: Any, i: Any, out: Any) -> None:
    """Row i with its zeros."""
    for j in range(features.shape[1]):
        out[j] = 0.0
    for entry in range(features.indptr[i], features.indptr[i + 1]):
        out[features.indices[entry]] = features.data[entry]


def bounds(features: Any, least: Any, most: Any) -> None:
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


def plain_dot(features: Any, i: Any, w: Any) -> Any:
    """Row i times w, one entry after the other."""
    total = 0.0
    for entry in range(features.indptr[i], features.indptr[i + 1]):
        total += features.data[entry] * w[features.indices[entry]]
    return total
