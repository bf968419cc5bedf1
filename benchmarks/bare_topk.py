"""What no linear ranker can do without, in compiled code: a pass over the features of each list, and one sort.

Not kept on disk, for the same reason as `bare`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rankloop.kernels.jit import loop
from rankloop.kernels.rows import score
from rankloop.kernels.sorting import greedy_order


@loop
def score_and_sort(
    features: Any, offsets: Any, sequence: Any, words: Any, w: Any, scores: Any, items: Any, scratch: Any
) -> None:
    """A round for each query in `sequence`: the scores X w, and the documents by falling score."""
    for i in range(len(sequence)):
        documents = features[offsets[sequence[i]] : offsets[sequence[i] + 1]]
        score(documents, w, scores)
        greedy_order(scores, documents.shape[0], words[i], 0, items, scratch)


@numba.njit(error_model="numpy", nogil=True)
def plain_score_and_sort(features: Any, offsets: Any, sequence: Any, w: Any, scores: Any, items: Any) -> None:
    """The same as anyone would write it with numba: one sum a document, and the sort that numba brings along."""
    for i in range(len(sequence)):
        start, n = offsets[sequence[i]], offsets[sequence[i] + 1] - offsets[sequence[i]]
        for document in range(n):
            total = 0.0
            for k in range(len(w)):
                total += features[start + document, k] * w[k]
            scores[document] = -total
        items[:n] = np.argsort(scores[:n])
