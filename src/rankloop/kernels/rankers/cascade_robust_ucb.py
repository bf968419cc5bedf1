"""CascadeKL-UCB with indices that allow for a number of changed clicks; it learns as CascadeKL-UCB does."""

from __future__ import annotations

from typing import Any, NamedTuple

from rankloop.kernels.jit import hot
from rankloop.rankers.cascade import show_largest


class RobustParams(NamedTuple):
    """How many items there are, and how many observations of each of them may be false."""

    n_items: int
    budget: float


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """The largest indices. Exploring: an item that is not shown has been clicked more often than one that is."""
    return show_largest(params.n_items, params.budget, state, scratch, items)
