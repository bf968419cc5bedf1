"""PMED (2017, Algorithms 1 and 2), all but its optimisation: which lists are to be shown next.

The optimisation gives a plan: lists and how often each is required, in units of log t. In between, lists wait in a
queue, and each user is shown one of them. When all have feedback the queue is filled again: with lists that were
shown too seldom to be informative, with lists that the plan requires more often than they were shown, and with the
best. Arrays are position-major, as everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.click_counts import count, fit
from rankloop.kernels.elementary import log
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.random import below
from rankloop.kernels.sorting import by_falling_score_from
from rankloop.rankers.pmed_plan import entropy

_OFTEN = 100  # the model is fitted after every round up to this one
_SWEEPS = 10
_HIGHEST = 1.0 - 1e-9


class PMEDParams(NamedTuple):
    """How often lists are tried out, and how often the model is fitted."""

    alpha: float  # displays that every list must have had, in units of sqrt(log t)
    refit: int  # every how many rounds the model is fitted


class PMEDState(NamedTuple):
    """Clicks and displays, the fitted model, the queue, the plan, and where its optimisation stands."""

    t: NDArray[np.int64]  # rounds with feedback
    S: NDArray[np.float64]  # by position and item: clicks
    N: NDArray[np.float64]  # by position and item: displays
    theta: NDArray[np.float64]  # by item: fitted attractions
    kappa: NDArray[np.float64]  # by position: fitted examinations
    best: NDArray[np.int64]  # the best list when the queue was filled
    queue: NDArray[np.int64]  # lists to be shown, L_C; the first n_queue of them
    n_queue: NDArray[np.int64]
    plan: NDArray[np.int64]  # lists; the first n_plan of them
    required: NDArray[np.float64]  # how often each must have been shown, in units of log t
    n_plan: NDArray[np.int64]
    due: NDArray[np.int64]  # the round after which the plan is renewed
    starts: NDArray[
        np.float64
    ]  # of each alternative: log attractions that were hardest to tell apart last time
    solves: NDArray[
        np.int64
    ]  # plans made, linear programs solved, plans that kept to their constraint only by scaling


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, line 16: a list of the queue, in random order. Exploring: not the best list."""
    n_queue = state.n_queue[0]
    drawn = below(key, 0, n_queue)
    explored = False
    for j in range(len(items)):
        items[j] = state.queue[drawn, j]
        explored |= items[j] != state.best[j]
    for j in range(len(items)):
        alike = 0
        for v in range(n_queue):
            alike += state.queue[v, j] == items[j]
        propensities[j] = alike / n_queue
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
    """Count, take the list off the queue, and fill the queue again when it is empty."""
    m = len(items)
    count(state.S, state.N, items, feedback)
    state.t[0] += 1
    t = state.t[0]
    if t < _OFTEN or t % params.refit == 0:
        fit(state.S, state.N, state.theta, state.kappa, _SWEEPS)
    last = state.n_queue[0] - 1
    for v in range(last + 1):
        if _same(state.queue, v, items):
            for j in range(m):
                state.queue[v, j] = state.queue[last, j]
            state.n_queue[0] = last
            break
    if state.n_queue[0] == 0:
        fill(params, state, scratch)


@hot
def _same(lists: Any, v: int, items: Any) -> bool:
    same = True
    for j in range(len(items)):
        same &= lists[v, j] == items[j]
    return same


@hot
def fill(params: Any, state: Any, scratch: Any) -> None:
    """Alg. 1, lines 4-6 and 13-15: circular lists that lack displays, what the plan requires, and the best list."""
    m, n = state.S.shape
    left, turned, order, room = scratch
    log_t = log(max(float(state.t[0]), 2.0))
    least, count = params.alpha * np.sqrt(log_t), 0
    for first in range(n):
        lacking = False
        for j in range(m):
            lacking |= state.N[j, (first + j) % n] < least
        if lacking:
            for j in range(m):
                state.queue[count, j] = (first + j) % n
            count += 1
    for j in range(m):
        for i in range(n):
            left[j, i] = state.N[j, i]
    for v in range(state.n_plan[0]):  # Alg. 2
        wanted = state.required[v] * log_t
        had = wanted
        for j in range(m):
            had = min(had, left[j, state.plan[v, j]])
        if had < wanted and _adds(state.queue, count, state.plan, v, m):
            for j in range(m):
                state.queue[count, j] = state.plan[v, j]
            count += 1
        for j in range(m):
            left[j, state.plan[v, j]] -= had
    by_estimate(state, turned, order, room)
    for j in range(m):
        state.best[j] = order[j]
    found = False
    for v in range(count):
        found |= _same(state.queue, v, state.best)
    if not found:
        for j in range(m):
            state.queue[count, j] = state.best[j]
        count += 1
    state.n_queue[0] = count


@hot
def _adds(queue: Any, count: int, plan: Any, v: int, m: int) -> bool:
    # Whether some item of plan[v] is, at its position, in no list of the queue.
    for j in range(m):
        found = False
        for waiting in range(count):
            found |= queue[waiting, j] == plan[v, j]
        if not found:
            return True
    return False


@hot
def by_estimate(state: Any, turned: Any, order: Any, room: Any) -> None:
    """Items by falling attraction; equal ones as they come from item t on, so that none is favoured by its number."""
    n = len(state.theta)
    by_falling_score_from(state.t[0] % n, state.theta, n, turned, order, room)


@kernel
def row(mu: Any, theta: Any, kappa: Any, order: Any, out: Any) -> None:
    """The coefficients of q in the distance of an alternative: d(mu, theta' kappa') off the best list, zero on it."""
    m, n = mu.shape
    for j in range(m):
        for i in range(n):
            out[j, i] = (
                0.0 if order[j] == i else entropy(mu[j, i], max(min(theta[i] * kappa[j], _HIGHEST), 1e-12))
            )
