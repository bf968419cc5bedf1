"""Lists drawn by blocks of documents, beside a draw that adds up one document after the other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop.kernels.plackett_luce import weights_length
from rankloop.rankers import neural
from tests.kernels.splitmix import uniforms


def slow_draw(scores: NDArray[np.float64], m: int, key: int) -> tuple[list[int], float]:
    """The list, and the logarithm of what the documents that were not drawn weigh."""
    left, numbers = list(range(len(scores))), uniforms(key, m)
    for position in range(m):
        top = max(scores[i] for i in left[position:])
        weights = [math.exp(scores[i] - top) for i in left[position:]]
        target, reached, place = numbers[position] * math.fsum(weights), weights[0], 0
        while reached <= target:
            place += 1
            reached += weights[place]
        left[position], left[position + place] = left[position + place], left[position]
    rest = scores[left[m:]]
    return left, float(np.logaddexp.reduce(rest)) if m < len(scores) else -math.inf


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 32, 33, 120])
@pytest.mark.parametrize("size", [0.0, 1.0, 10.0, 1000.0])
def test_blocks_find_the_same_documents_as_one_after_the_other(n: int, size: float) -> None:
    rng = np.random.default_rng(n)
    for key in range(1, 21):
        scores, m = size * rng.uniform(-1, 1, n), int(rng.integers(1, n + 1))
        items, header = np.empty(n, np.int64), np.zeros(3)
        neural.draw(scores, m, np.uint64(key), np.full(weights_length(n), np.nan), items, header)
        expected, rest = slow_draw(scores, m, key)
        assert items.tolist() == expected
        found = header[1] + math.log(header[2]) if header[2] > 0 else -math.inf
        assert found == pytest.approx(rest, rel=1e-9, abs=1e-9)
