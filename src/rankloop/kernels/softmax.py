"""The softmax that cannot overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import inlined


@inlined
def softmax(values: Any, n: int, epsilon: float, out: Any) -> None:
    """exp(v / epsilon) of the first n, divided by their sum; `out` may be `values`."""
    highest = values[0]
    for i in range(1, n):
        highest = values[i] if values[i] > highest else highest
    total = 0.0
    for i in range(n):
        out[i] = np.exp((values[i] - highest) / epsilon)
        total += out[i]
    for i in range(n):
        out[i] /= total
