"""Dueling bandit and multileave gradient descent: candidates around the weights compete for clicks.

Schuth and others (2016), with the mean winner. With one candidate it is the algorithm of Yue and Joachims (2009).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.descent import project
from rankloop.kernels.elementary import power
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import multileave
from rankloop.kernels.sorting import greedy_order
from rankloop.kernels.vectors import dot
from rankloop.rankers.dueling import direction, words

# Rankers that agree on what was clicked get credits that differ by rounding only; nobody wins by that.
_TIE = 1e-9


class MGDParams(NamedTuple):
    """How many candidates, how far from the weights, and the steps towards those that win."""

    n_candidates: int
    k: int  # documents that users see
    delta: float  # the distance of a candidate
    alpha: float  # the step, times t**-alpha_power
    alpha_power: float
    radius: float  # of the ball that the weights stay in


class MGDState(NamedTuple):
    """The linear ranker."""

    w: NDArray[np.float64]  # weights, by feature
    t: NDArray[np.int64]  # rounds learnt


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """Multileave the present ranker, number 0, with the candidates."""
    weights, scores, order, left, by_rank, room = scratch
    worth, header = memo
    n, d = context.shape
    m = min(params.k, n)
    n_rankers = params.n_candidates + 1
    for ranker in range(1, n_rankers):
        direction(key, ranker - 1, weights[ranker])
    for j in range(d):
        weights[0, j] = state.w[j]
        for ranker in range(1, n_rankers):
            weights[ranker, j] = state.w[j] + params.delta * weights[ranker, j]
    for i in range(n):  # one pass over the features
        for ranker in range(n_rankers):
            scores[ranker, i] = dot(context[i], weights[ranker])
    first = params.n_candidates * words(d)
    for ranker in range(n_rankers - 1, -1, -1):  # the present one last: its order is used below
        greedy_order(scores[ranker], n, key, first + ranker * n, order, room)
        for place in range(n):
            left[ranker, order[place]] = by_rank[place]
    multileave(left, n, m, key, first + n_rankers * n, items, worth)
    header[0], header[1] = key, np.uint64(m)
    explored = False
    for position in range(m):
        explored |= items[position] != order[position]
    position = m
    for place in range(n):
        if left[0, order[place]] > 0.0:
            items[position] = order[place]
            position += 1
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
    """One step towards the mean of the candidates that got more credit than the present ranker."""
    weights = scratch[0]
    worth, header = memo
    n_won = 0
    for j in range(len(state.w)):
        weights[0, j] = 0.0
    for ranker in range(1, params.n_candidates + 1):
        lead = 0.0
        for position in range(int(header[1])):
            lead += feedback[position] * (worth[ranker, position] - worth[0, position])
        if lead > _TIE:
            n_won += 1
            direction(header[0], ranker - 1, weights[ranker])
            for j in range(len(state.w)):
                weights[0, j] += weights[ranker, j]
    if n_won > 0:
        step = params.alpha * power(float(state.t[0] + 1), -params.alpha_power) / n_won
        for j in range(len(state.w)):
            state.w[j] += step * weights[0, j]
        project(state.w, params.radius)
    state.t[0] += 1
