"""Random directions: unit vectors, all equally likely, each found again from its key and number."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.elementary import cos_turns, log
from rankloop.kernels.jit import inlined
from rankloop.kernels.random import uniform
from rankloop.kernels.vector_sums import dot


@inlined
def words(d: int) -> int:
    """How many numbers of a key one direction in d dimensions takes."""
    return d + d % 2


@inlined
def direction(key: Any, number: int, out: Any) -> None:
    """Write direction `number` of `key`: normal numbers in pairs (Box and Muller 1958), scaled to length 1."""
    d = len(out)
    first = number * words(d)
    for j in range(0, d, 2):
        radius = np.sqrt(-2.0 * log(1.0 - uniform(key, first + j)))
        angle = uniform(key, first + j + 1)
        out[j] = radius * cos_turns(angle)
        if j + 1 < d:
            out[j + 1] = radius * cos_turns(angle + 0.75)  # the sine
    length = np.sqrt(dot(out, out))
    if length > 0.0:
        for j in range(d):
            out[j] /= length
    else:
        out[0] = 1.0
