"""TopRank and MW in plain NumPy, as one writes them with care; MW's projection by scaling in turns."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching


class TopRank:
    """Lattimore, Kveton, Li and Szepesvári 2018, Algorithm 1."""

    def __init__(self, *, n_items: int, n_positions: int, horizon: int, rng: np.random.Generator) -> None:
        self.n, self.m, self.rng = n_items, n_positions, rng
        c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
        self.log_c_delta = math.log(c * horizon)
        self.S, self.N = np.zeros((n_items, n_items)), np.zeros((n_items, n_items))
        self.worse = np.zeros((n_items, n_items), np.bool_)
        self.blocks = [np.arange(n_items)]

    def play(self, clicks: np.ndarray, rounds: int) -> float:
        """So many rounds with these click probabilities, positions x items; returns the expected clicks."""
        positions, total = np.arange(self.m), 0.0
        block = np.empty(self.n, np.int64)
        for _ in range(rounds):
            items = np.concatenate([self.rng.permutation(part) for part in self.blocks])[: self.m]
            chances = clicks[positions, items]
            total += chances.sum()
            C = np.zeros(self.n)
            C[items] = self.rng.random(self.m) < chances
            for number, part in enumerate(self.blocks):
                block[part] = number
            U = (C[:, None] - C[None, :]) * (block[:, None] == block[None, :])
            self.S += U
            self.N += np.abs(U)
            bound = np.sqrt(2 * self.N * (self.log_c_delta + 0.5 * np.log(np.maximum(self.N, 1))))
            found = ((bound <= self.S) & (self.N > 0)).T & ~self.worse
            if found.any():
                self.worse |= found
                self._partition()
        return total

    def _partition(self) -> None:
        left, self.blocks = np.ones(self.n, np.bool_), []
        while left.any():
            free = left & ~(self.worse & left[None, :]).any(axis=1)
            part = np.flatnonzero(free if free.any() else left)
            self.blocks.append(part)
            left[part] = False


class MW:
    """Kale, Reyzin and Schapire 2010, with lists from a complete decomposition into matchings."""

    def __init__(self, *, n_items: int, n_positions: int, horizon: int, rng: np.random.Generator) -> None:
        self.n, self.m, self.rng = n_items, n_positions, rng
        self.gamma = min(0.5, math.sqrt(n_items * math.log(n_items) / horizon))
        self.eta = math.sqrt((1 - self.gamma) * math.log(n_items) / (n_items * horizon))
        self.W = np.full((n_positions, n_items), 1 / n_items)

    def play(self, clicks: np.ndarray, rounds: int) -> float:
        """So many rounds with these click probabilities, positions x items; returns the expected clicks."""
        positions, total = np.arange(self.m), 0.0
        for _ in range(rounds):
            x = (1 - self.gamma) * self.W + self.gamma / self.n
            items = self._draw(x)
            chances = clicks[positions, items]
            total += chances.sum()
            loss = self.rng.random(self.m) >= chances
            self.W[positions, items] *= np.exp(-self.eta * loss / x[positions, items])
            self._project()
        return total

    def _draw(self, x: np.ndarray) -> np.ndarray:
        n, m = self.n, self.m
        W = np.vstack([x, np.tile((1 - x.sum(axis=0)) / max(n - m, 1), (n - m, 1))])
        left, rows = self.rng.random(), np.arange(n)
        items = rows[:m]
        while True:  # matchings are taken off until the number drawn is passed
            W[W < 1e-12] = 0.0
            matching = maximum_bipartite_matching(csr_array(W), perm_type="column")
            if (matching < 0).any():
                return items
            items = matching[:m]
            weight = W[rows, matching].min()
            left -= weight
            if left < 0:
                return items
            W[rows, matching] -= weight

    def _project(self) -> None:
        for _ in range(10_000):
            self.W /= self.W.sum(axis=1, keepdims=True)
            sums = self.W.sum(axis=0)
            if sums.max() <= 1 + 1e-9:
                return
            self.W /= np.maximum(sums, 1.0)
