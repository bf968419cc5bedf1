"""FTRL-PBM with the hybrid regulariser: the leader of `kernels.solvers.hybrid`, and baselines that it can bear.

A click on an item that had little chance where it stood counts as a large negative loss where there is a baseline. One
of more than an eighth of c / sqrt(x) would move that item's chance by more than the analysis allows for, and the
ranker could stay with it for long. So the baseline ends there, which costs nothing where x is not small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels import hybrid
from rankloop.kernels.jit import hot
from rankloop.rankers.ftrl_pbm import LOSS, MEAN, discount, rounds_kept

WEIGHT = 0.5  # c / sqrt(t)
GUARD = 0.125  # of c sqrt(x): the largest baseline


@hot
def learn(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """Alg. 1, lines 5-7 and the next line 3."""
    estimate(params, state, items, propensities, feedback)
    state.t[0] += 1
    c, room = WEIGHT * np.sqrt(rounds_kept(params, state)), scratch[0]
    if hybrid.newton(c, state.L_hat, state.u, state.v, state.x, state.rows, room) < 0:
        failure = hybrid.recover(c, state.L_hat, state.u, state.v, state.x, state.rows, room)
        state.fallbacks[0] += 1
        state.fallbacks[1] += failure == 2


@hot
def estimate(params: Any, state: Any, items: Any, propensities: Any, feedback: Any) -> None:
    """Add B + 1{shown} (loss - B) / x to L_hat, unbiased because B does not depend on what was drawn."""
    most = GUARD * WEIGHT * np.sqrt(rounds_kept(params, state))
    discount(params, state)
    L_hat, x = state.L_hat, state.x
    for j in range(x.shape[0]):
        shown = items[j]
        loss, own = 1.0 - feedback[j], 0.0
        if params.estimator != LOSS:
            own = _baseline(params, state, j, shown, most)
            for i in range(x.shape[1]):
                L_hat[j, i] += _baseline(params, state, j, i, most)
        L_hat[j, shown] += (loss - own) / propensities[j]
        if params.estimator == MEAN:
            state.lost[j, shown] += loss
            state.seen[j, shown] += 1.0


@hot
def _baseline(params: Any, state: Any, j: int, i: int, most: float) -> Any:
    B = (state.lost[j, i] + 0.5) / (state.seen[j, i] + 1.0) if params.estimator == MEAN else 0.5
    return min(B, most * np.sqrt(state.x[j, i]))
