"""One step of Newton's method on the multipliers of a matrix of lists: columns sum to one, rows to at most one.

x_ij falls as u_i + v_j rises, by h_ij for each unit. Columns are eliminated first, each by itself. What is left on the
few tight rows is the Laplacian of a network of conductances, grounded by the rows that are not tight; eliminating it
only ever adds, so it is exact however lopsided x is. Arrays are position-major.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.kernels.jit import Floats, Ints, hot, kernel

TOLERANCE = 1e-10  # of the sums at the solution
TIGHT = 5e-10  # a row counts as tight from here on


class SolverScratch(NamedTuple):
    """Never state."""

    free: Floats  # 1 where a row is not tight
    columns: Floats
    ground: Floats
    tight: Ints
    h: Floats  # of the tight rows
    g: Floats  # one over the column sums of h
    du: Floats
    dv: Floats
    w: Floats  # conductance between tight rows
    drain: Floats  # ... and from them to the ground
    u: Floats  # multipliers to come back to
    v: Floats


def new_scratch(n: int, m: int) -> SolverScratch:
    """Scratch for `n` items on `m` positions."""
    most = min(n, 2 * m)  # at a solution fewer than m rows are tight, or all of m
    return SolverScratch(
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


def scratch_bytes(n: int, m: int) -> int:
    """Bytes of the scratch for `n` items on `m` positions."""
    most = min(n, 2 * m)
    return 8 * (2 * n + 5 * m + most * (m + most + 3))


@hot
def find_tight(rows: Any, scratch: Any) -> int:
    """Write the rows that are tight or above one; returns how many, -1 where they are too many."""
    n_tight = 0
    for i in range(len(rows)):
        if scratch.free[i] == 0.0 or not rows[i] <= 1.0 + TIGHT:
            if n_tight == len(scratch.tight):
                return -1
            scratch.tight[n_tight] = i
            n_tight += 1
    return n_tight


@hot
def settled(rows: Any, scratch: Any, n_tight: int) -> bool:
    """Whether columns and tight rows sum to one."""
    for j in range(len(scratch.columns)):
        if not abs(scratch.columns[j] - 1.0) <= TOLERANCE:
            return False
    off = 0.0
    for a in range(n_tight):
        off = max(off, abs(rows[scratch.tight[a]] - 1.0))
    return off <= TOLERANCE


@hot
def solve(u: Any, rows: Any, scratch: Any, n_tight: int) -> None:
    """Turn what is in `du` and `dv`, the excess of rows and columns, into a step of their multipliers.

    `scratch.h` and `scratch.ground` have the conductances: of the tight rows, and of all others together by column.
    """
    m = len(scratch.columns)
    square = len(rows) == m
    w, dv, du, g = scratch.w, scratch.dv, scratch.du, scratch.g
    for a in range(n_tight):
        i = scratch.tight[a]
        if scratch.free[i] > 0.0:  # it became tight just now: the next pass leaves it out of the ground
            for j in range(m):
                scratch.ground[j] = max(scratch.ground[j] - scratch.h[a, j], 1e-3 * scratch.ground[j])
        scratch.drain[a] = 0.0
        for b in range(a):
            w[a, b] = 0.0
    # h_aj / g_j of a tight row's share in column j leads to the other tight rows there, and to the ground by the rows
    # that are not tight.
    for j in range(m):
        total = scratch.ground[j]
        for a in range(n_tight):
            total += scratch.h[a, j]
        g[j] = 1.0 / total
        dv[j] *= g[j]
        if square and j == 0:  # n = m: one multiplier is free, and v_0 stays
            dv[j] = 0.0
            for a in range(n_tight):
                scratch.drain[a] += scratch.h[a, j]
            continue
        for a in range(n_tight):
            share = scratch.h[a, j] * g[j]
            scratch.drain[a] += share * scratch.ground[j]
            du[a] -= scratch.h[a, j] * dv[j]
            for b in range(a):
                w[a, b] += share * scratch.h[b, j]
    eliminate(u, scratch, n_tight, square)
    for a in range(n_tight):
        for j in range(1 if square else 0, m):
            dv[j] -= scratch.h[a, j] * g[j] * du[a]


@hot
def eliminate(u: Any, scratch: Any, n_tight: int, square: bool) -> None:
    """Turn the flow into each tight row, in `du`, into how far it rises: not below -u unless the matrix is square.

    Conductances are in `w` between rows a > b, and in `drain` to the ground.
    """
    w, drain, du = scratch.w, scratch.drain, scratch.du
    for a in range(n_tight - 1, -1, -1):  # eliminate row a: its conductances pass to the others
        total = drain[a]
        for b in range(a):
            total += w[a, b]
        w[a, a] = 1.0 / total
        for b in range(a):
            share = w[a, b] * w[a, a]
            drain[b] += share * drain[a]
            du[b] += share * du[a]
            for c in range(b):
                w[b, c] += share * w[a, c]
    for a in range(n_tight):
        total = du[a]
        for b in range(a):
            total += w[a, b] * du[b]
        rise, least = total * w[a, a], -u[scratch.tight[a]]
        du[a] = least if rise < least and not square else rise  # what is no number stays none


@kernel
def spread_losses(L: Any, u: Any, v: Any) -> float:
    """The largest difference of losses at one position; `u` becomes zero, `v` minus the lowest of each position."""
    m, n = L.shape
    largest = 0.0
    for j in range(m):
        lowest, highest = L[j, 0], L[j, 0]
        for i in range(1, n):
            lowest, highest = min(lowest, L[j, i]), max(highest, L[j, i])
        largest = max(largest, highest - lowest)
        v[j] = -lowest
    for i in range(n):
        u[i] = 0.0
    return largest


@kernel
def copy_multipliers(u: Any, v: Any, to_u: Any, to_v: Any) -> None:
    """Write `u` to `to_u` and `v` to `to_v`."""
    for i in range(len(u)):
        to_u[i] = u[i]
    for j in range(len(v)):
        to_v[j] = v[j]
