"""Steps of a linear ranker: projections, AdaGrad, and the gradients of surrogates with full information."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.kernels.elementary import EXP_RANGE, exp, exp_within, log2, power
from rankloop.kernels.jit import Floats, Ints, hot
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.rows import bounds, combine, score
from rankloop.kernels.sorting import greedy_order
from rankloop.kernels.vectors import dot


@hot
def softmax(values: Any, n: int, epsilon: float, out: Any) -> None:
    """exp(v / epsilon) of the first n, divided by their sum, without overflow; `out` may be `values`."""
    highest = lowest = values[0]
    for i in range(1, n):
        highest = values[i] if values[i] > highest else highest
        lowest = values[i] if values[i] < lowest else lowest
    if (lowest - highest) / epsilon >= -EXP_RANGE:
        for i in range(n):  # the same numbers, in vectors
            out[i] = exp_within((values[i] - highest) / epsilon)
    else:
        for i in range(n):
            out[i] = exp((values[i] - highest) / epsilon)
    total = 0.0
    for i in range(n):
        total += out[i]
    for i in range(n):
        out[i] /= total


@hot
def project(w: Any, radius: float) -> None:
    """Alg. 1, line 11: onto the ball of this radius."""
    length = np.sqrt(dot(w, w))
    if not length < np.inf:  # the squares are too large, not the weights
        largest = 0.0
        for j in range(len(w)):
            largest = max(largest, abs(w[j]))
        norm = 0.0
        for j in range(len(w)):
            norm += (w[j] / largest) ** 2
        length = largest * np.sqrt(norm)
    if length > radius:
        shrink = radius / length
        for j in range(len(w)):
            w[j] *= shrink


# AdaGrad by feature, whatever the units of the features (Duchi and others 2011; Ross, Mineiro and Langford 2013).
#
# Feature j takes steps of rate / scale_j * gradient_j / sqrt(sum of gradient_j^2), where scale_j is the largest size
# that the feature was seen with. Multiply a feature by c, and its weight is divided by c: every score stays as it
# was. All of this is about the way of a weight from its start, which is in the units of the features already.


_LARGEST = 1e300  # of the summed squares, so that they stay finite
_ROUNDING = 1e-9  # more than a product and a quotient are off


@hot
def widen(w: Any, start: Any, scale: Any, sizes: Any) -> None:
    """Features were seen with these sizes: where one is more than ever, what it learnt shrinks as its scale grows."""
    larger = 0
    for j in range(len(w)):
        larger += abs(sizes[j]) > scale[j]
    if larger == 0:  # as in nearly every round
        return
    for j in range(len(w)):
        size = abs(sizes[j])
        if size > scale[j]:
            w[j] = start[j] + (w[j] - start[j]) * (scale[j] / size)
            scale[j] = size


@hot
def descend(w: Any, start: Any, gradient: Any, squares: Any, scale: Any, rate: float, radius: float) -> None:
    """One step against the gradient; no weight's way from its start, times its scale, gets beyond the radius."""
    beyond, close = 0, radius * (1.0 - _ROUNDING)
    for j in range(len(w)):  # without a branch: compiled to vectors
        square = gradient[j] * gradient[j]
        moves = (square > 0.0) & (scale[j] > 0.0)
        total = min(squares[j] + square, _LARGEST)
        moved = w[j] - rate * (gradient[j] / np.sqrt(total)) / scale[j]
        squares[j] = total if moves else squares[j]
        w[j] = moved if moves else w[j]
        beyond += moves & (abs(moved - start[j]) * scale[j] > close)
    if beyond == 0:  # no weight is near its end: nothing to divide
        return
    for j in range(len(w)):
        if gradient[j] * gradient[j] > 0.0 and scale[j] > 0.0:
            farthest = radius / scale[j]
            w[j] = min(max(w[j], start[j] - farthest), start[j] + farthest)


# Online gradient descent on surrogates that need every label of a list: ListNet, and the calibrated squared loss.


LISTNET, CALIBRATED_SQUARED = range(2)
RATE = 0.1  # of AdaGrad's steps


class FullInformationParams(NamedTuple):
    """What is descended, and how fast."""

    surrogate: int  # LISTNET or CALIBRATED_SQUARED
    radius: float  # of the ball that the weights stay in
    eta: float  # the step, times t**-eta_power
    eta_power: float
    start: Floats  # the weights before anything was learnt


class FullInformationState(NamedTuple):
    """The linear ranker."""

    w: Floats  # weights, by feature
    t: Ints  # rounds learnt


class AdaptiveState(NamedTuple):
    """The linear ranker, and what AdaGrad's steps follow."""

    w: Floats  # weights, by feature
    t: Ints  # rounds learnt
    squares: Floats  # summed squares of the gradient, by feature
    scale: Floats  # the largest spread within a list, by feature


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """By falling score; there is nothing to explore."""
    scores = memo[0]
    memo[1][0] = state.t[0]
    score(context, state.w, scores)
    greedy_order(scores, context.shape[0], key, 0, items, scratch[1])
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
    descend(state.w, params.start, gradient, state.squares, state.scale, RATE, params.radius)
    state.t[0] += 1


@hot
def widen_scales(context: Any, w: Any, start: Any, scale: Any, least: Any, most: Any) -> None:
    """Each scale becomes the largest difference within a list, this one included."""
    bounds(context, least, most)
    for j in range(len(w)):
        most[j] -= least[j]
    widen(w, start, scale, most)


@hot
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


@hot
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
