"""Follow the perturbed leader in plain NumPy, twice: as one writes it with care, and tuned."""

from __future__ import annotations

import numpy as np

from benchmarks.numpy_summary import Played, discounts


class FTPL:
    """Kalai and Vempala 2005 over rankings, for DCG and binary relevance, every relevance revealed."""

    def __init__(self, *, n_items: int, horizon: int, rng: np.random.Generator) -> None:
        self.m = n_items
        self.rng = rng
        self.reach = np.sqrt(n_items * horizon)  # 1/epsilon
        self.r_sum = np.zeros(n_items)

    def play(self, relevance: np.ndarray) -> Played:
        """One round for each row of `relevance`."""
        discount = discounts(self.m)
        values = np.empty(len(relevance))
        for i, gains in enumerate(relevance):
            scores = self.r_sum + self.reach * self.rng.random(self.m)
            order = np.argsort(-scores)
            values[i] = discount @ gains[order]
            self.r_sum += gains
        return Played(values, np.zeros(len(relevance), np.bool_))


class FTPLInPlace(FTPL):
    """Tuned: no array is made where one can be reused."""

    def play(self, relevance: np.ndarray) -> Played:
        discount = discounts(self.m)
        values = np.empty(len(relevance))
        scores = np.empty(self.m)
        for i, gains in enumerate(relevance):
            self.rng.random(out=scores)
            scores *= -self.reach  # negative, because argsort puts the lowest first
            scores -= self.r_sum
            values[i] = discount.dot(gains[scores.argsort()])
            self.r_sum += gains
        return Played(values, np.zeros(len(relevance), np.bool_))
