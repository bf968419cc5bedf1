"""AdaGrad by feature, whatever the units of the features (Duchi and others 2011; Ross, Mineiro and Langford 2013).

Feature j takes steps of rate / scale_j * gradient_j / sqrt(sum of gradient_j^2), where scale_j is the largest size that
the feature was seen with. Multiply a feature by c, and its weight is divided by c: every score stays as it was. All
of this is about the way of a weight from its start, which is in the units of the features already.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import inlined

_LARGEST = 1e300  # of the summed squares, so that they stay finite
_ROUNDING = 1e-9  # more than a product and a quotient are off


@inlined
def widen(w: Any, start: Any, scale: Any, sizes: Any) -> None:
    """Features were seen with these sizes: where one is more than ever, what it learnt shrinks as its scale grows."""
    larger = 0
    for j in range(len(w)):
        larger += abs(sizes[j]) > scale[j]
    if larger == 0:  # as in nearly every round
        return
    for j in range(len(w)):
        size = abs(sizes[j])
        if size > scale[j]:
            w[j] = start[j] + (w[j] - start[j]) * (scale[j] / size)
            scale[j] = size


@inlined
def descend(w: Any, start: Any, gradient: Any, squares: Any, scale: Any, rate: float, radius: float) -> None:
    """One step against the gradient; no weight's way from its start, times its scale, gets beyond the radius."""
    beyond, close = 0, radius * (1.0 - _ROUNDING)
    for j in range(len(w)):  # without a branch: compiled to vectors
        square = gradient[j] * gradient[j]
        moves = (square > 0.0) & (scale[j] > 0.0)
        total = min(squares[j] + square, _LARGEST)
        moved = w[j] - rate * (gradient[j] / np.sqrt(total)) / scale[j]
        squares[j] = total if moves else squares[j]
        w[j] = moved if moves else w[j]
        beyond += moves & (abs(moved - start[j]) * scale[j] > close)
    if beyond == 0:  # no weight is near its end: nothing to divide
        return
    for j in range(len(w)):
        if gradient[j] * gradient[j] > 0.0 and scale[j] > 0.0:
            farthest = radius / scale[j]
            w[j] = min(max(w[j], start[j] - farthest), start[j] + farthest)
