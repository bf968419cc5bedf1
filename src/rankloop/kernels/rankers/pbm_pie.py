"""PBM-PIE (2016, Algorithm 2): the estimated best list; at its last position, half of the time, who might belong there.

Where examinations are estimated, two neighbours of the list whose order the clicks do not prove change places in some
of these rounds: otherwise a wrong order would confirm itself.
Arrays are position-major: S[j, k] are the clicks on item k at position j, N[j, k] how often it stood there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.click_counts import clicks_and_looks, count, first_unseen, fit
from rankloop.kernels.elementary import log
from rankloop.kernels.jit import hot
from rankloop.kernels.random import below, uniform
from rankloop.kernels.sorting import by_falling_score_from
from rankloop.rankers.pbm_pie import OrderScratch, order_gap

_OFTEN = 100  # examinations are estimated after every round up to this one
_SWEEPS = 10
_SELDOM = 10  # every how many estimates the order of the leaders is questioned, after that


class PBMPIEParams(NamedTuple):
    """How sure it must be, and how examinations are known."""

    delta: float  # (1 + epsilon) log T
    refresh: int  # every how many rounds examinations are estimated; 0 where they are known


class PBMPIEState(NamedTuple):
    """Clicks and displays, and the examinations in use."""

    t: NDArray[np.int64]  # rounds with feedback
    S: NDArray[np.float64]  # by position and item: clicks
    N: NDArray[np.float64]  # by position and item: displays
    kappa: NDArray[np.float64]  # by position: examinations, given or estimated
    theta: NDArray[np.float64]  # by item: attractions, where examinations are estimated
    unproved: NDArray[np.int64]  # by place, there as well: whether the next item might be the better one


class PBMPIEScratch(NamedTuple):
    """Room for one round, all of it by item; what is in it means nothing between calls."""

    theta: NDArray[np.float64]  # estimated attractions
    turned: NDArray[np.float64]  # the same, from item t on
    order: NDArray[np.int64]  # items by falling estimate
    sorting: NDArray[np.uint64]
    others: NDArray[np.int64]  # items that might belong to the list
    pair: OrderScratch


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 2, lines 2-8. Exploring: a list of the beginning, or one that is not the leaders'."""
    m, n = state.S.shape
    first = first_unseen(state.N)
    if first >= 0:
        for j in range(m):
            items[j] = (first + j) % n
            propensities[j] = 1.0
        return True
    order, others = scratch.order, scratch.others
    q = leaders(state, scratch)
    n_others = 0
    for place in range(m, n):
        if reaches(state.S, state.N, state.kappa, order[place], q, params.delta):
            others[n_others] = order[place]
            n_others += 1
    n_swaps = 0
    for j in range(len(state.unproved)):
        n_swaps += state.unproved[j]
    n_ways = n_others + n_swaps
    share = 0.5 / n_ways if n_ways > 0 else 0.0
    for j in range(m):
        items[j] = order[j]
        propensities[j] = 1.0
    propensities[m - 1] -= n_others * share
    for j in range(len(state.unproved)):
        propensities[j] -= state.unproved[j] * share
        propensities[j + 1] -= state.unproved[j] * share
    if n_ways == 0 or uniform(key, 0) < 0.5:
        return False
    drawn = below(key, 1, n_ways)
    if drawn < n_others:
        items[m - 1] = others[drawn]
        propensities[m - 1] = share
        return True
    drawn -= n_others
    for j in range(len(state.unproved)):
        drawn -= state.unproved[j]
        if drawn < 0:
            items[j] = order[j + 1]
            items[j + 1] = order[j]
            propensities[j] = share
            propensities[j + 1] = share
            break
    return True


@hot
def leaders(state: Any, scratch: Any) -> Any:
    """Write all items by falling estimate to the scratch's order; returns that of the last to be shown, at most 1.

    Equal ones stand in the order in which they come from item t on, so that no item is favoured by its number.
    """
    theta, order = scratch.theta, scratch.order
    m, n = state.S.shape
    for i in range(n):
        clicks, looks = clicks_and_looks(state.S, state.N, state.kappa, i, 0.0, 0.0)
        theta[i] = clicks / looks
    by_falling_score_from(state.t[0] % n, theta, n, scratch.turned, order, scratch.sorting)
    return min(theta[order[m - 1]], 1.0)


@hot
def reaches(S: Any, N: Any, kappa: Any, k: int, q: float, delta: float) -> bool:
    """Whether U_k(delta) >= q: q lies below the likeliest attraction of item k, or is not too unlikely."""
    if q <= 0.0:
        return True
    slope = 0.0
    for j in range(len(kappa)):
        rest = 1.0 - kappa[j] * q
        if rest > 0.0:
            slope += (N[j, k] * kappa[j] * q - S[j, k]) / rest
        elif N[j, k] > S[j, k]:
            return False
    return slope <= 0.0 or distance(S, N, kappa, k, q) <= delta


@hot
def distance(S: Any, N: Any, kappa: Any, k: int, q: float) -> float:
    """sum_j N d(S / N, kappa q), d the relative entropy of two coins."""
    total = 0.0
    for j in range(len(kappa)):
        missed, p = N[j, k] - S[j, k], kappa[j] * q
        if S[j, k] > 0.0:
            total += S[j, k] * log(S[j, k] / (N[j, k] * p))
        if missed > 0.0:
            total += missed * log(missed / (N[j, k] * (1.0 - p)))
    return total


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
    """Alg. 2, line 9; and where examinations are not known, their estimate from time to time."""
    count(state.S, state.N, items, feedback)
    state.t[0] += 1
    t = state.t[0]
    if params.refresh > 0 and (t < _OFTEN or t % params.refresh == 0) and first_unseen(state.N) < 0:
        fit(state.S, state.N, state.theta, state.kappa, _SWEEPS)
        if t % (params.refresh if t < _OFTEN else _SELDOM * params.refresh) == 0:
            _question_order(params, state, scratch)


@hot
def _question_order(params: Any, state: Any, scratch: Any) -> None:
    # Which neighbours among the leaders might be equally good, or the other way round.
    leaders(state, scratch)
    for j in range(len(state.unproved)):
        a, b = scratch.order[j], scratch.order[j + 1]
        gap = order_gap(state.S, state.N, state.theta, state.kappa, a, b, scratch.pair)
        state.unproved[j] = not gap > params.delta
