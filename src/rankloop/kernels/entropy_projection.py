"""The projection of MW: the nearest weights, in relative entropy, from which lists can be drawn.

Of W, position by item, it is e^(-u_i) W_ij divided by its sum over the items, so that positions sum to one; u_i >= 0 is
as large as it takes to keep item i's sum over the positions at most one, and zero where that is less. Dividing items by
their sums in turn finds it, but in thousands of turns once the weights are nearly a list. Newton's method on

    sum_j log sum_i e^(-u_i) W_ij + sum_i u_i,    u >= 0,

takes a few steps. Its Hessian on the tight items is the Laplacian of a network that is grounded by all the others,
and eliminating it only ever adds, so that it is exact however lopsided the weights are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import Floats, Ints, hot

CLOSE = 1e-12  # of the sums at the solution
_STEPS = 200  # three are usual
_REACH = 2.0  # no step changes a weight by more than this factor's exponential
_NOTHING = 1e-13


class EntropyScratch(NamedTuple):
    """Never state."""

    sums: Floats  # of each item
    u: Floats
    tight: Ints
    net: Floats  # conductance between tight items
    drain: Floats  # ... and from them to the ground
    step: Floats


def new_scratch(n: int, m: int) -> EntropyScratch:
    """Scratch for `n` items on `m` positions."""
    most = min(n, 2 * m)
    return EntropyScratch(
        np.empty(n),
        np.empty(n),
        np.empty(most, np.int64),
        np.empty((most, most)),
        np.empty(most),
        np.empty(most),
    )


@hot
def project(W: Any, scratch: Any) -> int:
    """Replace W by its projection; returns the number of steps, negative where they ran out."""
    m, n = W.shape
    for i in range(n):
        scratch.u[i] = 0.0
    n_tight, moved = 0, 0.0
    for step in range(_STEPS):
        # e^(-u) W and its positions' sums before: what the objective has changed by
        change = moved + _scale_positions(W, scratch.sums)
        if n_tight > 0 and change > CLOSE:  # too far: half of it back
            moved = 0.0
            for k in range(n_tight):
                back = _shrink(W, scratch, scratch.tight[k], -0.5 * scratch.step[k])
                scratch.step[k] += back
                moved += back
            continue
        n_tight, worst = _find_tight(W, scratch)
        if worst <= CLOSE:
            return step + 1
        if n_tight <= len(scratch.tight):
            _find_step(W, scratch, n_tight)
            while True:  # who stands at zero and would go below it takes no part
                kept = _without_pushed(m < n, scratch, n_tight)
                if kept == n_tight:
                    break
                n_tight = kept
                _find_step(W, scratch, n_tight)
        else:  # very far: divide by the sums, until fewer take part
            n_tight = 0
            for i in range(n):
                if scratch.sums[i] > 1.0:
                    _shrink(W, scratch, i, log(scratch.sums[i]))
        moved = 0.0
        for k in range(n_tight):
            scratch.step[k] = _shrink(W, scratch, scratch.tight[k], scratch.step[k])
            moved += scratch.step[k]
    return -_STEPS


@hot
def _scale_positions(W: Any, sums: Any) -> float:
    m, n = W.shape
    logs = 0.0
    for i in range(n):
        sums[i] = 0.0
    for j in range(m):
        total = 0.0
        for i in range(n):
            total += W[j, i]
        scale = 1.0 / total
        logs += log(total)
        for i in range(n):
            W[j, i] *= scale
            sums[i] += W[j, i]
    return logs


@hot
def _find_tight(W: Any, scratch: Any) -> Any:
    # Where there are as many items as positions all are tight, and u may have any sign.
    m, n = W.shape
    n_tight, worst = 0, 0.0
    for i in range(n):
        over = scratch.sums[i] - 1.0
        if n == m or scratch.u[i] > 0.0:
            worst = max(worst, abs(over))
        else:
            worst = max(worst, over)
            if over <= _NOTHING:
                continue
        if n_tight < len(scratch.tight):
            scratch.tight[n_tight] = i
        n_tight += 1
    return n_tight, worst


@hot
def _without_pushed(bounded: bool, scratch: Any, n_tight: int) -> int:
    kept = 0
    for k in range(n_tight):
        i = scratch.tight[k]
        if not (bounded and scratch.u[i] == 0.0 and scratch.step[k] < 0.0):
            scratch.tight[kept] = i
            kept += 1
    return kept


@hot
def _find_step(W: Any, scratch: Any, n_tight: int) -> None:
    m, n = W.shape
    net, drain, step = scratch.net, scratch.drain, scratch.step
    for k in range(n_tight):
        drain[k] = 0.0
        step[k] = scratch.sums[scratch.tight[k]] - 1.0
        for o in range(n_tight):
            net[k, o] = 0.0
    for j in range(m):
        loose = 0.0
        if n_tight < n:
            place = 0
            for i in range(n):
                if place < n_tight and scratch.tight[place] == i:
                    place += 1
                else:
                    loose += W[j, i]
        for k in range(n_tight):
            weight = W[j, scratch.tight[k]]
            drain[k] += weight * loose
            for o in range(k):
                flow = weight * W[j, scratch.tight[o]]
                net[k, o] += flow
                net[o, k] += flow
    # Eliminate one node after the other: what it conducted, its neighbours now conduct among themselves.
    for k in range(n_tight - 1, -1, -1):
        total = drain[k]
        for o in range(k):
            total += net[k, o]
        net[k, k] = total
        if total < _NOTHING:
            continue
        for o in range(k):
            share = net[k, o] / total
            drain[o] += share * drain[k]
            step[o] += share * step[k]
            for p in range(o):
                net[o, p] += share * net[k, p]
                net[p, o] = net[o, p]
    largest = 0.0
    for k in range(n_tight):
        if net[k, k] < _NOTHING:  # cut off from the ground, or the last one where nothing is loose
            step[k] = 0.0
            continue
        for o in range(k):
            step[k] += net[k, o] * step[o]
        step[k] /= net[k, k]
        largest = max(largest, abs(step[k]))
    if largest > _REACH:
        for k in range(n_tight):
            step[k] *= _REACH / largest


@hot
def _shrink(W: Any, scratch: Any, i: int, by: float) -> float:
    # Returns how far it went: u stays at least zero.
    m, n = W.shape
    if n > m:
        by = max(by, -scratch.u[i])
    scratch.u[i] += by
    scale = exp(-by)
    for j in range(m):
        W[j, i] *= scale
    return by
