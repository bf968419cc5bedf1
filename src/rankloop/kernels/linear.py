"""The softmax of scores, and the ball that the weights of a linear ranker stay in."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.elementary import EXP_RANGE, exp, exp_within
from rankloop.kernels.jit import inlined
from rankloop.kernels.vector_sums import dot


@inlined
def softmax(values: Any, n: int, epsilon: float, out: Any) -> None:
    """exp(v / epsilon) of the first n, divided by their sum, without overflow; `out` may be `values`."""
    highest = lowest = values[0]
    for i in range(1, n):
        highest = values[i] if values[i] > highest else highest
        lowest = values[i] if values[i] < lowest else lowest
    if (lowest - highest) / epsilon >= -EXP_RANGE:
        for i in range(n):  # the same numbers, in vectors
            out[i] = exp_within((values[i] - highest) / epsilon)
    else:
        for i in range(n):
            out[i] = exp((values[i] - highest) / epsilon)
    total = 0.0
    for i in range(n):
        total += out[i]
    for i in range(n):
        out[i] /= total


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
