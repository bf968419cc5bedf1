"""PL-Rank-3: the gradient of a Plackett-Luce policy's expected DCG, from drawn lists (Oosterhuis 2022)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import descent
from rankloop.kernels.descent import RATE, ideal, project, widen_scales
from rankloop.kernels.elementary import exp, log2, power
from rankloop.kernels.jit import apart, hot, inlined
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.plackett_luce import draw_list
from rankloop.kernels.rows import combine, score
from rankloop.kernels.sorting import greedy_order

_DEEPEST = -600.0  # scores further below the highest count as this far below


class PLRankParams(NamedTuple):
    """How many lists are drawn, how deep they are judged, and the step; a step of 0 is AdaGrad's."""

    n_samples: int
    cutoff: int
    radius: float
    eta: float
    eta_power: float
    start: NDArray[np.float64]  # the weights before anything was learnt


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """By falling score; and the key of the lists that will be drawn to learn from."""
    score(context, state.w, scratch[0])
    greedy_order(scratch[0], context.shape[0], key, 0, items, scratch[1])
    memo[0][0] = key
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
    """A step along the estimated gradient of the expected NDCG."""
    scores, _, gains, slope, gradient, least, most, order, room = scratch
    n = context.shape[0]
    score(context, state.w, scores)
    for position in range(n):
        gains[items[position]] = feedback[position]
    best = ideal(gains, n, params.cutoff)
    for i in range(n):
        gains[i] = exp2_gain(gains[i]) / best if best > 0.0 else 0.0
    pl_rank_3(scores, gains, n, params.cutoff, params.n_samples, memo[0][0], order, room, slope)
    for i in range(n):
        slope[i] = -slope[i]
    combine(context, slope, gradient)
    if params.eta > 0.0:
        eta = params.eta * power(float(state.t[0] + 1), -params.eta_power)
        for j in range(len(gradient)):
            state.w[j] -= eta * gradient[j]
        project(state.w, params.radius)
    else:
        widen_scales(context, state.w, params.start, state.scale, least, most)
        descent.descend(state.w, params.start, gradient, state.squares, state.scale, RATE, params.radius)
    state.t[0] += 1


@apart
def pl_rank_3(
    scores: Any,
    gains: Any,
    n: int,
    cutoff: int,
    n_samples: int,
    key: Any,
    order: Any,
    room: Any,
    slope: Any,
) -> None:
    """Into `slope`: the mean over drawn lists of eq. (13), one number a document; DCG is cut off after `cutoff`.

    `room` has five rows of `room_for_weights(n)` numbers.
    """
    flat, weights, exps, left, reward = room[0], room[1], room[2], room[3], room[4]
    highest = scores[0]
    for i in range(1, n):
        highest = max(highest, scores[i])
    for i in range(n):
        flat[i] = max(scores[i] - highest, _DEEPEST)
        exps[i] = exp(flat[i])
        slope[i] = 0.0
    m = min(cutoff, n)
    for sample in range(n_samples):
        shift, rest = draw_list(flat, n, m, key, n + sample * m, weights, order)
        _suffixes(gains, exps, order, m, rest * exp(shift), left, reward)
        # Summed over positions so far: the discount, and the reward from there on, over what is left.
        direct, risk = 0.0, 0.0
        for position in range(m):
            item = order[position]
            direct += 1.0 / (log2(position + 2.0) * left[position])
            risk += reward[position] / left[position]
            slope[item] += reward[position + 1] + exps[item] * (gains[item] * direct - risk)
        for position in range(m, n):
            item = order[position]
            slope[item] += exps[item] * (gains[item] * direct - risk)
    for i in range(n):
        slope[i] /= n_samples


@inlined
def _suffixes(gains: Any, exps: Any, order: Any, m: int, rest: float, left: Any, reward: Any) -> None:
    # From each position on: the exponentials of what is not placed yet, and the discounted gains.
    left[m] = rest
    reward[m] = 0.0
    for position in range(m - 1, -1, -1):
        item = order[position]
        left[position] = left[position + 1] + exps[item]
        reward[position] = reward[position + 1] + gains[item] / log2(position + 2.0)
