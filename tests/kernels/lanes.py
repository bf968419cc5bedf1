"""Sums in eight lanes, as NumPy adds them in the same order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def in_lanes(values: Floats) -> float:
    """Eight sums side by side, halves added to halves, then the rest one by one."""
    whole = len(values) // 8 * 8
    lanes = np.zeros(8)
    for eight in values[:whole].reshape(-1, 8):
        lanes = lanes + eight
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    total = lanes[0]
    for value in values[whole:]:
        total = total + value
    return float(total)
