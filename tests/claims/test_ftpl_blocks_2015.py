"""Follow the perturbed leader on block averages, all labels known (2015, appendix 13.2, equations 9 to 12)."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

Floats = NDArray[np.float64]
M, T = 5, 8_000
D = R = M * (M + 1) / 2
A = M
RANKS = np.arange(1, M + 1)


def ranks_of(y: Floats) -> NDArray[np.int64]:
    """M(y): the largest gets rank 1; for each row."""
    return np.argsort(np.argsort(-y, axis=-1, kind="stable"), axis=-1, kind="stable") + 1


def play(relevance: Floats, K: int, reach: float, seed: int = 1) -> float:
    """Regret in SumLoss: in block k the leader of the averages of blocks 1 to k - 1, perturbed afresh each round."""
    rng, length = np.random.default_rng(seed), T // K
    s, lost = np.zeros(M), 0.0
    for k in range(K):
        block = relevance[k * length : (k + 1) * length]
        sigma = ranks_of(s + reach * rng.random((length, M)))
        lost += float((sigma * block).sum())
        s += block.mean(axis=0)
    return lost - float(np.sort(relevance.sum(axis=0))[::-1] @ RANKS)


def against_the_leader(K: int) -> Floats:
    """In each block those two items are relevant that the unperturbed leader puts last."""
    s, blocks = np.zeros(M), []
    for _ in range(K):
        block = (ranks_of(s) >= M - 1).astype(float)
        blocks.append(np.tile(block, (T // K, 1)))
        s += block
    return np.concatenate(blocks)


@pytest.mark.judges("2015-075")
@pytest.mark.parametrize("K", [20, 200, 2_000])
def test_ftpl_with_blocks_and_full_information(K: int) -> None:
    rng, length = np.random.default_rng(3), T // K
    drifting = (rng.random((T, M)) < 0.5 + 0.4 * np.sin(np.arange(T)[:, None] / T * 9 + np.arange(M))).astype(
        float
    )
    # Eq. (9): one distribution for a block, so its rounds together are its average, times its length.
    sigma = ranks_of(rng.random((50, M)))
    block = drifting[:length]
    np.testing.assert_allclose((sigma @ block.T).sum(axis=1), length * (sigma @ block.mean(axis=0)))
    # Eq. (12).
    bound = 2 * (T / K) * sqrt(D * R * A * K)
    reach = sqrt(R * A * K / D)
    for relevance in (drifting, against_the_leader(K)):
        assert play(relevance, K, reach) < bound
    if K == 2_000:  # where the bound says most: without a perturbation it breaks
        assert play(against_the_leader(K), K, 0.0) > bound
