"""CascadeKL-UCB with indices that allow for a number of changed clicks; it learns as CascadeKL-UCB does."""

from __future__ import annotations

from typing import Any, NamedTuple

from rankloop.kernels.jit import hot
from rankloop.kernels.kl_ucb import log_level, upper_bound
from rankloop.kernels.sorting import by_falling_score_from

_NEVER_SEEN = 2.0  # above every index


class RobustParams(NamedTuple):
    """How many items there are, and how many observations of each of them may be false."""

    n_items: int
    budget: float


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """The largest indices. Exploring: an item that is not shown has been clicked more often than one that is."""
    index, turned, order, room = scratch
    n = params.n_items
    level = log_level(float(state.t[0] + 1))
    for i in range(n):
        N = state.N[i]
        # The clicks without fraud are at most W + budget, and the bound rises with the mean.
        index[i] = (
            upper_bound(min(1.0, (state.W[i] + params.budget) / N), N, level) if N > 0.0 else _NEVER_SEEN
        )
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
