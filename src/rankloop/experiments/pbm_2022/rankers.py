"""FTRL-PBM as only the experiments of the 2022 paper need it: with sums, by Frank-Wolfe steps, from bare rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.compiled import RankerKernels
from rankloop.kernels import lists
from rankloop.kernels.jit import hot, kernel
from rankloop.rankers import ftrl_pbm
from rankloop.rankers.ftrl_pbm import WithoutPlan


@hot
def learn_and_sum(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """As FTRL-PBM; x_t is added up before it moves on."""
    sums, marks, kept = scratch[2], scratch[3], scratch[4]
    t, place = state.t[0], np.searchsorted(marks, state.t[0])
    m, n = state.x.shape
    for j in range(m):
        for i in range(n):
            sums[0, j, i] += state.x[j, i]
            sums[1, j, i] += np.sqrt(state.x[j, i] / float(t))
    if place < len(marks) and marks[place] == t:
        for j in range(m):
            for i in range(n):
                kept[place, 0, j, i] = sums[0, j, i]
                kept[place, 1, j, i] = sums[1, j, i]
    ftrl_pbm.learn_in_full(params, state, context, scratch, items, propensities, memo, feedback)


class SummedFTRLPBM(WithoutPlan):
    """FTRL-PBM that has, after a play, the sums of x_t and of sqrt(x_t / t) up to each of the rounds `marks`.

    They are in `kept`, marks x 2 x positions x items. The sums are no state: they are for one play, and one only.
    """

    def __init__(self, *, n_items: int, n_positions: int, marks: NDArray[np.int64]) -> None:
        super().__init__(n_items=n_items, n_positions=n_positions)
        self.kernels = RankerKernels(ftrl_pbm.rank_in_full, learn_and_sum)
        self.marks = marks.astype(np.int64)
        self.sums = np.zeros((2, n_positions, n_items))
        self.kept = np.zeros((len(marks), *self.sums.shape))

    def scratch(self, n: int) -> tuple[Any, ...]:
        # Plain arrays here and not fields of the state: numba keeps the types of arguments with the compiled kernels,
        # and a type from this module would have to be found whenever any FTRL-PBM is loaded.
        return *super().scratch(n), self.sums, self.marks, self.kept


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
    take_steps(float(state.t[0]), scratch[2][0], state.L_hat, state.x, scratch[3], scratch[4], scratch[5])
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
    """Alg. 2 with its repairs (errata C1, C3, C4): move `x` by K steps; the last three are scratch."""
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


@hot
def learn_from_rewards(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """As FTRL-PBM but for the estimate: a click of an item that was unlikely there is a large negative loss."""
    for j in range(len(items)):
        feedback[j] += 1.0  # (1 - (1 + click)) / x = -click / x
    ftrl_pbm.learn_in_full(params, state, context, scratch, items, propensities, memo, feedback)
    for j in range(len(items)):
        feedback[j] -= 1.0


class RewardFTRLPBM(WithoutPlan):
    """To see what goes wrong; use `FTRLPBM`."""

    def __init__(self, *, n_items: int, n_positions: int) -> None:
        super().__init__(n_items=n_items, n_positions=n_positions)
        self.kernels = RankerKernels(ftrl_pbm.rank_in_full, learn_from_rewards)
