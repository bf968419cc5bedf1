"""Follow the regularised leader over sets of n items, when the relevance of a random few of the set is revealed.

The value ignores the order within the set, so the set is shown in random order: the first item is then a uniform
draw from it, and the relevance of the first k is an unbiased sample of the set.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot, inlined
from rankloop.kernels.random import below, shuffle, uniform

_ITERATIONS = 200
_CLOSE = 1e-13


class PrecisionParams(NamedTuple):
    """The measure and what is revealed of it."""

    n: int  # items that the measure counts
    k: int  # of them, how many are revealed
    max_grade: float  # the highest grade


class PrecisionState(NamedTuple):
    """The regularised leader."""

    L_hat: NDArray[np.float64]  # by item: summed estimates of its loss
    x: NDArray[np.float64]  # by item: the chance of being in the set
    level: NDArray[np.float64]  # the multiplier of the sum of x
    t: NDArray[np.int64]  # rounds learnt


@inlined
def _sum_at(L_hat: Any, edge: float, level: float, x: Any) -> Any:
    # x_i = 1 up to the edge 1/(2 eta), and (edge / (L_i + level))^2 beyond; the sum of x, and its slope.
    total, slope = 0.0, 0.0
    for i in range(len(L_hat)):
        z = L_hat[i] + level
        if z <= edge:
            x[i] = 1.0
        else:
            x[i] = (edge / z) ** 2
            slope -= 2.0 * x[i] / z
        total += x[i]
    return total, slope


@hot
def solve(L_hat: Any, n: int, eta: float, level: float, x: Any) -> float:
    """Write x, the argmin of x . L_hat - sum of sqrt(x_i) / eta over 0 <= x <= 1 with sum n; return the multiplier.

    Newton's steps from `level`, halving where they leave the bracket. The multiplier may be negative: items far ahead
    have L_i + level below zero, and are simply in the set.
    """
    m = len(L_hat)
    edge = 0.5 / eta
    if n >= m:
        for i in range(m):
            x[i] = 1.0
        return level
    least, most = L_hat[0], L_hat[0]
    for i in range(1, m):
        least, most = min(least, L_hat[i]), max(most, L_hat[i])
    low = edge - most  # here every item is in the set
    high = edge * np.sqrt(m / n) - least  # here no probability exceeds n / m
    level = min(max(level, low), high)
    for _ in range(_ITERATIONS):
        total, slope = _sum_at(L_hat, edge, level, x)
        gap = total - n
        if abs(gap) <= _CLOSE * n:
            break
        if gap > 0.0:
            low = level
        else:
            high = level
        following = level - gap / slope if slope < 0.0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == level:
            break
        level = following
    return level


@inlined
def rate(params: Any, t: int) -> Any:
    """The learning rate eta of round t, counted from 1."""
    return 0.5 * np.sqrt(params.k / (params.n * float(t)))


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """A set with chances x, by systematic sampling in random order, then both parts of the list shuffled."""
    (order,) = scratch
    m, n = len(items), params.n
    shuffle(key, 1, m, order)
    total = 0.0
    for i in range(m):
        total += state.x[i]
    step = total / n
    mark = uniform(key, 0) * step
    passed, picked, left = 0.0, 0, 0
    least_in, most_out = 1.0, 0.0
    for at in range(m):
        i = order[at]
        passed += state.x[i]
        if picked < n and passed > mark:
            items[picked] = i
            picked += 1
            mark += step
            least_in = min(least_in, state.x[i])
        else:
            left += 1
            items[m - left] = i  # should rounding lose a mark, the last of these completes the set
            most_out = max(most_out, state.x[i])
    _shuffle_part(key, 1 + m, 0, n, items)
    _shuffle_part(key, 1 + 2 * m, n, m, items)
    for position in range(n):
        propensities[position] = state.x[items[position]] / n
    for position in range(n, m):
        propensities[position] = max((1.0 - state.x[items[position]]) / (m - n), 1e-300)
    for place in range(params.k):
        memo[0][place] = state.x[items[place]]
    return least_in < most_out


@inlined
def _shuffle_part(key: Any, first: int, start: int, stop: int, items: Any) -> None:
    for i in range(stop - 1, start, -1):
        j = start + below(key, first + i, i - start + 1)
        kept = items[i]
        items[i] = items[j]
        items[j] = kept


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
    """An item of the set is among the first k with chance x_j k / n: its loss counts that much more."""
    for place in range(params.k):
        loss = 1.0 - feedback[place] / params.max_grade
        state.L_hat[items[place]] += loss * params.n / (params.k * memo[0][place])
    state.t[0] += 1
    state.level[0] = solve(state.L_hat, params.n, rate(params, state.t[0] + 1), state.level[0], state.x)
