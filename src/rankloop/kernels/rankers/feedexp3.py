"""FeedExp3 (Cesa-Bianchi, Lugosi and Stoltz 2006, Figure 1): exponential weights, whatever the actions let one see.

With L = K H, where H holds what each action may reveal of each outcome, the feedback on action I, divided by the
chance of playing it, is an unbiased estimate of every action's loss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import exp, power
from rankloop.kernels.jit import hot, inlined
from rankloop.kernels.random import below, uniform


class FeedExp3Params(NamedTuple):
    """The actions, which of them count as one when looking (pooled), and K with one column for each (pool, pattern)."""

    orders: NDArray[np.int64]
    pool: NDArray[np.int64]
    n_pools: int
    K: NDArray[np.float64]
    k: int
    n_grades: int
    n_patterns: int  # that can be seen of an action, without the one of zeros only
    eta: float  # times t^(-2/3)
    gamma: float  # times t^(-1/3)


class FeedExp3State(NamedTuple):
    """Summed estimates of the losses, and the rounds."""

    L_tilde: NDArray[np.float64]
    t: NDArray[np.int64]


@inlined
def _weigh(params: Any, state: Any, weights: Any) -> Any:
    n = len(weights)
    eta = params.eta * power(float(state.t[0] + 1), -2.0 / 3.0)
    least = state.L_tilde[0]
    for i in range(1, n):
        least = min(least, state.L_tilde[i])
    total = 0.0
    for i in range(n):
        weights[i] = exp(-eta * (state.L_tilde[i] - least))
        total += weights[i]
    return total


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """Draw an action; the memo keeps its number and the chance that its pool was played."""
    (weights,) = scratch
    n = len(weights)
    gamma = min(1.0, params.gamma * power(float(state.t[0] + 1), -1.0 / 3.0))
    total = _weigh(params, state, weights)
    explored = uniform(key, 0) < gamma
    chosen = n - 1
    if explored:
        chosen = below(key, 1, n)
    else:
        mark = uniform(key, 1) * total
        for i in range(n):
            mark -= weights[i]
            if mark < 0.0:
                chosen = i
                break
    chance = 0.0
    for i in range(n):
        if params.pool[i] == params.pool[chosen]:
            chance += (1.0 - gamma) * weights[i] / total + gamma / n
    for position in range(len(items)):
        items[position] = params.orders[chosen, position]
    memo[0][0] = chosen
    memo[1][0] = min(chance, 1.0)
    return explored


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
    """The estimates of all actions gain k(i, I) h / p(I)."""
    pattern = 0
    for place in range(params.k - 1, -1, -1):
        pattern = pattern * params.n_grades + int(feedback[place])
    state.t[0] += 1
    if pattern == 0:
        return  # H is zero there
    column = params.pool[memo[0][0]] * params.n_patterns + pattern - 1
    for i in range(len(state.L_tilde)):
        state.L_tilde[i] += params.K[i, column] / memo[1][0]
