"""The hybrid leader (Zimmert, Luo and Wei 2019, over lists): <x, L> + c sum(-sqrt(x) + (1 - x) log(1 - x)).

x_ij solves 1 / (2 sqrt x) + log(1 - x) = (L_ij + u_i + v_j) / c, up to a constant that v takes: v_j makes column sums
one, u_i >= 0 keeps row sums at most one and is zero where they are less. Every value of the right side has an x, so
that the dual is smooth everywhere. It is concave: along a step its slope falls, and a step that passes the top by
much is shortened. Arrays are position-major: L[j, i].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import log
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.solvers import list_network
from rankloop.kernels.solvers.hybrid_entry import entry
from rankloop.kernels.solvers.list_network import copy_multipliers, find_tight, settled, solve
from rankloop.kernels.solvers.tsallis import move_inside

_STEPS = 40  # two or three are usual
_CUTS = 12  # how often one step may be shortened
_SURE = 40.0  # exp(-40) is nothing beside one
_RATIO = 0.25  # of c, from step to step of the slow way
_LAST_RATIO = 0.98  # where smaller steps are of no use


class HybridRoom(NamedTuple):
    """Room to work in; never state."""

    network: list_network.SolverRoom
    h: NDArray[np.float64]  # by position and item: by how much x falls as a multiplier rises by c
    du: NDArray[np.float64]  # the step of every row's multiplier
    unbounded: NDArray[np.float64]  # as far as these may fall
    u: NDArray[np.float64]  # multipliers that the slow way comes back to
    v: NDArray[np.float64]


def room(n: int, m: int) -> HybridRoom:
    """Room for `n` items on `m` positions."""
    return HybridRoom(
        list_network.room(n, m), np.empty((m, n)), np.empty(n), np.full(n, np.inf), np.empty(n), np.empty(m)
    )


def room_bytes(n: int, m: int) -> int:
    """Bytes of the room for `n` items on `m` positions."""
    return list_network.room_bytes(n, m) + 8 * (m * n + m + 3 * n)


@kernel
def even_multiplier(n: int) -> Any:
    """v_j / c where all of `n` items are alike: x = 1 / n everywhere."""
    return 0.5 * np.sqrt(float(n)) + (log(1.0 - 1.0 / n) if n > 1 else -_SURE)


@kernel
def newton(c: float, L: Any, u: Any, v: Any, x: Any, rows: Any, room: Any) -> int:
    """Move `u` and `v` to the optimum, write x and its row sums; returns the steps taken, -1 where they do not end."""
    evaluate(c, L, u, v, x, rows, room)
    for step in range(_STEPS):
        n_tight = find_tight(rows, room.network)
        if n_tight < 0:
            return -1
        if settled(rows, room.network, n_tight):
            return step
        if not _find_step(c, u, rows, room, n_tight) or not _move(c, L, u, v, x, rows, room):
            return -1
    return -1


@hot
def evaluate(c: float, L: Any, u: Any, v: Any, x: Any, rows: Any, room: Any) -> None:
    """x, its row sums, its column sums, h, and the column sums of h over the rows whose multiplier is zero."""
    m, n = L.shape
    inverse, network = 1.0 / c, room.network
    for i in range(n):
        rows[i] = 0.0
        network.free[i] = 1.0 if u[i] == 0.0 and n > m else 0.0
    for j in range(m):
        total, ground = 0.0, 0.0
        for i in range(n):
            chance, h = entry((L[j, i] + u[i] + v[j]) * inverse)
            x[j, i] = chance
            room.h[j, i] = h
            rows[i] += chance
            total += chance
            ground += h * network.free[i]
        network.columns[j] = total
        network.ground[j] = ground


@hot
def _find_step(c: float, u: Any, rows: Any, room: Any, n_tight: int) -> bool:
    # Newton's step where no multiplier falls below zero: rows whose multiplier would are let go, with what they have,
    # until there are none; then rows that this makes too large are taken in again. The matrix of the step has no
    # positive entry off its diagonal, so that the first never lowers another multiplier, nor does the second.
    network = room.network
    n, square, letting_go = len(u), len(u) == room.h.shape[0], False
    for i in range(n):
        network.free[i] = 1.0
    for a in range(n_tight):
        network.free[network.tight[a]] = 0.0
    for _ in range(2 * n):
        _prepare(c, u, rows, room, n_tight)
        solve(room.unbounded, rows, network, n_tight)
        kept = 0
        for a in range(n_tight):
            i = network.tight[a]
            room.du[i] = network.du[a]
            if square or u[i] + network.du[a] >= 0.0:
                network.tight[kept] = i
                kept += 1
            else:
                network.free[i] = 1.0
        if kept < n_tight:
            n_tight, letting_go = kept, True
            continue
        if letting_go:
            for i in range(n):
                if network.free[i] > 0.0 and _excess(c, i, rows, room) > 0.0 and n_tight < len(network.tight):
                    network.free[i] = 0.0
                    network.tight[n_tight] = i
                    n_tight += 1
        if n_tight == kept:
            return True
    return False


@hot
def _prepare(c: float, u: Any, rows: Any, room: Any, n_tight: int) -> None:
    # Rows that are not tight end with a multiplier of zero; those of them that have one bring it into their columns.
    network = room.network
    m, n = room.h.shape
    for a in range(n_tight):
        i = network.tight[a]
        for j in range(m):
            network.h[a, j] = room.h[j, i]
        network.du[a] = c * (rows[i] - 1.0)
    for i in range(n):
        room.du[i] = -u[i]
    for j in range(m):
        ground, brought = 0.0, 0.0
        for i in range(n):
            h = room.h[j, i] * network.free[i]
            ground += h
            brought += h * u[i]
        network.ground[j] = ground
        network.dv[j] = c * (network.columns[j] - 1.0) + brought


@hot
def _excess(c: float, i: int, rows: Any, room: Any) -> Any:
    # What row i exceeds one by after the step, times c.
    excess = c * (rows[i] - 1.0)
    for j in range(room.h.shape[0]):
        excess -= room.h[j, i] * (room.network.dv[j] + room.du[i])
    return excess


@hot
def _move(c: float, L: Any, u: Any, v: Any, x: Any, rows: Any, room: Any) -> bool:
    n, m, network = len(u), len(v), room.network
    longest = 0.0
    for i in range(n):
        longest = max(longest, abs(room.du[i]))
    for j in range(m):
        longest = max(longest, abs(network.dv[j]))
    before = _slope(rows, room)
    if not longest < np.inf or not before > 0.0:
        return False
    share = 1.0
    copy_multipliers(u, v, network.u, network.v)
    for _ in range(_CUTS):
        for j in range(m):
            v[j] = network.v[j] + share * network.dv[j]
        for i in range(n):
            moved = network.u[i] + share * room.du[i]
            u[i] = max(0.0, moved) if n > m else moved
        evaluate(c, L, u, v, x, rows, room)
        after = _slope(rows, room)
        if after >= -0.5 * before:
            return True
        share *= max(0.1, before / (before - after))
    return False


@hot
def _slope(rows: Any, room: Any) -> Any:
    # Of the dual along the step: what the sums exceed one by, times how their multipliers change.
    total = 0.0
    for j in range(len(room.network.columns)):
        total += (room.network.columns[j] - 1.0) * room.network.dv[j]
    for i in range(len(rows)):
        total += (rows[i] - 1.0) * room.du[i]
    return total


@kernel
def recover(c: float, L: Any, u: Any, v: Any, x: Any, rows: Any, room: Any) -> int:
    """The slow and sure way: from a c so large that all lists are much alike, in steps back to `c`.

    Returns 1; or 2 where L is so large beside c that its last digits decide. Then x is the last leader that was found,
    moved inside its constraints.
    """
    late = _begin_late(c, L, u, v)
    copy_multipliers(u, v, room.u, room.v)
    s, ratio = late, _RATIO
    while ratio < _LAST_RATIO:
        if newton(s, L, u, v, x, rows, room) >= 0:
            if s == c:
                return 1
            late = s
            copy_multipliers(u, v, room.u, room.v)
        else:
            ratio = np.sqrt(ratio)
            copy_multipliers(room.u, room.v, u, v)
        s = max(c, ratio * late)
    evaluate(late, L, u, v, x, rows, room)
    move_inside(x, rows)
    return 2


@kernel
def _begin_late(c: float, L: Any, u: Any, v: Any) -> Any:
    # Where c is as large as the losses differ: all entries of x are then about 1 / n.
    m, n = L.shape
    late = c
    for j in range(m):
        lowest, highest = L[j, 0], L[j, 0]
        for i in range(1, n):
            lowest, highest = min(lowest, L[j, i]), max(highest, L[j, i])
        late = max(late, highest - lowest)
        v[j] = -lowest
    for j in range(m):
        v[j] += late * even_multiplier(n)
    for i in range(n):
        u[i] = 0.0
    return late
