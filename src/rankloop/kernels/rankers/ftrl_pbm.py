"""FTRL-PBM (2022, Algorithm 1): lists drawn from a regularised leader, losses weighted by inverse propensity.

The leader of the next round is found when feedback comes, because `rank` may not change anything: it only draws.
Arrays are position-major: L_hat[j, i] belongs to item i at position j.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import tsallis
from rankloop.kernels.elementary import power
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import show

LOSS, REDUCED_VARIANCE, MEAN = range(3)


class FTRLPBMParams(NamedTuple):
    """Which estimator of the losses, and what is left of them after a round."""

    estimator: int
    kept: float  # 1 where nothing is forgotten


class FTRLPBMState(NamedTuple):
    """What was learnt, the leader that follows from it, and how it was found."""

    t: NDArray[np.int64]  # the round that is to come, counted from 1
    L_hat: NDArray[np.float64]
    u: NDArray[np.float64]  # multipliers of the items' row sums, warm for the next solve
    v: NDArray[np.float64]  # ... and of the positions' column sums
    x: NDArray[np.float64]  # the leader: the chance of item i at position j
    rows: NDArray[np.float64]  # its sum over positions
    seen: NDArray[np.float64]  # how often item i stood at position j; only for the running mean
    lost: NDArray[np.float64]  # how often it was not clicked there
    fallbacks: NDArray[np.int64]  # solves that needed the slow way; and those of them that ended inexact


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, line 4."""
    return show(state.x, state.rows, key, scratch[1], items, propensities)


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
    t, room = rounds_kept(params, state), scratch[0]
    if not _is_warm(state, items) or (
        tsallis.newton(t, state.L_hat, state.u, state.v, state.x, state.rows, room) < 0
    ):
        failure = tsallis.recover(t, state.L_hat, state.u, state.v, state.x, state.rows, room)
        state.fallbacks[0] += 1
        state.fallbacks[1] += failure == 2


@hot
def rounds_kept(params: Any, state: Any) -> Any:
    """t; where rounds are forgotten, the sum of what each still counts for."""
    t = float(state.t[0])
    return t if params.kept == 1.0 else (1.0 - power(params.kept, t)) / (1.0 - params.kept)


@hot
def discount(params: Any, state: Any) -> None:
    """Forget a share of all sums; of the multipliers as well, so that they still nearly belong to L_hat."""
    kept = params.kept
    if kept == 1.0:
        return
    for i in range(len(state.u)):
        state.u[i] *= kept
    for j in range(len(state.v)):
        state.v[j] *= kept
        for i in range(len(state.u)):
            state.L_hat[j, i] *= kept
            if params.estimator == MEAN:
                state.lost[j, i] *= kept
                state.seen[j, i] *= kept


@hot
def _is_warm(state: Any, items: Any) -> bool:
    # A click that was less likely than its baseline allows for, as a late one may be, lowers L_hat by so much that D is
    # negative there. The sums of t / D^2 do not show it, and Newton's method would end with a leader who is none.
    least = 1.0
    for j in range(len(items)):
        least = min(least, state.L_hat[j, items[j]] + state.u[items[j]] + state.v[j])
    return least > 0.0


@hot
def estimate(params: Any, state: Any, items: Any, propensities: Any, feedback: Any) -> None:
    """Alg. 1, lines 6-7: add an unbiased estimate of the losses to L_hat.

    Every estimate is B + 1{shown} (loss - B) / x with a baseline B that does not depend on what was drawn: 0; 1/2
    where x >= eta_t^2; or the mean loss so far.
    """
    L_hat, m, n = state.L_hat, state.x.shape[0], state.x.shape[1]
    floor = 0.25 / rounds_kept(params, state)  # eta_t^2
    discount(params, state)
    if params.estimator == REDUCED_VARIANCE:
        for j in range(m):
            for i in range(n):
                L_hat[j, i] += 0.5 if state.x[j, i] >= floor else 0.0
    elif params.estimator == MEAN:
        for j in range(m):
            for i in range(n):
                L_hat[j, i] += (state.lost[j, i] + 0.5) / (state.seen[j, i] + 1.0)
    for j in range(m):
        i = items[j]
        loss, baseline = 1.0 - feedback[j], 0.0
        if params.estimator == REDUCED_VARIANCE:
            baseline = 0.5 if state.x[j, i] >= floor else 0.0
        elif params.estimator == MEAN:
            baseline = (state.lost[j, i] + 0.5) / (state.seen[j, i] + 1.0)
            state.lost[j, i] += loss
            state.seen[j, i] += 1.0
        L_hat[j, i] += (loss - baseline) / propensities[j]
