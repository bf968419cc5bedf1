"""MGD in plain NumPy, carefully: one product for all candidates, and one loop, over the positions that are shown."""

from __future__ import annotations

from typing import Any

import numpy as np


class PlainMGD:
    """The same ranker, with perfect users of its own."""

    def __init__(
        self,
        *,
        n_features: int,
        n_candidates: int,
        rng: np.random.Generator,
        n_positions: int = 10,
        alpha: float = 0.01,
        delta: float = 1.0,
        tau: float = 3.0,
    ) -> None:
        self.w = np.zeros(n_features)
        self.n_candidates, self.n_positions = n_candidates, n_positions
        self.alpha, self.delta, self.tau, self.rng = alpha, delta, tau, rng

    def directions(self) -> np.ndarray:
        """A unit vector for each candidate."""
        u = self.rng.standard_normal((self.n_candidates, len(self.w)))
        return u / np.linalg.norm(u, axis=1, keepdims=True)

    def weights(self, X: np.ndarray, u: np.ndarray) -> np.ndarray:
        """1 / rank^tau, rankers x documents; the present ranker is the first."""
        scores = X @ np.vstack([self.w, self.w + self.delta * u]).T
        order = np.argsort(-scores, axis=0)
        left = np.empty(scores.shape)
        by_rank = np.arange(1.0, len(X) + 1) ** -self.tau
        np.put_along_axis(left, order, by_rank[:, None], axis=0)
        return left.T

    def multileave(self, left: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
        """The shown documents, and what a click at each position is worth to each ranker."""
        items, worth = np.empty(m, np.int64), np.empty((len(left), m))
        choosers, targets = self.rng.integers(0, len(left), m), self.rng.random(m)
        for j in range(m):
            reached = np.cumsum(left[choosers[j]])
            items[j] = np.searchsorted(reached, targets[j] * reached[-1], side="right")
            worth[:, j] = self.credit(left, items[j])
            left[:, items[j]] = 0.0
        return items, worth

    @staticmethod
    def credit(left: np.ndarray, item: int) -> np.ndarray:
        """What a click on the next document is worth to each ranker."""
        chances = left[:, item] / left.sum(axis=1)
        share: np.ndarray = chances / chances.sum()
        return share

    def learn(self, u: np.ndarray, worth: np.ndarray, clicks: np.ndarray) -> None:
        """A step towards the mean winner."""
        credit = worth @ clicks
        winners = credit[1:] > credit[0] + 1e-9
        if winners.any():
            self.w += self.alpha * u[winners].mean(axis=0)

    def play(
        self, queries: list[tuple[np.ndarray, np.ndarray]], sequence: list[int], attraction: Any
    ) -> float:
        """Rounds with perfect users; the total DCG of what was shown."""
        total, discount = 0.0, 1.0 / np.log2(np.arange(2, self.n_positions + 2))
        for query in sequence:
            X, grades = queries[query]
            u = self.directions()
            m = min(self.n_positions, len(X))
            items, worth = self.multileave(self.weights(X, u), m)
            shown = grades[items]
            total += float((np.exp2(shown) - 1.0) @ discount[:m])
            self.learn(u, worth, (self.rng.random(m) < attraction[shown]).astype(float))
        return total
