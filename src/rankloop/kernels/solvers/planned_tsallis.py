"""The minimiser of `tsallis` by a plan: items in slots one by one, all others in bulk.

A round changes x at what was shown, and by the factor (t + 1) / t everywhere. So the sums that the last round ended
with tell those that this one begins with, and Newton's first step needs no pass over the slots.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import hot
from rankloop.kernels.row_vectors import scale
from rankloop.kernels.solvers.list_network import TIGHT, TOLERANCE
from rankloop.kernels.solvers.list_plan import ANCHOR, BINS, COLUMNS, GROUND, SLOT_BINS, within_reach
from rankloop.kernels.solvers.planned_step import find_step, move, take_multipliers
from rankloop.kernels.solvers.shifted_sums import add_entry, value_and_slope
from rankloop.kernels.solvers.tight_slots import find_tight_slots
from rankloop.kernels.solvers.tsallis_column import evaluate_column

_STEPS = 6  # two are usual


@hot
def add_loss(state: Any, j: int, i: int, loss: float) -> None:
    """Add to the losses of item i at position j, and keep all sums in step; before t is counted on."""
    t, v, before = float(state.t[0]), state.v[j], state.L_hat[j, i]
    after = before + loss
    state.L_hat[j, i] = after
    s = state.place[i]
    u = state.slot_u[s] if s >= 0 else 0.0
    old, new = 1.0 / (before + u + v), 1.0 / (after + u + v)
    fall = t * (new * new - old * old)
    state.edge[COLUMNS, j] += fall
    if u == 0.0:
        state.edge[GROUND, j] += t * (new * new * new - old * old * old)
    if s >= 0:
        state.slot_L[j, s] = after
        state.slot_lines[s, j] = after
        state.slot_rows[s] += fall
        return
    for sign in (-1.0, 1.0):
        D = (before if sign < 0.0 else after) + state.edge[ANCHOR, j]
        add_entry(state.sums, j, -1 - s, D, sign)
        add_entry(state.sums, j, -1, D, sign)


@hot
def newton(t: float, v: Any, plan: Any, room: Any) -> bool:
    """Move `plan.slot_u` and `v` to the optimum, write x of the slots; False where the plan does not reach so far."""
    _begin(t, plan)
    take_multipliers(v, room)
    for step in range(_STEPS):
        if step > 0:
            evaluate(t, v, plan)
        n_tight = find_tight_slots(plan.slot_u, plan.slot_rows, 1.0 + TIGHT, room.tight)
        if n_tight < 0:
            return False
        if step > 0 and _settled(len(v), plan, room, n_tight):
            return True
        find_step(t, plan, room, n_tight)
        if not move(t, v, plan, room, n_tight) or not within_reach(v, plan):
            return False
    return False


@hot
def _begin(t: float, plan: Any) -> None:
    ratio = t / (t - 1.0)
    scale(plan.edge, 2 * plan.edge.shape[1], ratio)  # COLUMNS and GROUND
    scale(plan.slot_rows, len(plan.slot_rows), ratio)


@hot
def evaluate(t: float, v: Any, plan: Any) -> None:
    """Chances of the slots, their row sums, and the sums of x and of x / D over all items."""
    bulk = plan.counts[SLOT_BINS] < plan.counts[BINS]
    for j in range(len(v)):
        total, ground = evaluate_column(
            plan.slot_L, j, plan.slot_u, v[j], t, 1.0, plan.slot_x, plan.slot_rows
        )
        if bulk:
            value, slope = value_and_slope(plan.sums, j, v[j] - plan.edge[ANCHOR, j])
            total += t * value
            ground += t * slope
        plan.edge[COLUMNS, j] = total
        plan.edge[GROUND, j] = ground


@hot
def _settled(m: int, plan: Any, room: Any, n_tight: int) -> bool:
    off = 0.0
    for j in range(m):
        off = max(off, abs(plan.edge[COLUMNS, j] - 1.0))
    for a in range(n_tight):
        off = max(off, abs(plan.slot_rows[room.tight[a]] - 1.0))
    return off <= TOLERANCE
