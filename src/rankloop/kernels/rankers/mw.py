"""MW for ordered slates (2010, Algorithm 2): multiplicative weights over items at positions.

Arrays are position-major: W[j, i] belongs to item i at position j. Columns of the paper are rows here: each position's
weights sum to one, and each item's over the positions to at most one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import exp
from rankloop.kernels.entropy_projection import project
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import show

_LEAST = 1e-280  # a weight that small is drawn by exploring only; zero could never grow again


class MWParams(NamedTuple):
    """How fast weights move, and how much is explored."""

    eta: float  # the step
    gamma: float  # the share of rounds that explore


class MWState(NamedTuple):
    """Weights, the chances that follow from them, and how the last projections went."""

    t: NDArray[np.int64]  # rounds with feedback
    W: NDArray[np.float64]  # by position and item: weights, which sum to 1 over the items
    x: NDArray[np.float64]  # X' = (1 - gamma) W + gamma / n
    rows: NDArray[np.float64]  # its sum over positions
    steps: NDArray[np.int64]  # of all projections; and how many projections ended before they were exact


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 2, lines 2-3."""
    return show(state.x, state.rows, key, scratch[0], items, propensities)


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
    """Alg. 2, lines 4-6: the losses of the shown pairs, weighted by how likely they were shown; then the projection."""
    W = state.W
    lost = False
    for j in range(len(items)):
        if feedback[j] == 0.0:
            weight = W[j, items[j]] * exp(-params.eta / propensities[j])
            W[j, items[j]] = max(weight, _LEAST)
            lost = True
    state.t[0] += 1
    if not lost:
        return
    steps = project(W, scratch[1])
    state.steps[0] += abs(steps)
    state.steps[1] += steps < 0
    m, n = W.shape
    for i in range(n):
        state.rows[i] = 0.0
    for j in range(m):
        for i in range(n):
            state.x[j, i] = (1.0 - params.gamma) * W[j, i] + params.gamma / n
            state.rows[i] += state.x[j, i]
