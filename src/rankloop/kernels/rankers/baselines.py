"""Rankings that never learn: evenly random, and fixed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot
from rankloop.kernels.random import draw


class UniformParams(NamedTuple):
    """How many items there are; 0 where each request brings its own."""

    n_items: int


class FixedParams(NamedTuple):
    """The order that is always shown."""

    order: NDArray[np.int64]


class RoundsState(NamedTuple):
    """The number of rounds with feedback."""

    t: NDArray[np.int64]


@hot
def rank_uniform(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Every list equally likely."""
    if context is None:
        n, m = params.n_items, len(items)
    else:
        n = m = context.shape[0]
    draw(key, 0, n, m, items)
    for position in range(m):
        propensities[position] = 1.0 / n
    return True


@hot
def rank_fixed(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """The given order."""
    for i in range(len(items)):
        items[i] = params.order[i]
    return False


@hot
def learn_nothing(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """Count the round."""
    state.t[0] += 1
