"""FTRL-PBM (2022, Algorithm 1) by a plan: what a round costs hardly depends on how many items there are.

With the paper's estimate only the losses of what was shown change, and all other items move together with the
multipliers of the positions. So x is not written out: most items are summed in bulk (`list_plan`). Where the plan does
not hold any longer, x is found anew in full, and a new plan is made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import list_plan, tsallis
from rankloop.kernels.jit import apart, hot


class PlannedState(NamedTuple):
    """What was learnt, the multipliers of the leader that follows from it, and the plan: see `list_plan.Plan`."""

    t: NDArray[np.int64]  # the round that is to come, counted from 1
    L_hat: NDArray[np.float64]
    u: NDArray[np.float64]  # multipliers of the items' row sums
    v: NDArray[np.float64]  # ... and of the positions' column sums
    fallbacks: NDArray[np.int64]  # solves that needed the slow way; and those of them that ended inexact
    counts: NDArray[np.int64]
    kept: NDArray[np.int64]
    place: NDArray[np.int64]
    slot_L: NDArray[np.float64]
    slot_lines: NDArray[np.float64]
    slot_u: NDArray[np.float64]
    slot_x: NDArray[np.float64]
    slot_rows: NDArray[np.float64]
    sums: NDArray[np.float64]
    table: NDArray[np.float64]
    bounds: NDArray[np.int64]
    edge: NDArray[np.float64]
    matchings: NDArray[np.int64]
    whole: NDArray[np.float64]


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, line 4."""
    t = float(state.t[0])
    return list_plan.show(t, state.L_hat, state.v, state, key, scratch[1], items, propensities)


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
    for j in range(len(items)):
        if feedback[j] < 1.0:
            list_plan.add_loss(state, j, items[j], (1.0 - feedback[j]) / propensities[j])
    state.t[0] += 1
    t = float(state.t[0])
    found = state.counts[list_plan.EXACT] and list_plan.newton(t, state.v, state, scratch[0])
    holds = found and list_plan.weigh(t, state.v, state)
    due = state.t[0] >= state.counts[list_plan.LISTED]
    if not holds or (due and state.counts[list_plan.SLOT_BINS] == state.counts[list_plan.BINS]):
        plan_anew(state, scratch)
    elif due:
        list_plan.list_matchings(t, state, scratch[1])


@apart
def plan_anew(state: Any, scratch: Any) -> None:
    """The leader in full, from the present multipliers, and a plan for it."""
    t, own = float(state.t[0]), scratch[0]
    L, u, v, x, rows = state.L_hat, state.u, state.v, state.table, own.work[2]
    room = list_plan.scratch_in_full(len(v), own)
    state.counts[list_plan.EXACT] = 1
    if tsallis.newton(t, L, u, v, x, rows, room) < 0:
        failure = tsallis.recover(t, L, u, v, x, rows, room)
        state.fallbacks[0] += 1
        state.fallbacks[1] += failure == 2
        state.counts[list_plan.EXACT] = failure != 2
    list_plan.make(L, u, v, rows, state)
    if state.counts[list_plan.EXACT]:
        list_plan.evaluate(t, v, state)
    list_plan.weigh(t, v, state)
    list_plan.list_matchings(t, state, scratch[1])
