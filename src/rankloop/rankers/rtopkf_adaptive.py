"""RTop-kF's default, without constants: AdaGrad's steps, and exploration that follows the length of the list.

Three things differ from Algorithm 1 (`rtopkf_paper`). The surrogate is averaged over the list, so that long lists do
not drown short ones. An exploring list draws the last revealed position only, and leaves the others as they are. Steps
follow the gradients and the features that were seen.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.base import Array, Floats, Ints
from rankloop.compiled import RankerKernels
from rankloop.kernels import descent, sorting
from rankloop.kernels.descent import softmax
from rankloop.kernels.elementary import power
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.random import draw, uniform
from rankloop.kernels.rows import average, copy_row, narrow_combine, narrow_score, narrow_scratch
from rankloop.kernels.sorting import greedy_order, greedy_top
from rankloop.rankers.linear import Schedule, Smoothing, check_scaled_weights
from rankloop.rankers.rtopkf_paper import (
    KL,
    NO_GUESS,
    RANKSVM,
    SMOOTH_DCG,
    SQUARED,
    guess_labels,
    keep_known_part,
    scheduled,
    surprise,
)

# In a list that explores, the first `kept` items are as in the greedy order, the next `drawn` are drawn at random from
# the others, and the rest stays in greedy order, so that such a list costs little. With all positions drawn it is a
# random order.


@hot
def explore(
    key: Any, first: int, order: Any, n: int, kept: int, drawn: int, places: Any, marks: Any, items: Any
) -> None:
    """Write such a list, or as much as fits, to `items`, and to `places` where its items stand in the greedy order."""
    for place in range(n):
        marks[place] = 0
        places[place] = place
    draw(key, first, n - kept, drawn, places[kept:])
    for position in range(kept, kept + drawn):
        places[position] += kept
        marks[places[position]] = 1
    position = kept + drawn
    for place in range(kept, n):
        if marks[place] == 0:
            places[position] = place
            position += 1
    for position in range(min(n, len(items))):
        items[position] = order[places[position]]


@hot
def chance(n: int, kept: int, drawn: int, place: int, position: int) -> Any:
    """The probability that such a list has at `position` the item at `place` of the greedy order."""
    if place < kept or position < kept:
        return 1.0 if place == position else 0.0
    rest = n - kept
    if position < kept + drawn:
        return 1.0 / rest
    # The item moved back by `drawn`, less by one for each item before it that was drawn: a hypergeometric number.
    before = place - kept
    fewer = drawn + place - position
    if fewer < 0 or fewer > drawn or fewer > before or drawn - fewer > rest - 1 - before:
        return 0.0
    if drawn == 1:  # as in most lists; the same number with one division
        return (before if fewer == 1 else rest - 1.0 - before) * (1.0 / rest)
    found = 1.0
    for i in range(drawn):
        if i < fewer:
            found *= (before - i) / (fewer - i)
        else:
            found *= (rest - 1.0 - before - (i - fewer)) / (drawn - i)
        found *= (drawn - i) / (rest - i)
    return found


@kernel
def means(n: int, kept: int, drawn: int, by_position: Any, out: Any) -> None:
    """The mean over such lists of a number by position, for the item at each place of the greedy order."""
    for which in range(by_position.shape[0]):
        for place in range(n):
            total = 0.0
            if place < kept:
                total = by_position[which, place]
            else:
                for position in range(kept, kept + drawn):
                    total += by_position[which, position] / (n - kept)
                for position in range(max(place, kept + drawn), min(place + drawn + 1, n)):
                    total += chance(n, kept, drawn, place, position) * by_position[which, position]
            out[which, place] = total


CENTRED = 4  # beside the surrogates of the paper
RATE = 0.03
GAMMA = 1.5
MOST_EXPLORATION = 0.5
WIDTH = 0.3  # SmoothDCG's epsilon, in standard deviations of the list's scores
NOISE = 1e-9  # features of a list that differ by less, beside their size, are equal
_SCORE, _GUESS, _WEIGHT, _GREEDY, _IMPORTANCE = range(5)  # columns of the memo's second part


class AdaptiveParams(NamedTuple):
    """Which surrogate and estimator; a gamma or epsilon of 0 is chosen from the list.

    relative: SmoothDCG depends on the scores divided by their standard deviation, which moves with the weights.
    """

    surrogate: int
    guess: int
    n_observed: int  # how many of the top labels the estimator uses
    max_grade: float
    radius: float
    gamma: float
    gamma_power: float
    epsilon: float
    epsilon_power: float
    epsilon_floor: float
    units: Floats  # by position, the label that a revealed 1 stands for
    relative: bool
    start: Floats  # the weights before anything was learnt


class AdaptiveState(NamedTuple):
    """The linear ranker, what labels are usual, and what the steps follow."""

    w: Floats  # weights, by feature
    t: Ints  # rounds learnt
    labels: Floats  # the weighted sum of revealed labels, and the sum of the weights
    squares: Floats  # summed squares of the gradient, by feature
    scale: Floats  # the largest size seen, by feature


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """The greedy order, or one that explores; and all of the gradient that is known without labels."""
    scores, weights, guesses, order, sort_scratch, narrow, mean, _, places, marks = scratch
    header, shown, known, rows = memo
    n, d, t = context.shape[0], context.shape[1], state.t[0]
    observed = min(params.n_observed, n)
    kept, drawn = _explored_positions(params, n, observed)
    listed = min(n, len(items))
    # Both powers here, side by side with the scores: the processor need not wait for them.
    gamma, alpha = _gamma(params, n, observed, t), power(t + 1.0, -1.0 / 3.0)
    narrow_score(context, state.w, narrow, scores)
    greedy_top(scores, n, listed, key, 1, order, sort_scratch)
    explored = uniform(key, 0) < gamma
    if explored:
        if listed < n:  # an item from further below may come up
            greedy_order(scores, n, key, 1, order, sort_scratch)
        explore(key, 1 + n, order, n, kept, drawn, places, marks, items)
    else:
        for position in range(listed):
            places[position] = position
            items[position] = order[position]
    for position in range(listed):
        by_chance = chance(n, kept, drawn, places[position], position)
        propensities[position] = (1.0 - gamma) * (places[position] == position) + gamma * by_chance
    header[0], header[1], header[2] = n, gamma, _epsilon(params, scores, n, t)
    if params.surrogate == SQUARED or params.surrogate == KL:
        for i in range(n):
            scores[i] = _cut(params, scores[i])
    if params.surrogate == CENTRED:
        average(context, weights, narrow, mean)
        _centre(params, state, scores, n, guesses)
    else:
        guess_labels(params, state, scores, n, guesses)
        keep_known_part(params, context, scores, weights, guesses, header[2], narrow, known)
    soft = 0.0
    if params.relative:
        soft = _stay_in_width(params, context, scores, weights, guesses, header[2], narrow, known, mean)
    for place in range(observed):
        item = items[place]
        greedy = places[place] < observed
        seen = (1.0 - gamma) * greedy + gamma * drawn_share(n, kept, drawn, observed)
        if places[place] < kept:
            seen = 1.0
        importance = 1.0 / seen if params.surrogate == SMOOTH_DCG else 1.0 / (n * seen)
        if params.surrogate == CENTRED:
            importance = (1.0 - alpha) * importance + alpha / observed
        shown[place, _SCORE] = scores[item]
        shown[place, _GUESS] = guesses[item]
        shown[place, _WEIGHT] = weights[item] if params.surrogate == SMOOTH_DCG else 0.0
        shown[place, _GREEDY] = greedy
        shown[place, _IMPORTANCE] = importance
        copy_row(context, item, rows[place])
        if params.surrogate == CENTRED:
            for j in range(d):
                rows[place, j] = _difference(rows[place, j], mean[j])
        elif params.relative:
            for j in range(d):
                rows[place, j] -= (scores[item] - soft) * mean[j]
    return explored


@hot
def _explored_positions(params: Any, n: int, observed: int) -> Any:
    # RankSVM needs every pair to have a chance, so it draws all revealed positions; a schedule means whole lists.
    if params.gamma > 0.0:
        return 0, n
    return (0, observed) if params.surrogate == RANKSVM else (observed - 1, 1)


@hot
def drawn_share(n: int, kept: int, drawn: int, observed: int) -> Any:
    """The probability that exploration reveals an item that it does not keep."""
    return min(drawn, observed) / (n - kept)


@hot
def _gamma(params: Any, n: int, observed: int, t: int) -> Any:
    if params.gamma > 0.0:
        return min(1.0, scheduled(params.gamma, params.gamma_power, t))
    if n <= observed:
        return 0.0  # every label is revealed anyway
    return min(MOST_EXPLORATION, GAMMA * power(n / (observed * (t + 1.0)), 1.0 / 3.0))


@hot
def _epsilon(params: Any, scores: Any, n: int, t: int) -> Any:
    # By default SmoothDCG's softmax is as wide as the scores are: a part of their standard deviation, or all of it.
    if params.surrogate != SMOOTH_DCG:
        return 1.0
    if params.epsilon > 0.0:
        return max(params.epsilon_floor, scheduled(params.epsilon, params.epsilon_power, t))
    _, variance = _moments(scores, n)
    epsilon = (WIDTH if params.relative else 1.0) * np.sqrt(variance)
    return epsilon if 0.0 < epsilon < np.inf else 1.0


@hot
def _moments(scores: Any, n: int) -> Any:
    mean, variance = 0.0, 0.0
    for i in range(n):
        mean += scores[i] / n
    for i in range(n):
        variance += (scores[i] - mean) ** 2 / n
    return mean, variance


@hot
def _stay_in_width(
    params: Any,
    context: Any,
    scores: Any,
    weights: Any,
    guesses: Any,
    epsilon: float,
    narrow: Any,
    known: Any,
    along: Any,
) -> Any:
    # The derivative of log epsilon in w, into `along`: what of a row only widens the scores is taken off it. Otherwise
    # the weights would grow without end, and ever smaller steps would not turn them any more. Returns the mean score
    # under the softmax.
    n, d = context.shape[0], context.shape[1]
    mean, variance = _moments(scores, n)
    soft, guessed = 0.0, 0.0
    for i in range(n):
        soft += weights[i] * scores[i]
    for i in range(n):
        guessed += weights[i] * exp2_gain(guesses[i]) * (scores[i] - soft) / epsilon
        weights[i] = (scores[i] - mean) / (n * variance) if 0.0 < variance < np.inf else 0.0
    narrow_combine(context, weights, narrow, along)
    softmax(scores, n, epsilon, weights)
    if params.guess != NO_GUESS:
        for j in range(d):
            known[0, j] -= guessed * along[j]
    return soft


@hot
def _centre(params: Any, state: Any, scores: Any, n: int, guesses: Any) -> None:
    # The guess s_i - mean of s + usual label, at which the gradient is 0 without any label.
    average_score = 0.0
    for i in range(n):
        average_score += scores[i] / n
    usual = state.labels[0] / state.labels[1] if state.labels[1] > 0.0 else 0.0
    for i in range(n):
        guesses[i] = _cut(params, scores[i] - average_score + usual)


@hot
def _cut(params: Any, s: float) -> Any:
    # Beyond, the loss goes on as its tangent: a feature never seen so large must not make a gradient of any size.
    return min(max(s, -params.max_grade), 2.0 * params.max_grade)


@hot
def _difference(x: float, mean: float) -> Any:
    difference = x - mean
    return difference if abs(difference) > NOISE * abs(mean) else 0.0


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, answer: Any
) -> None:
    """The estimated gradient, then one step of AdaGrad."""
    gradient = scratch[7]
    header, shown, known, rows = memo
    n, gamma = int(header[0]), header[1]
    observed, d = min(params.n_observed, n), len(state.w)
    for j in range(d):
        gradient[j] = 0.0
    if params.surrogate == RANKSVM:
        _add_pairs(gradient, n, gamma, observed, shown, rows, answer, params.units)
    else:
        share = 1.0 if params.surrogate == SMOOTH_DCG else 1.0 / n
        if params.guess != NO_GUESS:
            for j in range(d):
                gradient[j] = share * known[0, j]
        for place in range(observed):
            label = answer[place] * params.units[place]
            _add_label(params, gradient, shown[place], header[2], label, rows[place], known)
    for place in range(observed):
        descent.widen(state.w, params.start, state.scale, rows[place])
        weight = shown[place, _IMPORTANCE] if params.surrogate == CENTRED else 1.0
        state.labels[0] += weight * (answer[place] * params.units[place])
        state.labels[1] += weight
    if params.surrogate == SMOOTH_DCG:
        for j in range(d):
            gradient[j] = -gradient[j]  # a gain: climb (erratum B3)
    descent.descend(state.w, params.start, gradient, state.squares, state.scale, RATE, params.radius)
    state.t[0] += 1


@hot
def _add_label(
    params: Any, gradient: Any, shown: Any, epsilon: float, label: float, row: Any, known: Any
) -> None:
    if params.surrogate == SMOOTH_DCG:
        gain = exp2_gain(label)
        if params.guess != NO_GUESS:
            gain -= exp2_gain(shown[_GUESS])
        size = gain * shown[_WEIGHT] * shown[_IMPORTANCE] / epsilon
        for j in range(len(gradient)):
            gradient[j] += size * (row[j] - known[1, j])
    else:
        if params.surrogate == CENTRED:
            size = 2.0 * (shown[_GUESS] - label) * shown[_IMPORTANCE]
        else:
            size = surprise(params, shown[_SCORE], shown[_GUESS], label) * shown[_IMPORTANCE]
        for j in range(len(gradient)):
            gradient[j] += size * row[j]


@hot
def _add_pairs(
    gradient: Any, n: int, gamma: float, observed: int, shown: Any, rows: Any, answer: Any, units: Any
) -> None:
    # As `rtopkf` has it, each pair divided by the number of pairs.
    for better in range(observed):
        for worse in range(observed):
            if not (
                answer[better] * units[better] > answer[worse] * units[worse]
                and 1.0 + shown[worse, _SCORE] > shown[better, _SCORE]
            ):
                continue
            both_greedy = shown[better, _GREEDY] * shown[worse, _GREEDY]
            seen = (1.0 - gamma) * both_greedy * n * (n - 1.0) + gamma * observed * (observed - 1)
            for j in range(len(gradient)):
                gradient[j] += (rows[worse, j] - rows[better, j]) / seen


class ByPlace(NamedTuple):
    """Of a number by position: what the item at each place of the greedy order gets.

    greedy, exploring: quantities x places, in lists in that order, and on average in lists that explore. The two
    others are their sums up to, not including, each place.
    """

    greedy: Floats
    exploring: Floats
    greedy_sums: Floats
    exploring_sums: Floats

    def mean(self, scores: Floats, items: Iterable[int], gamma: float) -> Floats:
        """What items get on average, where equal scores are in every order equally likely; quantities x items."""
        found = []
        for item in items:
            score = scores[item]
            first = int(np.count_nonzero(scores > score))
            alike = int(np.count_nonzero(scores == score))
            if alike == 1:
                found.append((1 - gamma) * self.greedy[:, first] + gamma * self.exploring[:, first])
            else:
                greedy = self.greedy_sums[:, first + alike] - self.greedy_sums[:, first]
                exploring = self.exploring_sums[:, first + alike] - self.exploring_sums[:, first]
                found.append(((1 - gamma) * greedy + gamma * exploring) / alike)
        return np.array(found).T


def by_place(by_position: Floats, *, kept: int, drawn: int) -> ByPlace:
    """What the item at each place of the greedy order gets; the same is kept for the next call.

    An exploring list leaves `kept` positions from the top as they are and draws the next `drawn` at random.

    >>> found = by_place(np.array([[3.0, 1.0, 0.5]]), kept=0, drawn=3)
    >>> found.mean(np.array([0.1, 0.9, 0.1]), [0, 1], gamma=0.5)  # the first item is second or third
    array([[1.125, 2.25 ]])
    """
    plain = np.ascontiguousarray(by_position, np.float64)
    return _by_place(plain.shape, plain.tobytes(), kept, drawn)


@functools.lru_cache(maxsize=64)
def _by_place(shape: tuple[int, int], packed: bytes, kept: int, drawn: int) -> ByPlace:
    greedy = np.frombuffer(packed).reshape(shape)
    n = shape[1]
    exploring = np.empty(shape)
    if drawn >= n:
        exploring[:] = greedy.mean(axis=1, keepdims=True)
    else:
        means(n, kept, drawn, np.array(greedy), exploring)
    start = np.zeros((shape[0], 1))
    sums = (np.hstack([start, np.cumsum(one, axis=1)]) for one in (greedy, exploring))
    return ByPlace(greedy, exploring, *sums)


class Adaptive:
    """AdaGrad's steps and the exploration that suits them, as the ranker sees them."""

    surrogate, estimator, exploration = "centred_squared", "horvitz-thompson", "matched"  # the defaults
    memo_columns = 5

    def __init__(
        self, common: dict[str, Any], rate: Schedule | None, smoothing: Smoothing, start: Floats
    ) -> None:
        epsilon = smoothing.epsilon or Schedule(0.0)
        self.start = start
        self.params = AdaptiveParams(
            **common,
            epsilon=epsilon.scale,
            epsilon_power=epsilon.power,
            epsilon_floor=min(smoothing.floor, epsilon.scale or smoothing.floor),
            relative=smoothing.relative and common["surrogate"] == SMOOTH_DCG,
            start=start,
        )

    def kernels(self) -> RankerKernels:
        return RankerKernels(rank, learn)

    def new_state(self) -> AdaptiveState:
        d = len(self.start)
        return AdaptiveState(
            self.start.copy(), np.zeros(1, np.int64), np.zeros(2), squares=np.zeros(d), scale=np.zeros(d)
        )

    def scratch(self, n: int) -> tuple[Any, ...]:
        d = len(self.start)
        order, sort_scratch = np.empty(n, np.int64), sorting.scratch(n)
        common = np.empty(n), np.empty(n), np.empty(n), order, sort_scratch, narrow_scratch(d)
        return *common, np.empty(d), np.empty(d), np.empty(n, np.int64), np.empty(n, np.int64)

    @staticmethod
    def unguided(surrogate: str) -> int:
        """What R_hat is without a control variate: the scores, which are the better guess (erratum B6)."""
        return NO_GUESS

    def is_ticket(self, gamma: float, shown: Floats) -> bool:
        """Whether `rank` can have written this exploration, and these rows about shown items."""
        matched = self.params.gamma == 0.0
        return (gamma > 0 or (gamma == 0 and matched)) and min(shown[:, _IMPORTANCE].tolist()) > 0

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_scaled_weights(saved, self.params.radius, self.start)

    def explored_positions(self, n: int) -> tuple[int, int]:
        """How many positions an exploring list leaves as they are, and how many it then draws."""
        if self.params.gamma > 0.0:
            return 0, n
        observed = min(self.params.n_observed, n)
        return (0, observed) if self.params.surrogate == RANKSVM else (observed - 1, 1)
