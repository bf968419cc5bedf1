"""The index of KL-UCB: the largest mean that the observations of a coin do not contradict."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import hot

_CLOSE = 1e-13


@hot
def upper_bound(mean: float, n: float, level: float) -> Any:
    """The largest q with n d(mean, q) <= level, d the relative entropy of two coins; 1 where nothing was observed.

    Newton's method from above: d is convex in q, and d >= 2 (q - mean)^2 and d >= (1 - mean) log(1 / (1 - q)) - log 2
    bound where to begin.
    """
    if n <= 0.0 or mean >= 1.0:
        return 1.0
    reach = max(level, 0.0) / n
    if reach <= 0.0:
        return mean
    q = 1.0 - exp(-(reach + 0.6931471805599453) / (1.0 - mean))
    q = min(q, mean + np.sqrt(0.5 * reach))
    for _ in range(50):
        if not q < 1.0:
            return 1.0
        excess = (1.0 - mean) * log((1.0 - mean) / (1.0 - q)) - reach
        if mean > 0.0:
            excess += mean * log(mean / q)
        step = excess * q * (1.0 - q) / (q - mean)
        q -= step
        if step <= _CLOSE:
            break
    return q


@hot
def log_level(t: float) -> Any:
    """Log t + 3 log log t, where that is positive and rising; 0 for the first round."""
    log_t = log(max(t, 1.0))
    return log_t + 3.0 * log(max(log_t, 1.0))
