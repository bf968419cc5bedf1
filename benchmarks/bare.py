"""What no ranker of a kind can do without, in compiled code: the least that a round can cost.

Not kept on disk: numba looks only at this file to see whether compiled code is up to date, and it is the kernels
that may have changed.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rankloop.kernels.jit import loop
from rankloop.kernels.random import uniform
from rankloop.kernels.rows import score
from rankloop.kernels.sorting import by_falling_score, greedy_order


@loop
def draw_and_sort(words: Any, scores: Any, items: Any, scratch: Any) -> None:
    """Follow a perturbed leader: a random number for each item, and a sort."""
    for word in words:
        for i in range(len(scores)):
            scores[i] = uniform(word, i)
        by_falling_score(scores, len(scores), items, scratch)


@loop
def score_and_sort(
    features: Any, offsets: Any, sequence: Any, words: Any, w: Any, scores: Any, items: Any, scratch: Any
) -> None:
    """A linear ranker: the scores X w of each query in `sequence`, and its documents by falling score."""
    for i in range(len(sequence)):
        documents = features[offsets[sequence[i]] : offsets[sequence[i] + 1]]
        score(documents, w, scores)
        greedy_order(scores, documents.shape[0], words[i], 0, items, scratch)


@numba.njit(error_model="numpy", nogil=True)
def two_passes(rounds: int, L: Any, u: Any, v: Any, x: Any, columns: Any) -> None:
    """An exact FTRL-PBM: x and its column sums, once to find that the last multipliers no longer do, and once more."""
    m, n = L.shape
    for t in range(1, rounds + 1):
        for _ in range(2):
            for j in range(m):
                total = 0.0
                for i in range(n):
                    D = L[j, i] + u[i] + v[j]
                    x[j, i] = t / (D * D)
                    total += x[j, i]
                columns[j] = total


@numba.njit(error_model="numpy", nogil=True)
def draw_and_click(rounds: int, order: Any, attraction: Any, examination: Any, clicks: Any) -> None:
    """Users who click: the first positions of a shuffle of all items, and a click or none at each."""
    n = len(order)
    for _ in range(rounds):
        for j in range(len(examination)):
            other = j + int(np.random.random() * (n - j))  # noqa: NPY002 - compiled, it draws of numba's own generator
            order[j], order[other] = order[other], order[j]
            if np.random.random() < attraction[order[j]] * examination[j]:  # noqa: NPY002
                clicks[order[j]] += 1
