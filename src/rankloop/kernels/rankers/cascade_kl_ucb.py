"""CascadeKL-UCB (2015, Algorithms 1 and 2): the items with the largest indices, observed up to the first click."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.click_counts import log_level, upper_bound
from rankloop.kernels.jit import hot
from rankloop.kernels.sorting import by_falling_score_from

_NEVER_SEEN = 2.0  # above every index


class CascadeParams(NamedTuple):
    """How many items there are."""

    n_items: int


class CascadeState(NamedTuple):
    """How often each item was examined, and how often it was then clicked."""

    t: NDArray[np.int64]  # rounds with feedback
    N: NDArray[np.float64]  # by item: looks
    W: NDArray[np.float64]  # by item: clicks


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, lines 6-8. Exploring: an item that is not shown has been clicked more often than one that is."""
    return show_largest(params.n_items, 0.0, state, scratch, items)


@hot
def show_largest(n: int, budget: float, state: Any, scratch: Any, items: Any) -> bool:
    """The items with the largest indices, if `budget` clicks of each may have been taken away."""
    index, turned, order, room = scratch
    level = log_level(float(state.t[0] + 1))
    for i in range(n):
        N = state.N[i]
        # The clicks without fraud are at most W + budget, and the bound rises with the mean.
        index[i] = upper_bound(min(1.0, (state.W[i] + budget) / N), N, level) if N > 0.0 else _NEVER_SEEN
    by_falling_score_from(state.t[0] % n, index, n, turned, order, room)
    least, most = 1.0, 0.0
    for place in range(n):
        i = order[place]
        mean = state.W[i] / max(state.N[i], 1.0)
        if place < len(items):
            items[place] = i
            least = min(least, mean)
        else:
            most = max(most, mean)
    return most > least


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
    """Alg. 1, lines 9-13: all down to the first click were examined, and nothing is known of the rest."""
    for j in range(len(items)):
        state.N[items[j]] += 1.0
        if feedback[j] > 0.0:
            state.W[items[j]] += 1.0
            break
    state.t[0] += 1
