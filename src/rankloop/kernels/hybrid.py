"""The hybrid leader (Zimmert, Luo and Wei 2019, over lists): <x, L> + c sum(-sqrt(x) + (1 - x) log(1 - x)).

x_ij solves 1 / (2 sqrt x) + log(1 - x) = (L_ij + u_i + v_j) / c, up to a constant that v takes: v_j makes column sums
one, u_i >= 0 keeps row sums at most one and is zero where they are less. Every value of the right side has an x, so
that the dual is smooth everywhere. It is concave: along a step its slope falls, and a step that passes the top by
much is shortened. Arrays are position-major: L[j, i].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.kernels import list_network
from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import Floats, hot, kernel
from rankloop.kernels.list_network import copy_multipliers, find_tight, settled, solve, spread_losses
from rankloop.kernels.tsallis import move_inside

# One entry of the hybrid leader: the x in (0, 1) with 1 / (2 sqrt x) + log(1 - x) = d, for every d.
#
# The left side falls from infinity to minus infinity, so there is exactly one. Up to one half it is found by way of z
# = 1 / (2 sqrt x), in which the equation is nearly z = d; beyond by way of the logarithm of y = 1 - x, in which it is
# nearly log y = d - 1/2. A fit begins, and one to three steps of Halley's method end.


_EVEN = 0.01395960062660223  # d where x is one half: sqrt(1/2) - log 2
_FAR = 8.0  # d from where one step is enough, and the logarithm is a short series
_LEAST = -700.0  # below, y is no longer a normal number
_NEARLY = 1e-5  # a step of Halley's method that is this short leaves an error of its third power
_ENTRY_STEPS = 8


@hot
def entry(d: float) -> Any:
    """x, and h = -dx/dd, which is 1 / (1 / (4 x sqrt x) + 1 / (1 - x))."""
    if d >= _EVEN:
        z = _far(d) if d >= _FAR else _small(d)
        x = 0.25 / (z * z)
        rest = 1.0 - x
        return x, 2.0 * x * rest / (z * rest + 2.0 * x)
    y = _large(d)
    x = 1.0 - y
    steep = 4.0 * x * np.sqrt(x)
    return x, steep * y / (y + steep)


@hot
def _far(d: float) -> Any:
    z = d + 0.25 / (d * d)
    q = 0.25 / (z * z)
    fall = q * (1.0 + q * (1 / 2 + q * (1 / 3 + q * (1 / 4 + q * (1 / 5 + q * (1 / 6))))))  # -log(1 - q)
    bend = 2.0 * q / (z * (1.0 - q))
    return z - (z - fall - d) / (1.0 + bend)


@hot
def _small(d: float) -> Any:
    if d < 2.0:
        z = 0.70755355 + d * (0.1922754 + d * (0.3482966 - d * 0.05295814))
    else:
        z = d + 0.25 / (d * d)
    for _ in range(_ENTRY_STEPS):
        q = 0.25 / (z * z)
        rest = 1.0 - q
        excess = z + log(rest) - d
        bend = 2.0 * q / (z * rest)
        slope = 1.0 + bend
        step = excess / slope
        step /= 1.0 + 0.5 * step * bend * (3.0 + 2.0 * q / rest) / (z * slope)
        z -= step
        if abs(step) <= _NEARLY:
            break
    return z


@hot
def _large(d: float) -> Any:
    near = exp(max(d, _LEAST) - 0.5)
    y = near * (0.99998221 - near * (0.24853627 + near * (0.10805954 - near * 0.02811135)))
    for _ in range(_ENTRY_STEPS):
        rest = 1.0 - y
        root = np.sqrt(rest)
        excess = log(y) + 0.5 / root - max(d, _LEAST)
        bend = 0.25 * y / (rest * root)
        slope = 1.0 + bend
        step = excess / slope
        step /= 1.0 - 0.5 * step * bend * (1.0 + 1.5 * y / rest) / slope
        y *= exp(-step)
        if abs(step) <= _NEARLY:
            break
    return y


_STEPS = 40  # two or three are usual
_CUTS = 12  # how often one step may be shortened
_SURE = 40.0  # exp(-40) is nothing beside one
_RATIO = 0.25  # of c, from step to step of the slow way
_LAST_RATIO = 0.98  # where smaller steps are of no use


class HybridScratch(NamedTuple):
    """Never state."""

    network: list_network.SolverScratch
    h: Floats  # by position and item: by how much x falls as a multiplier rises by c
    du: Floats  # the step of every row's multiplier
    unbounded: Floats  # as far as these may fall
    u: Floats  # multipliers that the slow way comes back to
    v: Floats


def new_scratch(n: int, m: int) -> HybridScratch:
    """Scratch for `n` items on `m` positions."""
    return HybridScratch(
        list_network.new_scratch(n, m),
        np.empty((m, n)),
        np.empty(n),
        np.full(n, np.inf),
        np.empty(n),
        np.empty(m),
    )


def scratch_bytes(n: int, m: int) -> int:
    """Bytes of the scratch for `n` items on `m` positions."""
    return list_network.scratch_bytes(n, m) + 8 * (m * n + m + 3 * n)


@kernel
def even_multiplier(n: int) -> Any:
    """v_j / c where all of `n` items are alike: x = 1 / n everywhere."""
    return 0.5 * np.sqrt(float(n)) + (log(1.0 - 1.0 / n) if n > 1 else -_SURE)


@kernel
def newton(c: float, L: Any, u: Any, v: Any, x: Any, rows: Any, scratch: Any) -> int:
    """Move `u` and `v` to the optimum, write x and its row sums; returns the steps taken, -1 where they do not end."""
    evaluate(c, L, u, v, x, rows, scratch)
    for step in range(_STEPS):
        n_tight = find_tight(rows, scratch.network)
        if n_tight < 0:
            return -1
        if settled(rows, scratch.network, n_tight):
            return step
        if not _find_step(c, u, rows, scratch, n_tight) or not _move(c, L, u, v, x, rows, scratch):
            return -1
    return -1


@hot
def evaluate(c: float, L: Any, u: Any, v: Any, x: Any, rows: Any, scratch: Any) -> None:
    """x, its row sums, its column sums, h, and the column sums of h over the rows whose multiplier is zero."""
    m, n = L.shape
    inverse, network = 1.0 / c, scratch.network
    for i in range(n):
        rows[i] = 0.0
        network.free[i] = 1.0 if u[i] == 0.0 and n > m else 0.0
    for j in range(m):
        total, ground = 0.0, 0.0
        for i in range(n):
            chance, h = entry((L[j, i] + u[i] + v[j]) * inverse)
            x[j, i] = chance
            scratch.h[j, i] = h
            rows[i] += chance
            total += chance
            ground += h * network.free[i]
        network.columns[j] = total
        network.ground[j] = ground


@hot
def _find_step(c: float, u: Any, rows: Any, scratch: Any, n_tight: int) -> bool:
    # Newton's step where no multiplier falls below zero: rows whose multiplier would are let go, with what they have,
    # until there are none; then rows that this makes too large are taken in again. The matrix of the step has no
    # positive entry off its diagonal, so that the first never lowers another multiplier, nor does the second.
    network = scratch.network
    n, square, letting_go = len(u), len(u) == scratch.h.shape[0], False
    for i in range(n):
        network.free[i] = 1.0
    for a in range(n_tight):
        network.free[network.tight[a]] = 0.0
    for _ in range(2 * n):
        _prepare(c, u, rows, scratch, n_tight)
        solve(scratch.unbounded, rows, network, n_tight)
        kept = 0
        for a in range(n_tight):
            i = network.tight[a]
            scratch.du[i] = network.du[a]
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
                if (
                    network.free[i] > 0.0
                    and _excess(c, i, rows, scratch) > 0.0
                    and n_tight < len(network.tight)
                ):
                    network.free[i] = 0.0
                    network.tight[n_tight] = i
                    n_tight += 1
        if n_tight == kept:
            return True
    return False


@hot
def _prepare(c: float, u: Any, rows: Any, scratch: Any, n_tight: int) -> None:
    # Rows that are not tight end with a multiplier of zero; those of them that have one bring it into their columns.
    network = scratch.network
    m, n = scratch.h.shape
    for a in range(n_tight):
        i = network.tight[a]
        for j in range(m):
            network.h[a, j] = scratch.h[j, i]
        network.du[a] = c * (rows[i] - 1.0)
    for i in range(n):
        scratch.du[i] = -u[i]
    for j in range(m):
        ground, brought = 0.0, 0.0
        for i in range(n):
            h = scratch.h[j, i] * network.free[i]
            ground += h
            brought += h * u[i]
        network.ground[j] = ground
        network.dv[j] = c * (network.columns[j] - 1.0) + brought


@hot
def _excess(c: float, i: int, rows: Any, scratch: Any) -> Any:
    # What row i exceeds one by after the step, times c.
    excess = c * (rows[i] - 1.0)
    for j in range(scratch.h.shape[0]):
        excess -= scratch.h[j, i] * (scratch.network.dv[j] + scratch.du[i])
    return excess


@hot
def _move(c: float, L: Any, u: Any, v: Any, x: Any, rows: Any, scratch: Any) -> bool:
    n, m, network = len(u), len(v), scratch.network
    longest = 0.0
    for i in range(n):
        longest = max(longest, abs(scratch.du[i]))
    for j in range(m):
        longest = max(longest, abs(network.dv[j]))
    before = _slope(rows, scratch)
    if not longest < np.inf or not before > 0.0:
        return False
    share = 1.0
    copy_multipliers(u, v, network.u, network.v)
    for _ in range(_CUTS):
        for j in range(m):
            v[j] = network.v[j] + share * network.dv[j]
        for i in range(n):
            moved = network.u[i] + share * scratch.du[i]
            u[i] = max(0.0, moved) if n > m else moved
        evaluate(c, L, u, v, x, rows, scratch)
        after = _slope(rows, scratch)
        if after >= -0.5 * before:
            return True
        share *= max(0.1, before / (before - after))
    return False


@hot
def _slope(rows: Any, scratch: Any) -> Any:
    # Of the dual along the step: what the sums exceed one by, times how their multipliers change.
    total = 0.0
    for j in range(len(scratch.network.columns)):
        total += (scratch.network.columns[j] - 1.0) * scratch.network.dv[j]
    for i in range(len(rows)):
        total += (rows[i] - 1.0) * scratch.du[i]
    return total


@kernel
def recover(c: float, L: Any, u: Any, v: Any, x: Any, rows: Any, scratch: Any) -> int:
    """The slow and sure way: from a c so large that all lists are much alike, in steps back to `c`.

    Returns 1; or 2 where L is so large beside c that its last digits decide. Then x is the last leader that was found,
    moved inside its constraints.
    """
    late = _begin_late(c, L, u, v)
    copy_multipliers(u, v, scratch.u, scratch.v)
    s, ratio = late, _RATIO
    while ratio < _LAST_RATIO:
        if newton(s, L, u, v, x, rows, scratch) >= 0:
            if s == c:
                return 1
            late = s
            copy_multipliers(u, v, scratch.u, scratch.v)
        else:
            ratio = np.sqrt(ratio)
            copy_multipliers(scratch.u, scratch.v, u, v)
        s = max(c, ratio * late)
    evaluate(late, L, u, v, x, rows, scratch)
    move_inside(x, rows)
    return 2


@kernel
def _begin_late(c: float, L: Any, u: Any, v: Any) -> Any:
    # Where c is as large as the losses differ: all entries of x are then about 1 / n.
    late = max(c, spread_losses(L, u, v))
    for j in range(len(v)):
        v[j] += late * even_multiplier(len(u))
    return late
