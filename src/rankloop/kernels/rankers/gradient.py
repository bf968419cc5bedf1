"""Online gradient descent on surrogates that need every label of a list: ListNet, and the calibrated squared loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import descent
from rankloop.kernels.descent import project, softmax
from rankloop.kernels.elementary import log2, power
from rankloop.kernels.jit import hot, inlined
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.rows import bounds, combine, score
from rankloop.kernels.sorting import greedy_order

LISTNET, CALIBRATED_SQUARED = range(2)
RATE = 0.1  # of AdaGrad's steps


class FullInformationParams(NamedTuple):
    """What is descended, and how fast."""

    surrogate: int  # LISTNET or CALIBRATED_SQUARED
    radius: float  # of the ball that the weights stay in
    eta: float  # the step, times t**-eta_power
    eta_power: float
    start: NDArray[np.float64]  # the weights before anything was learnt


class FullInformationState(NamedTuple):
    """The linear ranker."""

    w: NDArray[np.float64]  # weights, by feature
    t: NDArray[np.int64]  # rounds learnt


class AdaptiveState(NamedTuple):
    """The linear ranker, and what AdaGrad's steps follow."""

    w: NDArray[np.float64]  # weights, by feature
    t: NDArray[np.int64]  # rounds learnt
    squares: NDArray[np.float64]  # summed squares of the gradient, by feature
    scale: NDArray[np.float64]  # the largest spread within a list, by feature


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """By falling score; there is nothing to explore."""
    scores, room = memo[0], scratch[1]
    memo[1][0] = state.t[0]
    score(context, state.w, scores)
    greedy_order(scores, context.shape[0], key, 0, items, room)
    return False


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
    """Weights minus eta X^T gradient, back into the ball."""
    gradient = scratch[4]
    _descent(params, state, context, scratch, items, memo, feedback)
    eta = params.eta * power(float(state.t[0] + 1), -params.eta_power)
    for j in range(len(gradient)):
        state.w[j] -= eta * gradient[j]
    project(state.w, params.radius)
    state.t[0] += 1


@hot
def learn_adaptively(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """One step of AdaGrad; the scale of a feature is the largest difference within a list."""
    gradient, least, most = scratch[4], scratch[5], scratch[6]
    _descent(params, state, context, scratch, items, memo, feedback)
    widen_scales(context, state.w, params.start, state.scale, least, most)
    descent.descend(state.w, params.start, gradient, state.squares, state.scale, RATE, params.radius)
    state.t[0] += 1


@inlined
def widen_scales(context: Any, w: Any, start: Any, scale: Any, least: Any, most: Any) -> None:
    """Each scale becomes the largest difference within a list, this one included."""
    bounds(context, least, most)
    for j in range(len(w)):
        most[j] -= least[j]
    descent.widen(w, start, scale, most)


@inlined
def _descent(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, memo: Any, feedback: Any
) -> None:
    # X^T gradient, at the present weights, into scratch[4]
    scores, _, labels, targets, step = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    n = context.shape[0]
    if memo[1][0] == state.t[0]:  # the weights are still those that the list was shown by
        for i in range(n):
            scores[i] = memo[0][i]
    else:
        score(context, state.w, scores)
    for position in range(n):
        labels[items[position]] = feedback[position]
    if params.surrogate == LISTNET:
        softmax(scores, n, 1.0, scores)  # softmax(s) - softmax(R), erratum B19
        softmax(labels, n, 1.0, targets)
        for i in range(n):
            scores[i] -= targets[i]
    else:
        best = ideal(labels, n, n)
        for i in range(n):
            target = exp2_gain(labels[i]) / best if best > 0.0 else 0.0
            scores[i] = 2.0 * (scores[i] - target)  # section 5: ||s - G(R) / Z(R)||^2
    combine(context, scores, step)


@inlined
def ideal(labels: Any, n: int, cutoff: int) -> Any:
    """Z(R), the highest DCG of the first `cutoff` positions."""
    # Position by position, the next largest gain. Grades are few, so each pass takes a whole grade.
    total = 0.0
    position = 0
    above = np.inf
    while position < min(cutoff, n):
        grade = -1.0
        for i in range(n):
            grade = labels[i] if labels[i] < above and labels[i] > grade else grade
        gain = exp2_gain(grade)
        for i in range(n):
            if labels[i] == grade and position < cutoff:
                position += 1
                total += gain / log2(position + 1.0)
        above = grade
    return total
