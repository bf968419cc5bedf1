"""Ranked bandits (2008, Algorithm 2) over Exp3: one learner for each position, each choosing among all items.

Where a position's learner wants an item that stands above already, a random one of those not yet shown takes its place,
and the learner counts that as no click. What each wanted, and with which probability, travels in the ticket.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import exp
from rankloop.kernels.jit import hot
from rankloop.kernels.random import below, uniform

_LEAST = 1e-280  # a weight that small is drawn by exploring only; zero could never grow again


class RankedExp3Params(NamedTuple):
    """How much is explored."""

    gamma: float  # the share of even chances, which is the step too


class RankedExp3State(NamedTuple):
    """The learner of each position."""

    t: NDArray[np.int64]  # rounds with feedback
    w: NDArray[np.float64]  # by position and item: weights, scaled to sum to one over the items


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 2, lines 4-10. Exploring: learners wanted, on average, what had less than an even chance."""
    wanted, chances = memo
    n, total = state.w.shape[1], 0.0
    for j in range(len(items)):
        left, drawn, p = uniform(key, 2 * j), 0, 0.0
        for i in range(n):
            p = (1.0 - params.gamma) * state.w[j, i] + params.gamma / n
            drawn = i
            left -= p
            if left < 0.0:
                break
        wanted[j] = drawn
        chances[j] = min(p, 1.0)
        total += p
        items[j] = replaced(items, j, drawn, n, below(key, 2 * j + 1, n - j))
    return total < 0.5 * len(items)


@hot
def replaced(items: Any, j: int, wanted: int, n: int, draw: int) -> int:
    """`wanted`, or if that is among the first j `items`, the `draw`-th of those that are not (Alg. 2, lines 6-9)."""
    free = True
    for above in range(j):
        free &= items[above] != wanted
    if free:
        return wanted
    found = 0
    for i in range(n):
        free = True
        for above in range(j):
            free &= items[above] != i
        if free:
            found = i
            if draw == 0:
                break
            draw -= 1
    return found


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
    """Alg. 2, lines 12-18: a click rewards the learner of its position, if what it wanted was shown."""
    wanted, chances = memo
    n = state.w.shape[1]
    for j in range(len(items)):
        if feedback[j] == 0.0 or items[j] != wanted[j]:
            continue
        state.w[j, wanted[j]] *= exp(params.gamma / (n * chances[j]))
        total = 0.0
        for i in range(n):
            total += state.w[j, i]
        for i in range(n):
            state.w[j, i] = max(state.w[j, i] / total, _LEAST)
    state.t[0] += 1
