"""What no ranker that shuffles many items can do without, as anyone would write it with numba: draw a list, and clicks.

Not kept on disk, for the same reason as `bare`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(error_model="numpy", nogil=True)
def draw_and_click(rounds: int, order: Any, attraction: Any, examination: Any, clicks: Any) -> None:
    """A round: the first positions of a shuffle of all items, and a click or none at each."""
    n = len(order)
    for _ in range(rounds):
        for j in range(len(examination)):
            other = j + int(np.random.random() * (n - j))  # noqa: NPY002 - compiled, it draws of numba's own generator
            order[j], order[other] = order[other], order[j]
            if np.random.random() < attraction[order[j]] * examination[j]:  # noqa: NPY002
                clicks[order[j]] += 1
