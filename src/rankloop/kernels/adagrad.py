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


@inlined
def widen(w: Any, start: Any, scale: Any, j: int, size: float) -> None:
    """Feature j was seen with `size`: where that is more than ever, what it learnt shrinks as its scale grows."""
    if size > scale[j]:
        w[j] = start[j] + (w[j] - start[j]) * (scale[j] / size)
        scale[j] = size


@inlined
def descend(w: Any, start: Any, gradient: Any, squares: Any, scale: Any, rate: float, radius: float) -> None:
    """One step against the gradient; no weight's way from its start, times its scale, gets beyond the radius."""
    for j in range(len(w)):
        square = gradient[j] * gradient[j]
        if square > 0.0 and scale[j] > 0.0:
            squares[j] = min(squares[j] + square, _LARGEST)
            step = rate * (gradient[j] / np.sqrt(squares[j])) / scale[j]
            farthest = radius / scale[j]
            w[j] = min(max(w[j] - step, start[j] - farthest), start[j] + farthest)
