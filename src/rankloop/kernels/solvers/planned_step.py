"""One step of Newton's method by a plan: that of `list_network`, with positions in vectors of eight.

Here there are always more items than positions. What is left over of a vector counts as positions where D is infinite,
so that x and x / D are zero there: were they only tiny, their products would underflow, which takes the processor
several times as long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot
from rankloop.kernels.row_vectors import (
    add_row,
    aligned,
    excess_row,
    fill_row,
    inverse_cubes,
    invert_row,
    multiply_rows,
    row_dot,
    row_dots,
    subtract_rows,
    sum_rows,
)
from rankloop.kernels.solvers.list_network import SolverRoom
from rankloop.kernels.solvers.list_plan import COLUMNS, GROUND
from rankloop.kernels.solvers.small_network import MOST, solve_small

_GROUND, _INVERSE, _DV, _V = range(4)  # rows of `lines`; five more are for the leader in full
_REACH = 0.7  # as in `tsallis`


class StepRoom(NamedTuple):
    """Room to work in; never state."""

    tight: NDArray[np.int64]
    h: NDArray[np.float64]  # x / D of the tight rows
    share: NDArray[np.float64]  # ... over the column sums of all
    lines: NDArray[np.float64]  # by position: ground, one over the column sums of h, the step, v, and others
    du: NDArray[np.float64]
    drain: NDArray[np.float64]  # conductance from tight rows to the ground
    w: NDArray[np.float64]  # ... and between them
    work: NDArray[np.float64]  # three numbers by item, for the leader in full


def room(n: int, n_slots: int, m: int) -> StepRoom:
    """Room for `n` items on `m` positions, and a plan of `n_slots` slots."""
    most, width = min(n_slots, 2 * m), 8 * ((m + 7) // 8)
    return StepRoom(
        np.empty(most, np.int64),
        aligned(most, width),
        aligned(most, width),
        aligned(9, width),
        np.empty(most),
        np.empty(most),
        np.empty((most, most)),
        np.empty((3, n)),
    )


@hot
def room_in_full(m: int, room: Any) -> Any:
    """The same arrays, as room for the leader in full."""
    lines, work = room.lines, room.work
    return SolverRoom(
        work[0],
        lines[4, :m],
        lines[5, :m],
        room.tight,
        room.h,
        lines[6, :m],
        room.du,
        lines[7, :m],
        room.w,
        room.drain,
        work[1],
        lines[8, :m],
    )


@hot
def take_multipliers(v: Any, room: Any) -> None:
    """Copy the multipliers of the positions to `room.lines`, before the first step."""
    fill_row(room.lines, _V, v, np.inf)


@hot
def find_step(t: float, plan: Any, room: Any, n_tight: int) -> None:
    """Write the step of the tight rows' multipliers to `room.du`, of the positions' to `room.lines`."""
    _prepare(t, plan, room, n_tight)
    h, share, lines, du, drain, w = room.h, room.share, room.lines, room.du, room.drain, room.w
    sum_rows(lines, _INVERSE, lines, _GROUND, h, n_tight)
    invert_row(lines, _INVERSE, lines, _INVERSE)
    multiply_rows(lines, _DV, lines, _DV, lines, _INVERSE)
    for a in range(n_tight):
        multiply_rows(share, a, h, a, lines, _INVERSE)
        drain[a] = row_dot(share, a, lines, _GROUND)
        du[a] -= row_dot(h, a, lines, _DV)
        row_dots(w, a, share, a, h, a)
    if n_tight <= MOST:
        solve_small(w, drain, du, plan.slot_u, room.tight, n_tight)
    else:
        _solve(plan.slot_u, room, n_tight)
    subtract_rows(lines, _DV, share, du, n_tight)


@hot
def _solve(u: Any, room: Any, n_tight: int) -> None:
    du, drain, w = room.du, room.drain, room.w
    for a in range(n_tight - 1, -1, -1):  # eliminate row a: its conductances pass to the others
        total = drain[a]
        for b in range(a):
            total += w[a, b]
        w[a, a] = 1.0 / total
        for b in range(a):
            part = w[a, b] * w[a, a]
            drain[b] += part * drain[a]
            du[b] += part * du[a]
            for c in range(b):
                w[b, c] += part * w[a, c]
    for a in range(n_tight):
        total = du[a]
        for b in range(a):
            total += w[a, b] * du[b]
        du[a] = max(total * w[a, a], -u[room.tight[a]])


@hot
def _prepare(t: float, plan: Any, room: Any, n_tight: int) -> None:
    # The excess of columns and tight rows, as Newton on 1 / sqrt(sum) takes it, and h.
    h, lines = room.h, room.lines
    excess_row(lines, _DV, plan.edge, COLUMNS)
    sum_rows(lines, _GROUND, plan.edge, GROUND, h, 0)  # a copy
    for a in range(n_tight):
        s = room.tight[a]
        inverse_cubes(h, a, plan.slot_lines, s, lines, _V, plan.slot_u[s], t)
        if plan.slot_u[s] == 0.0:  # it became tight just now: the next pass leaves it out of the ground
            for j in range(lines.shape[1]):
                lines[_GROUND, j] = max(lines[_GROUND, j] - h[a, j], 1e-3 * lines[_GROUND, j])
        total = plan.slot_rows[s]
        room.du[a] = total * (np.sqrt(total) - 1.0)


@hot
def move(t: float, v: Any, plan: Any, room: Any, n_tight: int) -> bool:
    """Take the step, or so much of it that no D falls by more than 0.7; False where there is none."""
    lowest, scale = 0.0, 1.0
    for a in range(n_tight):
        lowest = min(lowest, room.du[a])
    for j in range(len(v)):
        fall = -(room.lines[_DV, j] + lowest)
        total = plan.edge[COLUMNS, j]
        if fall > 0.0 and not fall * fall * total <= _REACH * _REACH * t:
            scale = min(scale, _REACH * np.sqrt(t / total) / fall)
        if not fall < np.inf:
            return False
    if not scale > 0.0:
        return False
    add_row(room.lines, _V, room.lines, _DV, scale)
    for j in range(len(v)):
        v[j] = room.lines[_V, j]
    for a in range(n_tight):
        s = room.tight[a]
        plan.slot_u[s] = max(0.0, plan.slot_u[s] + scale * room.du[a])
        plan.u[plan.kept[s]] = plan.slot_u[s]
    return True
