"""The minimiser of FTRL-PBM (2022, eq. 2): <x, L> - 2 sqrt(t) sum sqrt(x) over lists, by Newton's method on its dual.

With eta_t = 1 / (2 sqrt t) the optimum is x_ij = t / D_ij^2, D_ij = L_ij + u_i + v_j (erratum C5): v_j makes column
sums one, u_i >= 0 keeps row sums at most one and is zero where they are less. Arrays are position-major: L[j, i].

Three things make two steps enough, from the multipliers of the round before:
- Newton on 1 / sqrt(sum) - 1, which is nearly linear in v and u, instead of sum - 1.
- The step is exact however lopsided x is: see `list_network`.
- No step may take D beyond 0.7 of the way to zero, which sqrt(t / column sum) bounds from below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.list_network import copy_multipliers, find_tight, settled, solve, spread_losses
from rankloop.kernels.vectors import evaluate_column

_STEPS = 30  # two are usual
_REACH = 0.7
_RATIO = 0.25  # of t, from step to step of the slow way
_LAST_RATIO = 0.98  # where smaller steps are of no use


@kernel
def newton(t: float, L: Any, u: Any, v: Any, x: Any, rows: Any, scratch: Any) -> int:
    """Move `u` and `v` to the optimum, write x and its row sums; returns the steps taken, -1 where they do not end."""
    for step in range(_STEPS):
        evaluate(t, L, u, v, x, rows, scratch)
        n_tight = find_tight(rows, scratch)
        if n_tight < 0:
            return -1
        if settled(rows, scratch, n_tight):
            return step
        _find_step(t, u, x, rows, scratch, n_tight)
        if not _move(t, u, v, scratch, n_tight, len(u) == len(v)):
            return -1
    return -1


@hot
def evaluate(t: float, L: Any, u: Any, v: Any, x: Any, rows: Any, scratch: Any) -> None:
    """x, its row sums, its column sums, and the sums of x / D over the rows whose multiplier is zero."""
    m, n = L.shape
    weight = 1.0 if n > m else 0.0
    for i in range(n):
        scratch.free[i] = weight if u[i] == 0.0 else 0.0
    for j in range(m):
        scratch.columns[j], scratch.ground[j] = evaluate_column(L, j, u, v[j], t, weight, x, rows)


@hot
def _find_step(t: float, u: Any, x: Any, rows: Any, scratch: Any, n_tight: int) -> None:
    m = len(scratch.columns)
    inverse_root = 1.0 / np.sqrt(t)
    for a in range(n_tight):
        i = scratch.tight[a]
        for j in range(m):
            scratch.h[a, j] = x[j, i] * np.sqrt(x[j, i]) * inverse_root
        scratch.du[a] = rows[i] * (np.sqrt(rows[i]) - 1.0)
    for j in range(m):
        scratch.dv[j] = scratch.columns[j] * (np.sqrt(scratch.columns[j]) - 1.0)
    solve(u, rows, scratch, n_tight)


@hot
def _move(t: float, u: Any, v: Any, scratch: Any, n_tight: int, square: bool) -> bool:
    lowest, scale = 0.0, 1.0
    for a in range(n_tight):
        lowest = min(lowest, scratch.du[a])
    for j in range(len(v)):
        fall = -(scratch.dv[j] + lowest)
        reach = _REACH * np.sqrt(t / scratch.columns[j])
        if not fall * scale <= reach:
            scale = reach / fall
    if not scale > 0.0:
        return False
    for j in range(len(v)):
        v[j] += scale * scratch.dv[j]
    for a in range(n_tight):
        moved = u[scratch.tight[a]] + scale * scratch.du[a]
        u[scratch.tight[a]] = moved if square else max(0.0, moved)
    return True


@kernel
def recover(t: float, L: Any, u: Any, v: Any, x: Any, rows: Any, scratch: Any) -> int:
    """The slow and sure way: from the leader of a round so late that all lists are much alike, in steps back to `t`.

    Returns 1; or 2 where L is so large beside sqrt(t) that its last digits decide. Then x is the last leader that was
    found, moved inside its constraints.
    """
    late = _begin_late(t, L, u, v)
    copy_multipliers(u, v, scratch.u, scratch.v)
    s, ratio = late, _RATIO
    while ratio < _LAST_RATIO:
        if newton(s, L, u, v, x, rows, scratch) >= 0:
            if s == t:
                return 1
            late = s
            copy_multipliers(u, v, scratch.u, scratch.v)
        else:
            ratio = np.sqrt(ratio)
            copy_multipliers(scratch.u, scratch.v, u, v)
        s = max(t, ratio * late)
    evaluate(late, L, u, v, x, rows, scratch)
    move_inside(x, rows)
    return 2


@kernel
def _begin_late(t: float, L: Any, u: Any, v: Any) -> float:
    # Where sqrt(t) is as large as the losses differ; with multipliers from which every D is positive.
    largest = spread_losses(L, u, v)
    late = max(t, largest * largest)
    for j in range(len(v)):
        v[j] += np.sqrt(len(u) * late)
    return late


@kernel
def move_inside(x: Any, rows: Any) -> None:
    """Scale columns to one, large rows down to one; what columns then lack goes to the rows that lack most."""
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
