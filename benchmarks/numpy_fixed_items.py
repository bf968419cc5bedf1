"""RTop-1F and follow the perturbed leader in plain NumPy, as one writes them with care: no loop over items in Python.

What a block explores is drawn once a block, users and discounts are made beforehand.
"""

from __future__ import annotations

import numpy as np


class FTPL:
    """Kalai and Vempala 2005 over rankings, for DCG and binary relevance, every relevance revealed."""

    def __init__(self, *, n_items: int, horizon: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.discount = 1 / np.log2(np.arange(2, n_items + 2))
        self.reach = np.sqrt(n_items * horizon)  # 1/epsilon
        self.r_sum = np.zeros(n_items)

    def play(self, relevance: np.ndarray) -> np.ndarray:
        """One round for each row of `relevance`; the value of each."""
        values = np.empty(len(relevance))
        for i, gains in enumerate(relevance):
            scores = self.r_sum + self.reach * self.rng.random(len(gains))
            values[i] = self.discount @ gains[np.argsort(-scores)]
            self.r_sum += gains
        return values


class RTop1F:
    """Chaudhuri and Tewari 2015, Algorithm 1, for DCG and binary relevance, with keep-rest exploration."""

    def __init__(self, *, n_items: int, horizon: int, rng: np.random.Generator) -> None:
        m, T = n_items, horizon
        self.m, self.T, self.K = m, T, max(1, min(round(T ** (2 / 3) / m ** (1 / 3)), T // m))
        self.rng = rng
        self.discount = 1 / np.log2(np.arange(2, m + 2))
        self.reach = np.sqrt(m * self.K)  # 1/epsilon
        self.s_hat, self.r_hat = np.zeros(m), np.zeros(m)
        self.t = self.block = 0
        self._plan_block()

    def _plan_block(self) -> None:
        """Draw the item to explore in each round of the block; -1 in the rounds that follow the leader."""
        length = (self.block + 1) * self.T // self.K - self.t
        plan = np.full(length, -1)
        plan[self.rng.permutation(length)[: self.m]] = np.arange(self.m)[:length]
        self.plan = plan.tolist()  # reading a number from a list is quicker than from an array
        self.place = 0

    def play(self, relevance: np.ndarray) -> np.ndarray:
        """One round for each row of `relevance`; the value of each."""
        values = np.empty(len(relevance))
        for i, gains in enumerate(relevance):
            if self.place == len(self.plan):
                self.s_hat += self.r_hat
                self.block += 1
                self._plan_block()
            item = self.plan[self.place]
            scores = self.s_hat + self.reach * self.rng.random(self.m)
            order = np.argsort(-scores)
            if item >= 0:
                order = np.concatenate(([item], order[order != item]))
                self.r_hat[item] = gains[item]
            values[i] = self.discount @ gains[order]
            self.place += 1
            self.t += 1
        return values
