"""PEGE (Chaudhuri and Tewari 2016): phases that explore every item on top, then show the best order found so far.

Phase b puts every item on top b times and then shows the items by their mean gains for e^b rounds. Which item is
explored next is drawn evenly from those still due, so rankings may overlap and feedback may come late.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import exp
from rankloop.kernels.jit import hot
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.random import below
from rankloop.kernels.sorting import by_falling_score

_LONGEST = 40.0  # e^40 rounds are never over


class PEGEParams(NamedTuple):
    """What feedback means."""

    k: int
    exponential: bool  # g(r) = 2**r - 1 instead of r


class PEGEState(NamedTuple):
    """What exploration has revealed, and where in its phase the ranker is."""

    t: NDArray[np.int64]  # rounds learnt
    phase: NDArray[np.int64]  # b, counted from 1
    due: NDArray[np.int64]  # by item: how often it is still to be explored in this phase
    left: NDArray[np.int64]  # rounds without exploration that are left in this phase
    total: NDArray[np.float64]  # by item: gains ...
    seen: NDArray[np.float64]  # ... and how many of them
    order: NDArray[np.int64]  # items by falling mean


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """The best order so far, in an exploration round behind one of the items that are due."""
    m, n_due = len(items), 0
    for i in range(m):
        n_due += state.due[i] > 0
        items[i] = state.order[i]
    memo[0][0] = 1.0 if n_due > 0 else 0.0
    if n_due == 0:
        return False
    nth = below(key, 0, n_due)
    chosen = -1
    while nth >= 0:
        chosen += 1
        nth -= state.due[chosen] > 0
    place = 0
    while items[place] != chosen:
        place += 1
    for position in range(place, 0, -1):
        items[position] = items[position - 1]
    items[0] = chosen
    return True


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
    """Count what exploration revealed; go on to the next phase when this one is over."""
    state.t[0] += 1
    open_before = _n_due(state)
    if memo[0][0] > 0.0:
        for position in range(params.k):
            item = items[position]
            gain = exp2_gain(feedback[position]) if params.exponential else feedback[position]
            state.total[item] += gain
            state.seen[item] += 1.0
            state.due[item] = max(state.due[item] - 1, 0)
    elif open_before == 0:
        state.left[0] -= 1
    if open_before > 0 and _n_due(state) == 0:
        state.left[0] = np.int64(exp(min(float(state.phase[0]), _LONGEST)))
        sort(state, scratch)
    if _n_due(state) == 0 and state.left[0] <= 0:
        state.phase[0] += 1
        for i in range(len(state.due)):
            state.due[i] = state.phase[0]


@hot
def sort(state: Any, scratch: Any) -> None:
    """Order the items by their mean gains."""
    scores, room = scratch
    for i in range(len(scores)):
        scores[i] = state.total[i] / state.seen[i] if state.seen[i] > 0.0 else 0.0
    by_falling_score(scores, len(scores), state.order, room)


@hot
def _n_due(state: Any) -> int:
    n = 0
    for i in range(len(state.due)):
        n += state.due[i] > 0
    return n
