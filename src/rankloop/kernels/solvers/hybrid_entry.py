"""One entry of the hybrid leader: the x in (0, 1) with 1 / (2 sqrt x) + log(1 - x) = d, for every d.

The left side falls from infinity to minus infinity, so there is exactly one. Up to one half it is found by way of
z = 1 / (2 sqrt x), in which the equation is nearly z = d; beyond by way of the logarithm of y = 1 - x, in which it is
nearly log y = d - 1/2. A fit begins, and one to three steps of Halley's method end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import hot

_EVEN = 0.01395960062660223  # d where x is one half: sqrt(1/2) - log 2
_FAR = 8.0  # d from where one step is enough, and the logarithm is a short series
_LEAST = -700.0  # below, y is no longer a normal number
_NEARLY = 1e-5  # a step of Halley's method that is this short leaves an error of its third power
_STEPS = 8


@hot
def entry(d: float) -> Any:
    """x, and h = -dx/dd, which is 1 / (1 / (4 x sqrt x) + 1 / (1 - x))."""
    if d >= _EVEN:
        z = _far(d) if d >= _FAR else _small(d)
        x = 0.25 / (z * z)
        rest = 1.0 - x
        return x, 2.0 * x * rest / (z * rest + 2.0 * x)
    y = _large(d)
    x = 1.0 - y
    steep = 4.0 * x * np.sqrt(x)
    return x, steep * y / (y + steep)


@hot
def _far(d: float) -> Any:
    z = d + 0.25 / (d * d)
    q = 0.25 / (z * z)
    fall = q * (1.0 + q * (1 / 2 + q * (1 / 3 + q * (1 / 4 + q * (1 / 5 + q * (1 / 6))))))  # -log(1 - q)
    bend = 2.0 * q / (z * (1.0 - q))
    return z - (z - fall - d) / (1.0 + bend)


@hot
def _small(d: float) -> Any:
    if d < 2.0:
        z = 0.70755355 + d * (0.1922754 + d * (0.3482966 - d * 0.05295814))
    else:
        z = d + 0.25 / (d * d)
    for _ in range(_STEPS):
        q = 0.25 / (z * z)
        rest = 1.0 - q
        excess = z + log(rest) - d
        bend = 2.0 * q / (z * rest)
        slope = 1.0 + bend
        step = excess / slope
        step /= 1.0 + 0.5 * step * bend * (3.0 + 2.0 * q / rest) / (z * slope)
        z -= step
        if abs(step) <= _NEARLY:
            break
    return z


@hot
def _large(d: float) -> Any:
    near = exp(max(d, _LEAST) - 0.5)
    y = near * (0.99998221 - near * (0.24853627 + near * (0.10805954 - near * 0.02811135)))
    for _ in range(_STEPS):
        rest = 1.0 - y
        root = np.sqrt(rest)
        excess = log(y) + 0.5 / root - max(d, _LEAST)
        bend = 0.25 * y / (rest * root)
        slope = 1.0 + bend
        step = excess / slope
        step /= 1.0 - 0.5 * step * bend * (1.0 + 1.5 * y / rest) / slope
        y *= exp(-step)
        if abs(step) <= _NEARLY:
            break
    return y
