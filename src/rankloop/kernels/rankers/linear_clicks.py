"""Bandits over lists whose items have features: a click has a chance that is linear in them.

The chance of a click on an item x that is examined is x . theta. The estimate is weighted least squares with a prior
of I: M = I + sum w^2 x x', b = sum w y x, theta = M^-1 b. What is kept of M^-1 is a root of it, S with S' S = M^-1: a
rank-one update of it takes O(d^2), as one of the inverse itself does (Sherman and Morrison), but S' S stays positive
whatever is rounded (Potter's form of the update). From time to time S is computed anew from the sums, V.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import apart, hot, inlined, kernel
from rankloop.kernels.rows import score
from rankloop.kernels.sorting import by_falling_score, greedy_order
from rankloop.kernels.vectors import dot
from rankloop.rankers.pbm_ts import normal

_TURNS = 4  # of alternating least squares when examinations are estimated
_SMALLEST = 0.001  # examination that is estimated


class LinearClickParams(NamedTuple):
    """What the ranker was built with."""

    features: NDArray[np.float64]  # of the catalogue, items x features; no rows where requests bring them
    draws: bool  # whether theta is drawn; otherwise indices are upper confidence bounds
    cascade: bool  # whether nothing below the first click is examined
    estimates: bool  # whether examinations are estimated
    width: float  # of a confidence bound, in standard deviations
    precision: float  # of one observation: 1 / sigma
    most: int  # how many positions are shown


class LinearClickState(NamedTuple):
    """Sums over all that was examined, and the estimate that follows from them."""

    t: NDArray[np.int64]  # rounds with feedback
    updates: NDArray[np.int64]  # rank-one updates
    due: NDArray[np.int64]  # after how many of them S is computed anew
    V: NDArray[np.float64]  # sums of x x', lower triangles; by position where examinations are estimated
    b: NDArray[np.float64]  # sums of x y, as V
    S: NDArray[np.float64]  # a root of the inverse: S' S = M^-1
    theta: NDArray[np.float64]  # M^-1 b
    kappa: NDArray[np.float64]  # by position: examinations, known or estimated


@hot
def rank_catalogue(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """The best of the items with features known from the start."""
    return _rank(params, state, params.features, key, scratch, items)


@hot
def rank_request(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """All items of the request, which brings their features."""
    return _rank(params, state, context, key, scratch, items)


@inlined
def _rank(params: Any, state: Any, features: Any, key: Any, scratch: Any, items: Any) -> Any:
    index, mean, order, by_position, room, theta, u, _ = scratch
    n, d = features.shape
    score(features, state.theta, mean)
    if params.draws:
        _draw(params, state, key, theta)
        score(features, theta, index)
    else:
        for i in range(n):
            for k in range(d):
                u[k] = dot(features[i], state.S[k])
            index[i] = mean[i] + params.width * np.sqrt(dot(u, u))
    greedy_order(index, n, key, 2 * d, order, room)
    shown = min(n, params.most)
    explored = False
    for place in range(1, shown):
        explored |= mean[order[place]] > mean[order[place - 1]]
    last = mean[order[shown - 1]]
    for place in range(shown, n):
        explored |= mean[order[place]] > last
        if place < len(items):
            items[place] = order[place]
    by_falling_score(state.kappa, min(shown, len(state.kappa)), by_position, room)
    for place in range(shown):
        items[by_position[place] if place < len(state.kappa) else place] = order[place]
    return explored


@inlined
def _draw(params: Any, state: Any, key: Any, theta: Any) -> None:
    # A draw from N(theta, width^2 M^-1): M^-1 is the covariance of S' z.
    d = len(theta)
    for j in range(d):
        theta[j] = state.theta[j]
    for k in range(d):
        z = params.width * normal(key, 2 * k)
        for j in range(d):
            theta[j] += z * state.S[k, j]


@hot
def learn_catalogue(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """The clicks on items of the catalogue."""
    _learn(params, state, params.features, scratch, items, feedback)


@hot
def learn_request(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """The clicks on items of the request."""
    _learn(params, state, context, scratch, items, feedback)


@inlined
def _learn(params: Any, state: Any, features: Any, scratch: Any, items: Any, feedback: Any) -> None:
    for j in range(min(len(feedback), min(len(features), params.most))):
        if params.cascade:
            _observe(params, state, features[items[j]], 1.0, 0, feedback[j], scratch[6], scratch[5])
            if feedback[j] > 0.0:
                break
        elif state.kappa[j] > 0.0:
            _observe(
                params, state, features[items[j]], state.kappa[j], j, feedback[j], scratch[6], scratch[5]
            )
    state.t[0] += 1
    if state.updates[0] >= state.due[0]:
        refresh(params, state, scratch[7], scratch[6])
        state.due[0] = state.updates[0] + max(len(state.theta), state.updates[0] // 4)


@apart
def _observe(params: Any, state: Any, x: Any, kappa: float, position: int, y: float, u: Any, g: Any) -> None:
    """One observation y of kappa x . theta: a rank-one update of the root, the estimate and the sums."""
    d = len(u)
    w = kappa * params.precision
    for k in range(d):
        u[k] = w * dot(x, state.S[k])
    q = 1.0 + dot(u, u)
    for j in range(d):
        g[j] = 0.0
    for k in range(d):
        for j in range(d):
            g[j] += u[k] * state.S[k, j]
    wrong = (y * params.precision - w * dot(x, state.theta)) / q
    root = np.sqrt(q)
    shrink = 1.0 / (root * (root + 1.0))
    for k in range(d):
        state.theta[k] += wrong * g[k]
        by = shrink * u[k]
        for j in range(d):
            state.S[k, j] -= by * g[j]
    part = position if params.estimates else 0
    weight = 1.0 if params.estimates else kappa
    for k in range(d):
        xk = weight * x[k]
        state.b[part, k] += xk * y
        for j in range(k + 1):
            state.V[part, k, j] += xk * (weight * x[j])
    state.updates[0] += 1


@apart
def refresh(params: Any, state: Any, A: Any, u: Any) -> None:
    """S, theta and, where they are estimated, the examinations, from the sums alone.

    Where the sums are too ill-conditioned to be factored in double precision, what there is stays.
    """
    d = len(u)
    for _ in range(_TURNS if params.estimates else 1):
        if params.estimates:
            _examinations(state)
        for k in range(d):
            for j in range(k + 1):
                A[k, j] = 1.0 if k == j else 0.0
        for part in range(len(state.V)):
            kappa = state.kappa[part] if params.estimates else 1.0
            weight = (kappa * params.precision) * (kappa * params.precision)
            for k in range(d):
                for j in range(k + 1):
                    A[k, j] += weight * state.V[part, k, j]
        if not _root_of_inverse(A):
            return
        for k in range(d):
            for j in range(d):
                state.S[k, j] = A[k, j] if j <= k else 0.0
        for k in range(d):
            u[k] = 0.0
            for j in range(k + 1):
                total = 0.0
                for part in range(len(state.b)):
                    total += (state.kappa[part] if params.estimates else 1.0) * state.b[part, j]
                u[k] += A[k, j] * (params.precision * params.precision * total)
        for j in range(d):
            state.theta[j] = 0.0
        for k in range(d):
            for j in range(k + 1):
                state.theta[j] += u[k] * A[k, j]


@apart
def _root_of_inverse(A: Any) -> bool:
    """Replace the lower triangle of A = L L' by that of L^-1; False where A is not positive enough."""
    d = len(A)
    for k in range(d):
        for j in range(k + 1):
            total = A[k, j]
            for i in range(j):
                total -= A[k, i] * A[j, i]
            if j < k:
                A[k, j] = total / A[j, j]
            elif not 1e-12 * A[k, k] < total < np.inf:
                return False
            else:
                A[k, k] = np.sqrt(total)
    for k in range(d):
        A[k, k] = 1.0 / A[k, k]
        for j in range(k):
            total = 0.0
            for i in range(j, k):
                total -= A[k, i] * A[i, j]
            A[k, j] = total * A[k, k]
    return True


@apart
def _examinations(state: Any) -> None:
    """The least-squares examination of each position given theta; the largest is 1.

    One look at an item that attracts with chance 1 is assumed at every position beforehand, and it was a click.
    """
    d = len(state.theta)
    largest = 0.0
    for position in range(len(state.V)):
        clicks = squares = 1.0
        for k in range(d):
            clicks += state.b[position, k] * state.theta[k]
            row = 0.5 * state.V[position, k, k] * state.theta[k]
            for j in range(k):
                row += state.V[position, k, j] * state.theta[j]
            squares += 2.0 * row * state.theta[k]
        state.kappa[position] = max(clicks / squares, _SMALLEST) if squares > 0.0 else 1.0
        largest = max(largest, state.kappa[position])
    for position in range(len(state.V)):
        state.kappa[position] = max(state.kappa[position] / largest, _SMALLEST)


@kernel
def means(features: Any, theta: Any, out: Any) -> None:
    """The estimated chance of a click on each item that is examined."""
    score(features, theta, out)
