"""Scores and gradients of a linear ranker: passes over the rows of a list's features."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import inlined
from rankloop.kernels.lanes import dot_row


@inlined
def score(features: Any, w: Any, scores: Any) -> None:
    """Scores X w."""
    for i in range(features.shape[0]):
        scores[i] = dot_row(features, i, w)


@inlined
def combine(features: Any, weights: Any, out: Any) -> None:
    """X^T v."""
    n, d = features.shape
    for j in range(d):
        out[j] = 0.0
    for i in range(n):
        weight = weights[i]
        for j in range(d):
            out[j] += weight * features[i, j]


@inlined
def project(w: Any, radius: float) -> None:
    """Alg. 1, line 11: onto the ball of this radius."""
    norm = 0.0
    for j in range(len(w)):
        norm += w[j] * w[j]
    length = norm**0.5
    if not length < np.inf:  # the squares are too large, not the weights
        largest = 0.0
        for j in range(len(w)):
            largest = max(largest, abs(w[j]))
        norm = 0.0
        for j in range(len(w)):
            norm += (w[j] / largest) ** 2
        length = largest * norm**0.5
    if length > radius:
        shrink = radius / length
        for j in range(len(w)):
            w[j] *= shrink
