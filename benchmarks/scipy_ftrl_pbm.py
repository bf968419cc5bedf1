"""FTRL-PBM as the 2022 paper computes it, as one writes it with SciPy: Algorithms 1, 2 and 3, items x positions.

Only what does not run otherwise is repaired: Frank-Wolfe starts at k = 2, because k = 1 jumps to a vertex where the
gradient is infinite (erratum C1), and rounding errors of the decomposition are dropped (erratum C6).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

LEAST = 1e-12


class FTRLPBM:
    """Chen, Zhao and Li 2022, Algorithm 1, with K Frank-Wolfe steps a round."""

    def __init__(self, *, n_items: int, n_positions: int, K: int, rng: np.random.Generator) -> None:
        self.n, self.m, self.K = n_items, n_positions, K
        self.rng = rng
        self.t = 1
        self.L_hat = np.zeros((n_items, n_positions))
        self.x = np.full((n_items, n_positions), 1 / n_items)

    def play(self, clicks: np.ndarray, rounds: int) -> None:
        """So many rounds with users who click item i at position j with probability `clicks[i, j]`."""
        for _ in range(rounds):
            items = self.sample()
            self.learn(items, self.rng.random(self.m) < clicks[items, np.arange(self.m)])

    def learn(self, items: np.ndarray, clicked: np.ndarray) -> None:
        """Lines 5-7, and line 3 of the next round."""
        positions = np.arange(self.m)
        self.L_hat[items, positions] += (1.0 - clicked) / self.x[items, positions]
        self.t += 1
        self.x = self.solve()

    def solve(self) -> np.ndarray:
        """Algorithm 2."""
        x, c = self.x, np.sqrt(self.t)  # c = 1 / (2 eta_t)
        for k in range(2, self.K + 2):
            r = self.L_hat - c / np.sqrt(np.maximum(x, LEAST))
            s = linear_sum_assignment(r)
            gamma = 2 / (1 + k)
            x = (1 - gamma) * x
            x[s] += gamma
        return x

    def sample(self) -> np.ndarray:
        """Algorithm 3: the whole decomposition, and one matching of it."""
        W = self.completed()
        lists, weights = [], []
        while (found := self.peel(W)) is not None:
            lists.append(found[0])
            weights.append(found[1])
        chosen = self.rng.choice(len(lists), p=np.array(weights) / np.sum(weights))
        return lists[chosen]

    def completed(self) -> np.ndarray:
        """Line 1: columns that make every row sum to one."""
        if self.n == self.m:
            return self.x.copy()
        rest = np.maximum(1 - self.x.sum(axis=1, keepdims=True), 0) / (self.n - self.m)
        return np.hstack([self.x, np.repeat(rest, self.n - self.m, axis=1)])

    def peel(self, W: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Lines 3-6: a matching and its weight, taken off `W`; None when there is none left."""
        W[W < LEAST] = 0
        item_at = maximum_bipartite_matching(csr_array(W), perm_type="row")
        if (item_at < 0).any():
            return None
        columns = np.arange(self.n)
        gamma = W[item_at, columns].min()
        W[item_at, columns] -= gamma
        return item_at[: self.m].copy(), gamma
