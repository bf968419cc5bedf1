"""The minimiser of FTRL-PBM (2022, eq. 2): <x, L> - 2 sqrt(t) sum sqrt(x) over lists, by Newton's method on its dual.

With eta_t = 1 / (2 sqrt t) the optimum is x_ij = t / D_ij^2, D_ij = L_ij + u_i + v_j (erratum C5): v_j makes column
sums one, u_i >= 0 keeps row sums at most one and is zero where they are less. Arrays are position-major: L[j, i].

Three things make two steps enough, from the multipliers of the round before:
- Newton on 1 / sqrt(sum) - 1, which is nearly linear in v and u, instead of sum - 1.
- The few tight rows are eliminated first. What is left on the columns is the Laplacian of a network of conductances,
  grounded by the rows that are not tight; eliminating it only ever adds, so it is exact however lopsided x is.
- No step may take D beyond 0.7 of the way to zero, which sqrt(t / column sum) bounds from below.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.tsallis_column import evaluate_column

TOLERANCE = 1e-10  # of the sums at the solution
_TIGHT = 5e-10  # a row counts as tight from here on
_STEPS = 30  # two are usual
_REACH = 0.7


class SolverRoom(NamedTuple):
    """Room to work in; never state."""

    free: NDArray[np.float64]  # 1 where a row is not tight
    columns: NDArray[np.float64]
    ground: NDArray[np.float64]
    tight: NDArray[np.int64]
    h: NDArray[np.float64]  # x / D of the tight rows
    R: NDArray[np.float64]  # one over its row sums
    du: NDArray[np.float64]
    dv: NDArray[np.float64]
    w: NDArray[np.float64]  # conductance between columns
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
        np.empty(most),
        np.empty(most),
        np.empty(m),
        np.empty((m, m)),
        np.empty(n),
        np.empty(m),
    )


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
        _find_step(t, x, rows, room, n_tight)
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
def _find_step(t: float, x: Any, rows: Any, room: Any, n_tight: int) -> None:
    m = len(room.columns)
    square = len(rows) == m
    w, dv, ground = room.w, room.dv, room.ground
    inverse_root = 1.0 / np.sqrt(t)
    for j in range(m):
        dv[j] = room.columns[j] * (np.sqrt(room.columns[j]) - 1.0)
        for k in range(j):
            w[j, k] = 0.0
    for a in range(n_tight):
        i = room.tight[a]
        total = 0.0
        for j in range(m):
            h = x[j, i] * np.sqrt(x[j, i]) * inverse_root
            room.h[a, j] = h
            total += h
            if room.free[i] > 0.0:  # it became tight just now: the next pass leaves it out of the ground
                ground[j] = max(ground[j] - h, 1e-3 * ground[j])
        room.R[a] = 1.0 / total
        room.du[a] = rows[i] * (np.sqrt(rows[i]) - 1.0)
        for j in range(m):
            share = room.h[a, j] * room.R[a]
            dv[j] -= share * room.du[a]
            for k in range(j):
                w[j, k] += share * room.h[a, k]
    for k in range(m - 1, 0, -1):  # eliminate column k: its conductances pass to the others
        total = ground[k]
        for j in range(k):
            total += w[k, j]
        w[k, k] = 1.0 / total
        for j in range(k):
            share = w[k, j] * w[k, k]
            ground[j] += share * ground[k]
            dv[j] += share * dv[k]
            for i in range(j):
                w[j, i] += share * w[k, i]
    dv[0] = 0.0 if square else dv[0] / ground[0]  # n = m: one multiplier is free
    for k in range(1, m):
        total = dv[k]
        for j in range(k):
            total += w[k, j] * dv[j]
        dv[k] = total * w[k, k]
    for a in range(n_tight):
        total = room.du[a]
        for j in range(m):
            total -= room.h[a, j] * dv[j]
        room.du[a] = total * room.R[a]


@hot
def _move(t: float, u: Any, v: Any, room: Any, n_tight: int, square: bool) -> bool:
    lowest = 0.0
    for a in range(n_tight):
        if not square:
            room.du[a] = max(room.du[a], -u[room.tight[a]])
        lowest = min(lowest, room.du[a])
    scale = 1.0
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
    """The slow and sure way: each multiplier in turn solved exactly, which never fails to improve; then Newton again.

    Returns 1, or 2 where even that ended outside the tolerance and x was moved inside its constraints.
    """
    m, n = L.shape
    for i in range(n):
        u[i] = 0.0
    sweeps = 1
    for _ in range(12):
        for _ in range(sweeps):
            for j in range(m):
                v[j] = _solve_column(t, L, u, j)
            for i in range(n):
                u[i] = _solve_row(t, L, v, i, n == m)
        for j in range(m):
            v[j] = _solve_column(t, L, u, j)
        _copy(u, room.u)
        _copy(v, room.v)
        if newton(t, L, u, v, x, rows, room) >= 0:
            return 1
        _copy(room.u, u)
        _copy(room.v, v)
        sweeps *= 2
    evaluate(t, L, u, v, x, rows, room)
    _move_inside(x, rows)
    return 2


@kernel
def _copy(values: Any, to: Any) -> None:
    for i in range(len(values)):
        to[i] = values[i]


@kernel
def _solve_column(t: float, L: Any, u: Any, j: int) -> float:
    # sum t / (L + u + v)^2 = 1. From where the largest term alone is one, Newton on 1 / sqrt(sum), which is concave,
    # rises to the root without ever passing it.
    lowest = L[j, 0] + u[0]
    for i in range(1, len(u)):
        lowest = min(lowest, L[j, i] + u[i])
    gap = np.sqrt(t)
    for _ in range(100):
        total, slope = 0.0, 0.0
        for i in range(len(u)):
            D = (L[j, i] + u[i]) - lowest + gap
            term = t / (D * D)
            total += term
            slope += term / D
        if total <= 1.0 + 1e-15:
            break
        gap += total * (np.sqrt(total) - 1.0) / slope
    return float(gap - lowest)


@kernel
def _solve_row(t: float, L: Any, v: Any, i: int, square: bool) -> float:
    lowest = L[0, i] + v[0]
    for j in range(1, len(v)):
        lowest = min(lowest, L[j, i] + v[j])
    gap = np.sqrt(t)
    if not square and lowest >= gap:  # perhaps not tight at all
        total = 0.0
        for j in range(len(v)):
            D = L[j, i] + v[j]
            total += t / (D * D)
        if total <= 1.0:
            return 0.0
        gap = lowest
    for _ in range(100):
        total, slope = 0.0, 0.0
        for j in range(len(v)):
            D = (L[j, i] + v[j]) - lowest + gap
            term = t / (D * D)
            total += term
            slope += term / D
        if total <= 1.0 + 1e-15:
            break
        gap += total * (np.sqrt(total) - 1.0) / slope
    moved = float(gap - lowest)
    return moved if square else max(0.0, moved)


@kernel
def _move_inside(x: Any, rows: Any) -> None:
    # Columns scaled to one; then as much of the even list as brings every row to at most one.
    m, n = x.shape
    for i in range(n):
        rows[i] = 0.0
    for j in range(m):
        total = 0.0
        for i in range(n):
            total += x[j, i]
        for i in range(n):
            x[j, i] /= total
            rows[i] += x[j, i]
    excess = 0.0
    for i in range(n):
        excess = max(excess, rows[i] - 1.0)
    if excess > TOLERANCE and n > m:
        share = excess / (excess + 1.0 - m / n)
        for i in range(n):
            for j in range(m):
                x[j, i] = (1.0 - share) * x[j, i] + share / n
            rows[i] = (1.0 - share) * rows[i] + share * m / n
