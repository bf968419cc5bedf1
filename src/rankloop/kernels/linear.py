"""Scores of a linear ranker, their softmax, gradients, and the ball that the weights stay in."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.elementary import exp
from rankloop.kernels.jit import inlined
from rankloop.kernels.vector_sums import dot


@inlined
def score(features: Any, w: Any, scores: Any) -> None:
    """Scores X w."""
    for i in range(features.shape[0]):
        scores[i] = dot(features[i], w)


@inlined
def softmax(values: Any, n: int, epsilon: float, out: Any) -> None:
    """exp(v / epsilon) of the first n, divided by their sum, without overflow; `out` may be `values`."""
    highest = values[0]
    for i in range(1, n):
        highest = values[i] if values[i] > highest else highest
    total = 0.0
    for i in range(n):
        out[i] = exp((values[i] - highest) / epsilon)
        total += out[i]
    for i in range(n):
        out[i] /= total


@inlined
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


@inlined
def project(w: Any, radius: float) -> None:
    """Alg. 1, line 11: onto the ball of this radius."""
    length = np.sqrt(dot(w, w))
    if not length < np.inf:  # the squares are too large, not the weights
        largest = 0.0
        for j in range(len(w)):
            largest = max(largest, abs(w[j]))
        norm = 0.0
        for j in range(len(w)):
            norm += (w[j] / largest) ** 2
        length = largest * np.sqrt(norm)
    if length > radius:
        shrink = radius / length
        for j in range(len(w)):
            w[j] *= shrink
