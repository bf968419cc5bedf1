"""RTop-kF with schedules, as in the paper (2016, Algorithm 1); the default is `rtopkf_adaptive`.

It descends unbiased estimates of a surrogate's gradient, and explores by whole lists in random order.

With R_hat a guess at the labels, the estimate is  gradient(s, R_hat) + sum over observed i of
(h_i(R_i) - h_i(R_hat_i)) / pi_i  (erratum B6). Everything but the labels is known when the list is shown, so `rank`
keeps just that: the known part as one vector, and the features and numbers of the few items that will be observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.base import Array, Floats, Ints
from rankloop.compiled import RankerKernels
from rankloop.kernels import sorting
from rankloop.kernels.descent import project, softmax
from rankloop.kernels.elementary import exp, power
from rankloop.kernels.jit import hot
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.random import draw, uniform
from rankloop.kernels.rows import copy_row, narrow_combine, narrow_score, narrow_scratch
from rankloop.kernels.sorting import greedy_top
from rankloop.rankers.linear import Schedule, Smoothing, check_weights

SQUARED, RANKSVM, KL, SMOOTH_DCG = range(4)
NO_GUESS, ZERO, SCORE, MEAN = range(4)
_SCORE, _GUESS, _WEIGHT, _GREEDY = range(4)  # columns of the memo's second part
MAX_EXPONENT = 20.0  # erratum B12


class TopKParams(NamedTuple):
    """Which surrogate and estimator, and the schedules scale * t**-power of eta, gamma and epsilon."""

    surrogate: int
    guess: int
    n_observed: int  # how many of the top labels the estimator uses
    max_grade: float
    radius: float
    eta: float
    eta_power: float
    gamma: float
    gamma_power: float
    epsilon: float
    epsilon_power: float
    epsilon_floor: float
    units: Floats  # by position, the label that a revealed 1 stands for


class TopKState(NamedTuple):
    """The linear ranker, and what labels are usual."""

    w: Floats  # weights, by feature
    t: Ints  # rounds learnt
    labels: Floats  # the sum and the number of revealed labels


@hot
def scheduled(scale: float, exponent: float, t: int) -> Any:
    """The value after t rounds of scale * t**-exponent, counted from 1."""
    return scale * power(float(t + 1), -exponent) if exponent > 0.0 else scale


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """Lines 3-6."""
    scores, weights, guesses, order, sort_scratch, narrow = scratch
    header, shown, known, rows = memo
    n = context.shape[0]
    listed = min(n, len(items))
    narrow_score(context, state.w, narrow, scores)  # line 4
    greedy_top(scores, n, listed, key, 1, order, sort_scratch)
    gamma = min(1.0, scheduled(params.gamma, params.gamma_power, state.t[0]))
    explored = uniform(key, 0) < gamma
    if explored:
        draw(key, 1 + n, n, listed, items)  # line 6: uniform scores give a uniform order (erratum B9)
    else:
        for position in range(listed):
            items[position] = order[position]
    for position in range(listed):
        propensities[position] = (1.0 - gamma) * (items[position] == order[position]) + gamma / n
    epsilon = max(params.epsilon_floor, scheduled(params.epsilon, params.epsilon_power, state.t[0]))
    header[0] = n
    header[1] = gamma
    header[2] = epsilon
    if params.guess != NO_GUESS:
        guess_labels(params, state, scores, n, guesses)
    keep_known_part(params, context, scores, weights, guesses, epsilon, narrow, known)
    for place in range(min(params.n_observed, n)):
        item = items[place]
        shown[place, _SCORE] = scores[item]
        shown[place, _GUESS] = guesses[item] if params.guess != NO_GUESS else 0.0
        shown[place, _WEIGHT] = weights[item] if params.surrogate == SMOOTH_DCG else 0.0
        shown[place, _GREEDY] = 0.0
        for other in range(min(params.n_observed, n)):
            shown[place, _GREEDY] += order[other] == item
        copy_row(context, item, rows[place])
    return explored


@hot
def guess_labels(params: Any, state: Any, scores: Any, n: int, guesses: Any) -> None:
    """R_hat, which must not use the labels of this round."""
    if params.guess == SCORE:
        for i in range(n):
            guesses[i] = min(max(scores[i], 0.0), params.max_grade)
    else:
        mean = state.labels[0] / max(1.0, state.labels[1])
        for i in range(n):
            guesses[i] = mean if params.guess == MEAN else 0.0


@hot
def keep_known_part(
    params: Any,
    context: Any,
    scores: Any,
    weights: Any,
    guesses: Any,
    epsilon: float,
    narrow: Any,
    known: Any,
) -> None:
    """known[0]: the gradient at R_hat in terms of w; known[1]: the mean of the features under SmoothDCG's softmax."""
    n = context.shape[0]
    if params.surrogate == SMOOTH_DCG:
        softmax(scores, n, epsilon, weights)
        narrow_combine(context, weights, narrow, known[1])
        if params.guess != NO_GUESS:
            total = 0.0
            for i in range(n):
                weights[i] *= exp2_gain(guesses[i])
                total += weights[i]
            narrow_combine(context, weights, narrow, known[0])
            for j in range(context.shape[1]):
                known[0, j] = (known[0, j] - total * known[1, j]) / epsilon
            softmax(scores, n, epsilon, weights)
    elif params.guess != NO_GUESS:
        for i in range(n):
            if params.surrogate == SQUARED:
                weights[i] = 2.0 * (scores[i] - guesses[i])
            else:
                weights[i] = _exp(scores[i]) - _exp(guesses[i])
        narrow_combine(context, weights, narrow, known[0])


@hot
def _exp(x: float) -> float:
    return float(exp(min(x, MAX_EXPONENT)))


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, answer: Any
) -> None:
    """Lines 9-11."""
    header, shown, known, rows = memo
    n, gamma = int(header[0]), header[1]
    observed = min(params.n_observed, n)
    step = scheduled(params.eta, params.eta_power, state.t[0])
    if params.surrogate == SMOOTH_DCG:
        step = -step  # a gain: climb (erratum B3)
    w = state.w
    if params.guess != NO_GUESS and params.surrogate != RANKSVM:
        for j in range(len(w)):
            w[j] -= step * known[0, j]
    if params.surrogate == RANKSVM:
        _descend_pairs(w, step, n, gamma, observed, shown, rows, answer, params.units)
    else:
        for place in range(observed):
            chance = (1.0 - gamma) * shown[place, _GREEDY] + gamma * observed / n  # errata B1, B7
            label = answer[place] * params.units[place]
            if params.surrogate == SMOOTH_DCG:
                gain = exp2_gain(label)
                if params.guess != NO_GUESS:
                    gain -= exp2_gain(shown[place, _GUESS])
                size = step * gain * shown[place, _WEIGHT] / (header[2] * chance)
                for j in range(len(w)):
                    w[j] -= size * (rows[place, j] - known[1, j])
            else:
                size = step * surprise(params, shown[place, _SCORE], shown[place, _GUESS], label) / chance
                for j in range(len(w)):
                    w[j] -= size * rows[place, j]
    project(w, params.radius)
    for place in range(observed):
        state.labels[0] += answer[place] * params.units[place]
        state.labels[1] += 1.0
    state.t[0] += 1


@hot
def surprise(params: Any, s: float, guess: float, label: float) -> Any:
    """h_i(R_i) - h_i(R_hat_i), or h_i(R_i) alone where there is no guess."""
    if params.surrogate == SQUARED:
        return 2.0 * (s - label) if params.guess == NO_GUESS else 2.0 * (guess - label)
    return _exp(s) - _exp(label) if params.guess == NO_GUESS else _exp(guess) - _exp(label)


@hot
def _descend_pairs(
    w: Any, step: float, n: int, gamma: float, observed: int, shown: Any, rows: Any, answer: Any, units: Any
) -> None:
    # Every observed pair in which the better item does not lead by 1 pulls the two apart (section 4.1, erratum B2).
    for better in range(observed):
        for worse in range(observed):
            if not (
                answer[better] * units[better] > answer[worse] * units[worse]
                and 1.0 + shown[worse, _SCORE] > shown[better, _SCORE]
            ):
                continue
            both_greedy = shown[better, _GREEDY] * shown[worse, _GREEDY]
            chance = (1.0 - gamma) * both_greedy + gamma * observed * (observed - 1) / (n * (n - 1.0))
            for j in range(len(w)):
                w[j] -= step / chance * (rows[worse, j] - rows[better, j])


class PapersSteps:
    """The paper's steps and exploration, as the ranker sees them."""

    surrogate, estimator, exploration = "kl", "paper", "camera-ready"  # the defaults
    memo_columns = 4

    def __init__(
        self, common: dict[str, Any], rate: Schedule | None, smoothing: Smoothing, start: Floats
    ) -> None:
        epsilon, eta = smoothing.epsilon or Schedule(1.0), rate or Schedule(0.0)
        self.start = start
        self.params = TopKParams(
            **common,
            eta=eta.scale,
            eta_power=eta.power,
            epsilon=epsilon.scale,
            epsilon_power=epsilon.power,
            epsilon_floor=min(smoothing.floor, epsilon.scale),
        )

    def kernels(self) -> RankerKernels:
        return RankerKernels(rank, learn)

    def new_state(self) -> TopKState:
        return TopKState(self.start.copy(), np.zeros(1, np.int64), np.zeros(2))

    def scratch(self, n: int) -> tuple[Any, ...]:
        d = len(self.start)
        order, sort_scratch = np.empty(n, np.int64), sorting.scratch(n)
        return np.empty(n), np.empty(n), np.empty(n), order, sort_scratch, narrow_scratch(d)

    @staticmethod
    def unguided(surrogate: str) -> int:
        """What R_hat is without a control variate (erratum B6)."""
        return ZERO if surrogate == "squared" else NO_GUESS

    def is_ticket(self, gamma: float, shown: Floats) -> bool:
        """Whether `rank` can have written this exploration, and these rows about shown items."""
        return gamma > 0

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_weights(saved, self.params.radius)

    def explored_positions(self, n: int) -> tuple[int, int]:
        """How many positions an exploring list leaves as they are, and how many it then draws."""
        return 0, n
