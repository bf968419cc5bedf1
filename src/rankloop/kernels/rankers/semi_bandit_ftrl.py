"""Follow the regularised leader over lists, when the relevance of every item at a position that counts is revealed.

One number an item is learnt, because its relevance does not depend on where it stands; the leader is still a chance for
each item at each position, found by the solver of FTRL-PBM from losses of rank one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import tsallis
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import sample
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.random import below


class SemiBanditParams(NamedTuple):
    """What the positions are worth, and the scale of relevance."""

    worth: NDArray[np.float64]  # by position, beyond what the last one is worth; not zero
    squared: float  # of the learning rate: eta_t = 1 / (2 sqrt(squared t))
    exponential: bool  # whether a gain is 2^r - 1
    largest_gain: float


class SemiBanditState(NamedTuple):
    """Summed losses, and the leader that follows from them."""

    t: NDArray[np.int64]  # the round that is to come, counted from 1
    L_hat: NDArray[np.float64]  # by item: summed estimates of its loss
    u: NDArray[np.float64]  # multipliers of the items' sums, warm for the next solve
    v: NDArray[np.float64]  # ... and of the positions' sums
    x: NDArray[np.float64]  # the chance of item i at position j
    rows: NDArray[np.float64]  # its sum over positions: the chance that item i is observed
    fallbacks: NDArray[np.int64]  # solves that needed the slow way; and those of them that ended inexact


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """A list for the positions that count, with chances x, and the other items behind it in random order."""
    _, sampling, _, top, taken = scratch
    n, m = state.x.shape
    sample(state.x, state.rows, key, sampling, top)
    for i in range(m):
        taken[i] = 0
    likely = 0.0
    for j in range(n):
        i = top[j]
        items[j] = i
        taken[i] = 1
        propensities[j] = min(1.0, state.x[j, i])
        memo[0][j] = min(1.0, state.rows[i])
        likely += propensities[j]
    place = n
    for i in range(m):
        if taken[i] == 0:
            other = n + below(key, 1 + n + i, place - n + 1)  # inside-out shuffle of those behind
            items[place] = items[other] if other < place else i
            items[other] = i
            place += 1
    for position in range(n, m):
        propensities[position] = max((1.0 - state.rows[items[position]]) / (m - n), 1e-300)
    return bool(likely < 0.5 * n)


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
    """An item is observed with chance memo[0]: its loss counts that much more. Then the next leader."""
    for j in range(len(params.worth)):
        relevance = feedback[j]
        gain = exp2_gain(relevance) if params.exponential else relevance
        state.L_hat[items[j]] += (1.0 - gain / params.largest_gain) / memo[0][j]
    state.t[0] += 1
    lead(params, state, scratch)


@hot
def lead(params: Any, state: Any, scratch: Any) -> None:
    """x, the argmin of <x, L> - sum of sqrt(x) / eta_t, with L_ij = worth_j L_hat_i."""
    room, L = scratch[0], scratch[2]
    for j in range(L.shape[0]):
        for i in range(L.shape[1]):
            L[j, i] = params.worth[j] * state.L_hat[i]
    t = params.squared * float(state.t[0])
    if tsallis.newton(t, L, state.u, state.v, state.x, state.rows, room) < 0:
        failure = tsallis.recover(t, L, state.u, state.v, state.x, state.rows, room)
        state.fallbacks[0] += 1
        state.fallbacks[1] += failure == 2
