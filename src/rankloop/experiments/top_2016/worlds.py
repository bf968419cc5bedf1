"""Pairs of worlds that feedback at the top cannot tell apart (Chaudhuri and Tewari 2016, Theorem 5.2; erratum B17).

A world is a distribution over the labels of a few documents. In both worlds of a pair the first k labels, wherever they
are looked at, come out alike; but different orders are best for NDCG, and different scores for every surrogate that is
calibrated for it. The documents' features are unit vectors, so a linear ranker can show any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from rankloop import measures
from rankloop.environments import QueryStream
from rankloop.surrogates import CalibratedSquared

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two worlds over the same label vectors; `weights[world]` are whole numbers, out of their sum."""

    name: str
    k: int
    labels: NDArray[np.int64]
    weights: NDArray[np.int64]

    @property
    def n_items(self) -> int:
        """How many documents there are."""
        return int(self.labels.shape[1])

    def chances(self, world: int) -> Floats:
        """The probability of each label vector."""
        chances: Floats = self.weights[world] / self.weights[world].sum()
        return chances

    def expected_relevance(self, world: int) -> Floats:
        """E[R]."""
        return np.asarray(self.chances(world) @ self.labels)

    def expected_share(self, world: int) -> Floats:
        """E[G(R) / Z(R)]: what NDCG, and every surrogate calibrated for it, sorts by."""
        return np.asarray(
            self.chances(world) @ np.array([CalibratedSquared().target(R) for R in self.labels])
        )

    def top_moments(self, world: int) -> Floats:
        """E of the product of every set of up to k labels: all that top-k feedback can reveal of binary labels."""
        sets = [c for size in range(1, self.k + 1) for c in combinations(range(self.n_items), size)]
        return np.array([self.chances(world) @ self.labels[:, list(c)].prod(axis=1) for c in sets])

    def ndcg(self, world: int) -> Floats:
        """The expected NDCG of every order."""
        orders = np.array(list(permutations(range(self.n_items))))
        return np.asarray(measures.ndcg(orders[:, None, :], self.labels[None, :, :]) @ self.chances(world))

    def forced_ndcg(self) -> float:
        """NDCG that the best single mix of orders loses per round, averaged over both worlds."""
        values = [self.ndcg(world) for world in (0, 1)]
        return float(np.mean([v.max() for v in values]) - np.mean(values, axis=0).max())

    def forced_squared(self) -> float:
        """Calibrated squared loss per round of the best single score vector, averaged over both worlds (B16)."""
        apart = self.expected_share(0) - self.expected_share(1)
        return float(apart @ apart / 4)

    def stream(self, world: int) -> QueryStream:
        """Users who bring a label vector each; every label vector stands as often as its weight says."""
        often = np.repeat(self.labels, self.weights[world], axis=0)
        m = self.n_items
        queries = SimpleNamespace(
            features=np.tile(np.eye(m), (len(often), 1)),
            relevance=often.astype(np.float64).ravel(),
            offsets=np.arange(0, m * len(often) + 1, m),
        )
        return QueryStream(queries, measure="ndcg", order="drawn")


def _vectors(words: str) -> NDArray[np.int64]:
    return np.array([[int(digit) for digit in word] for word in words.split()])


PAIRS = {
    # Table 1 of the paper and the two distributions of its proof, in twentieths.
    "top-1": Pair(
        "top-1",
        1,
        _vectors("110 101 011 100 010 001"),
        np.array([[2, 3, 1, 4, 6, 4], [6, 0, 0, 3, 3, 8]]),
    ),
    # Ours: even and odd, so that any two labels are distributed alike.
    "top-2": Pair(
        "top-2",
        2,
        _vectors("0101 0110 1000 1011 0100 0111 1001 1010"),
        np.array([[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]]),
    ),
}
