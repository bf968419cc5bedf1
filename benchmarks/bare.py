"""What no ranker of this kind can do without, in compiled code: m random numbers and one sort a round.

Not kept on disk: numba looks only at this file to see whether compiled code is up to date, and it is the kernels
that may have changed.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rankloop.kernels.jit import loop
from rankloop.kernels.random import uniform
from rankloop.kernels.sorting import by_falling_score


@loop
def draw_and_sort(words: Any, scores: Any, items: Any, scratch: Any) -> None:
    """A round for each word, with our own sort."""
    for word in words:
        for i in range(len(scores)):
            scores[i] = uniform(word, i)
        by_falling_score(scores, len(scores), items, scratch)


@numba.njit(error_model="numpy", nogil=True)
def draw_and_argsort(words: Any, scores: Any, items: Any) -> None:
    """A round for each word, with the sort that numba brings along."""
    for word in words:
        for i in range(len(scores)):
            scores[i] = -uniform(word, i)
        items[:] = np.argsort(scores)
