"""FTRL-PBM whose leader comes from Frank-Wolfe steps: the reference's Algorithm 2, compiled for long runs.

The same steps as `FTRLPBM(solver="frank-wolfe")` takes with SciPy; the tests hold one against the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.compiled import RankerKernels
from rankloop.kernels import lists
from rankloop.kernels.jit import hot, kernel
from rankloop.rankers import ftrl_pbm
from rankloop.rankers.ftrl_pbm import WithoutPlan

FLOOR = 1e-12  # where the gradient at x = 0 is taken, and the least chance that is played


@hot
def learn_by_frank_wolfe(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """Alg. 1, lines 5-7, and the next line 3 by Alg. 2."""
    ftrl_pbm.estimate(params, state, items, propensities, feedback)
    state.t[0] += 1
    K, gains, vertex, room = scratch[2][0], scratch[3], scratch[4], scratch[5]
    take_steps(float(state.t[0]), K, state.L_hat, state.x, gains, vertex, room)
    m, n = state.x.shape
    for i in range(n):
        state.rows[i] = 0.0
    for j in range(m):
        total = 0.0
        for i in range(n):
            state.x[j, i] = max(state.x[j, i], FLOOR)
            total += state.x[j, i]
        for i in range(n):
            state.x[j, i] /= total
            state.rows[i] += state.x[j, i]


@hot
def take_steps(t: float, K: int, L_hat: Any, x: Any, gains: Any, vertex: Any, scratch: Any) -> None:
    """Alg. 2 with its repairs (errata C1, C3, C4): move `x` by K steps; the last three are room to work in."""
    m, n = x.shape
    c = np.sqrt(t)  # 1 / (2 eta_t)
    for k in range(2, K + 2):
        for j in range(m):
            for i in range(n):
                gains[j, i] = c / np.sqrt(max(x[j, i], FLOOR)) - L_hat[j, i]  # line 3
        lists.assign(gains, vertex, scratch)  # line 4
        gamma = 2.0 / (1.0 + k)  # line 5
        for j in range(m):  # line 6
            for i in range(n):
                x[j, i] *= 1.0 - gamma
            x[j, vertex[j]] += gamma


@kernel
def steps_from(t: float, K: int, L_hat: Any, x: Any) -> Any:
    """A new x, K steps away."""
    m, n = x.shape
    moved = x.copy()
    take_steps(t, K, L_hat, moved, np.empty((m, n)), np.empty(m, np.int64), lists.assignment_scratch(m, n))
    return moved


class FrankWolfeFTRLPBM(WithoutPlan):
    """FTRL-PBM with K Frank-Wolfe steps a round from the leader of the round before."""

    def __init__(self, *, n_items: int, n_positions: int, K: int) -> None:
        super().__init__(n_items=n_items, n_positions=n_positions, steps=K)
        self.kernels = RankerKernels(ftrl_pbm.rank_in_full, learn_by_frank_wolfe)

    def scratch(self, n: int) -> tuple[Any, ...]:
        m, n = self.n_positions, self.n_items
        own = np.array([self.steps]), np.empty((m, n)), np.empty(m, np.int64), lists.assignment_scratch(m, n)
        return *super().scratch(n), *own
