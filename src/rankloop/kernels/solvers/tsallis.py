"""The minimiser of FTRL-PBM (2022, eq. 2): <x, L> - 2 sqrt(t) sum sqrt(x) over lists, by Newton's method on its dual.

With eta_t = 1 / (2 sqrt t) the optimum is x_ij = t / D_ij^2, D_ij = L_ij + u_i + v_j (erratum C5): v_j makes column
sums one, u_i >= 0 keeps row sums at most one and is zero where they are less. Arrays are position-major: L[j, i].

Three things make two steps enough, from the multipliers of the round before:
- Newton on 1 / sqrt(sum) - 1, which is nearly linear in v and u, instead of sum - 1.
- The columns are eliminated first. What is left on the few tight rows is the Laplacian of a network of conductances,
  grounded by the rows that are not tight; eliminating it only ever adds, so it is exact however lopsided x is.
- No step may take D beyond 0.7 of the way to zero, which sqrt(t / column sum) bounds from below.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.solvers.tsallis_column import evaluate_column

TOLERANCE = 1e-10  # of the sums at the solution
_TIGHT = 5e-10  # a row counts as tight from here on
_STEPS = 30  # two are usual
_REACH = 0.7
_RATIO = 0.25  # of t, from step to step of the slow way
_LAST_RATIO = 0.98  # where smaller steps are of no use


class SolverRoom(NamedTuple):
    """Room to work in; never state."""

    free: NDArray[np.float64]  # 1 where a row is not tight
    columns: NDArray[np.float64]
    ground: NDArray[np.float64]
    tight: NDArray[np.int64]
    h: NDArray[np.float64]  # x / D of the tight rows
    g: NDArray[np.float64]  # one over the column sums of x / D
    du: NDArray[np.float64]
    dv: NDArray[np.float64]
    w: NDArray[np.float64]  # conductance between tight rows
    drain: NDArray[np.float64]  # ... and from them to the ground
    u: NDArray[np.float64]  # multipliers to come back to
    v: NDArray[np.float64]


def room(n: int, m: int) -> SolverRoom:
    """Room for `n` items on `m` positions."""
    most = min(n, 2 * m)  # at a solution fewer than m rows are tight, or all of m
    return SolverRoom(
        np.ones(n),
        np.empty(m),
        np.empty(m),
        np.empty(most, np.int64),
        np.empty((most, m)),
        np.empty(m),
        np.empty(most),
        np.empty(m),
        np.empty((most, most)),
        np.empty(most),
        np.empty(n),
        np.empty(m),
    )


def room_bytes(n: int, m: int) -> int:
    """Bytes of the room for `n` items on `m` positions."""
    most = min(n, 2 * m)
    return 8 * (2 * n + 5 * m + most * (m + most + 3))


@kernel
def newton(t: float, L: Any, u: Any, v: Any, x: Any, rows: Any, room: Any) -> int:
    """Move `u` and `v` to the optimum, write x and its row sums; returns the steps taken, -1 where they do not end."""
    for step in range(_STEPS):
        evaluate(t, L, u, v, x, rows, room)
        n_tight = _find_tight(rows, room)
        if n_tight < 0:
            return -1
        if _settled(rows, room, n_tight):
            return step
        _find_step(t, u, x, rows, room, n_tight)
        if not _move(t, u, v, room, n_tight, len(u) == len(v)):
            return -1
    return -1


@hot
def evaluate(t: float, L: Any, u: Any, v: Any, x: Any, rows: Any, room: Any) -> None:
    """x, its row sums, its column sums, and the sums of x / D over the rows whose multiplier is zero."""
    m, n = L.shape
    for i in range(n):
        rows[i] = 0.0
        room.free[i] = 1.0 if u[i] == 0.0 and n > m else 0.0
    for j in range(m):
        room.columns[j], room.ground[j] = evaluate_column(L, j, u, v[j], t, room.free, x, rows)


@hot
def _find_tight(rows: Any, room: Any) -> int:
    n_tight = 0
    for i in range(len(rows)):
        if room.free[i] == 0.0 or not rows[i] <= 1.0 + _TIGHT:
            if n_tight == len(room.tight):
                return -1
            room.tight[n_tight] = i
            n_tight += 1
    return n_tight


@hot
def _settled(rows: Any, room: Any, n_tight: int) -> bool:
    for j in range(len(room.columns)):
        if not abs(room.columns[j] - 1.0) <= TOLERANCE:
            return False
    off = 0.0
    for a in range(n_tight):
        off = max(off, abs(rows[room.tight[a]] - 1.0))
    return off <= TOLERANCE


@hot
def _find_step(t: float, u: Any, x: Any, rows: Any, room: Any, n_tight: int) -> None:
    # Columns are eliminated first, each by itself; what is left on the tight rows is the network. h_aj / g_j of a tight
    # row's share in column j leads to the other tight rows there, and to the ground by the rows that are not tight.
    m = len(room.columns)
    square = len(rows) == m
    w, dv, du, g = room.w, room.dv, room.du, room.g
    inverse_root = 1.0 / np.sqrt(t)
    for a in range(n_tight):
        i = room.tight[a]
        for j in range(m):
            h = x[j, i] * np.sqrt(x[j, i]) * inverse_root
            room.h[a, j] = h
            if room.free[i] > 0.0:  # it became tight just now: the next pass leaves it out of the ground
                room.ground[j] = max(room.ground[j] - h, 1e-3 * room.ground[j])
        du[a] = rows[i] * (np.sqrt(rows[i]) - 1.0)
        room.drain[a] = 0.0
        for b in range(a):
            w[a, b] = 0.0
    for j in range(m):
        total = room.ground[j]
        for a in range(n_tight):
            total += room.h[a, j]
        g[j] = 1.0 / total
        dv[j] = room.columns[j] * (np.sqrt(room.columns[j]) - 1.0) * g[j]
        if square and j == 0:  # n = m: one multiplier is free, and v_0 stays
            dv[j] = 0.0
            for a in range(n_tight):
                room.drain[a] += room.h[a, j]
            continue
        for a in range(n_tight):
            share = room.h[a, j] * g[j]
            room.drain[a] += share * room.ground[j]
            du[a] -= room.h[a, j] * dv[j]
            for b in range(a):
                w[a, b] += share * room.h[b, j]
    for a in range(n_tight - 1, -1, -1):  # eliminate row a: its conductances pass to the others
        total = room.drain[a]
        for b in range(a):
            total += w[a, b]
        w[a, a] = 1.0 / total
        for b in range(a):
            share = w[a, b] * w[a, a]
            room.drain[b] += share * room.drain[a]
            du[b] += share * du[a]
            for c in range(b):
                w[b, c] += share * w[a, c]
    for a in range(n_tight):
        total = du[a]
        for b in range(a):
            total += w[a, b] * du[b]
        du[a] = total * w[a, a] if square else max(total * w[a, a], -u[room.tight[a]])
    for a in range(n_tight):
        for j in range(1 if square else 0, m):
            dv[j] -= room.h[a, j] * g[j] * du[a]


@hot
def _move(t: float, u: Any, v: Any, room: Any, n_tight: int, square: bool) -> bool:
    lowest, scale = 0.0, 1.0
    for a in range(n_tight):
        lowest = min(lowest, room.du[a])
    for j in range(len(v)):
        fall = -(room.dv[j] + lowest)
        reach = _REACH * np.sqrt(t / room.columns[j])
        if not fall * scale <= reach:
            scale = reach / fall
    if not scale > 0.0:
        return False
    for j in range(len(v)):
        v[j] += scale * room.dv[j]
    for a in range(n_tight):
        moved = u[room.tight[a]] + scale * room.du[a]
        u[room.tight[a]] = moved if square else max(0.0, moved)
    return True


@kernel
def recover(t: float, L: Any, u: Any, v: Any, x: Any, rows: Any, room: Any) -> int:
    """The slow and sure way: from the leader of a round so late that all lists are much alike, in steps back to `t`.

    Returns 1; or 2 where L is so large beside sqrt(t) that its last digits decide. Then x is the last leader that was
    found, moved inside its constraints.
    """
    late = _begin_late(t, L, u, v)
    _copy(u, v, room.u, room.v)
    s, ratio = late, _RATIO
    while ratio < _LAST_RATIO:
        if newton(s, L, u, v, x, rows, room) >= 0:
            if s == t:
                return 1
            late = s
            _copy(u, v, room.u, room.v)
        else:
            ratio = np.sqrt(ratio)
            _copy(room.u, room.v, u, v)
        s = max(t, ratio * late)
    evaluate(late, L, u, v, x, rows, room)
    _move_inside(x, rows)
    return 2


@kernel
def _begin_late(t: float, L: Any, u: Any, v: Any) -> float:
    # Where sqrt(t) is as large as the losses differ; with multipliers from which every D is positive.
    m, n = L.shape
    late = t
    for j in range(m):
        lowest, highest = L[j, 0], L[j, 0]
        for i in range(1, n):
            lowest, highest = min(lowest, L[j, i]), max(highest, L[j, i])
        late = max(late, (highest - lowest) * (highest - lowest))
        v[j] = -lowest
    for j in range(m):
        v[j] += np.sqrt(n * late)
    for i in range(n):
        u[i] = 0.0
    return late


@kernel
def _copy(u: Any, v: Any, to_u: Any, to_v: Any) -> None:
    for i in range(len(u)):
        to_u[i] = u[i]
    for j in range(len(v)):
        to_v[j] = v[j]


@kernel
def _move_inside(x: Any, rows: Any) -> None:
    # Columns scaled to one, large rows down to one; what columns then lack goes to the rows as they have room.
    m, n = x.shape
    for i in range(n):
        rows[i] = 0.0
    for j in range(m):
        total = 0.0
        for i in range(n):
            if not x[j, i] <= 1.0:  # D was nothing but rounding error
                x[j, i] = 1.0
            total += x[j, i]
        for i in range(n):
            x[j, i] /= total
            rows[i] += x[j, i]
    space = 0.0
    for i in range(n):
        if rows[i] > 1.0:
            for j in range(m):
                x[j, i] /= rows[i]
            rows[i] = 1.0
        space += 1.0 - rows[i]
    if space == 0.0:
        return
    for j in range(m):
        lack = 1.0
        for i in range(n):
            lack -= x[j, i]
        for i in range(n):
            x[j, i] += max(0.0, lack) * (1.0 - rows[i]) / space
    for i in range(n):
        rows[i] = 0.0
        for j in range(m):
            rows[i] += x[j, i]
