"""Scores and gradients of a linear ranker: passes over the rows of a list's features.

Sums run in eight lanes of a fixed order, so that they are quick and the same on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import inlined


@inlined
def score(features: Any, w: Any, scores: Any) -> None:
    """Scores X w."""
    n, d = features.shape
    whole = d - d % 8
    for i in range(n):
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        for j in range(0, whole, 8):
            a0 += features[i, j] * w[j]
            a1 += features[i, j + 1] * w[j + 1]
            a2 += features[i, j + 2] * w[j + 2]
            a3 += features[i, j + 3] * w[j + 3]
            a4 += features[i, j + 4] * w[j + 4]
            a5 += features[i, j + 5] * w[j + 5]
            a6 += features[i, j + 6] * w[j + 6]
            a7 += features[i, j + 7] * w[j + 7]
        for j in range(whole, d):
            a0 += features[i, j] * w[j]
        scores[i] = ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))


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
