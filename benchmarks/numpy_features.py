"""LinTSPBM and LinUCBPBM with known examinations in plain NumPy, step by step, for users who click by position."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class LinearPBM:
    """A root of the inverse, S' S = M^-1, and the estimate; both updated at every shown position."""

    def __init__(
        self, features: Floats, examination: Floats, *, draws: bool, rng: np.random.Generator
    ) -> None:
        self.features, self.kappa, self.draws, self.rng = features, examination, draws, rng
        d = features.shape[1]
        self.S, self.theta = np.eye(d), np.zeros(d)
        self.by_position = np.argsort(-examination, kind="stable")

    def rank(self) -> NDArray[np.int64]:
        """The best list for drawn weights, or for upper confidence bounds."""
        if self.draws:
            index = self.features @ (self.theta + self.rng.standard_normal(len(self.theta)) @ self.S)
        else:
            index = self.features @ self.theta + np.sqrt(((self.features @ self.S.T) ** 2).sum(axis=1))
        items = np.empty(len(self.kappa), np.int64)
        items[self.by_position] = np.argsort(-index + 1e-12 * self.rng.random(len(index)))[: len(self.kappa)]
        return items

    def learn(self, items: NDArray[np.int64], clicks: NDArray[np.bool_]) -> None:
        """One rank-one update for each position."""
        for kappa, x, y in zip(self.kappa, self.features[items], clicks, strict=True):
            u = self.S @ (kappa * x)
            q = 1.0 + u @ u
            g = u @ self.S
            self.theta += g * ((y - kappa * (x @ self.theta)) / q)
            self.S -= np.outer(u, g / (np.sqrt(q) * (np.sqrt(q) + 1.0)))

    def play(self, clicks: Floats, rounds: int) -> float:
        """The expected clicks of the lists shown to so many users; `clicks` has a chance by position and item."""
        total, places = 0.0, np.arange(len(self.kappa))
        for _ in range(rounds):
            items = self.rank()
            chances = clicks[places, items]
            total += chances.sum()
            self.learn(items, self.rng.random(len(items)) < chances)
        return float(total)
