"""The Plackett-Luce distribution of lists: position by position, each remaining document with chance exp(score) / sum.

Scores may be of any size. Weights are exp(score - shift), and the shift moves down as the heavy documents are drawn, so
that the sum over those that remain never underflows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.elementary import EXP_RANGE, exp, exp_within
from rankloop.kernels.jit import apart, hot
from rankloop.kernels.random import uniform

_LIGHT = 1e-3  # of the sum when it was last computed: with less left, the rest is weighed anew
_BLOCK = (
    16  # documents whose weights are also kept as one sum: a draw goes from block to block, then through one
)
_SPREAD = 600.0  # of scores whose exponentials can be compared without underflow


def weights_length(n: int) -> int:
    """How many numbers `draw_list` keeps of n documents: their weights, and behind them the sum of each block."""
    return n + n // _BLOCK + 1


@hot
def draw_list(scores: Any, n: int, m: int, key: Any, first: int, weights: Any, items: Any) -> Any:
    """Draw the first m of n documents, from the numbers of `key` at `first` on; the others follow in any order.

    Returns (shift, sum of exp(score - shift)) of the documents that were not drawn, (0, 0) where there is none.
    `weights` has `weights_length(n)` numbers.
    """
    shift = scores[0]
    for i in range(1, n):
        shift = scores[i] if scores[i] > shift else shift
    for i in range(n):
        items[i] = i
        weights[i] = exp_within(max(scores[i] - shift, -EXP_RANGE))
    total = _add_up(weights, n)
    light = _LIGHT * total
    for position in range(m):
        if total < light:
            shift, total = _weigh(scores, position, n, weights, items)
            light = _LIGHT * total
        chosen = _reach(weights, n, uniform(key, first + position) * total)
        total -= weights[chosen]
        weights[n + chosen // _BLOCK] -= weights[chosen] - weights[position]
        weights[n + position // _BLOCK] -= weights[position]
        items[position], items[chosen] = items[chosen], items[position]
        weights[chosen] = weights[position]
        weights[position] = 0.0
    if m == n:
        return 0.0, 0.0
    if total < light:
        shift, total = _weigh(scores, m, n, weights, items)
    return shift, total


@hot
def _add_up(weights: Any, n: int) -> Any:
    # The sum of all weights; that of each block goes behind them.
    total = 0.0
    for block in range((n - 1) // _BLOCK + 1):
        part = 0.0
        for place in range(block * _BLOCK, min(n, (block + 1) * _BLOCK)):
            part += weights[place]
            total += weights[place]
        weights[n + block] = part
    return total


@hot
def _reach(weights: Any, n: int, target: float) -> Any:
    # The first place at which the weights so far add up to more than `target`; those drawn before weigh 0.
    block, reached = 0, 0.0
    while (block + 1) * _BLOCK < n and reached + weights[n + block] <= target:
        reached += weights[n + block]
        block += 1
    place = block * _BLOCK
    reached += weights[place]
    while reached <= target and place < n - 1:
        place += 1
        reached += weights[place]
    while weights[place] == 0.0:  # rounding led past the last one that can be drawn
        place -= 1
    return place


@apart
def _weigh(scores: Any, start: int, n: int, weights: Any, items: Any) -> Any:
    # Of the documents from `start` on: the highest score, and the sum of exp(score - highest).
    shift = scores[items[start]]
    for place in range(start + 1, n):
        shift = max(shift, scores[items[place]])
    for place in range(start, n):
        weights[place] = exp(scores[items[place]] - shift)
    return shift, _add_up(weights, n)


@hot
def suffix_sums(scores: Any, m: int, rest_shift: float, rest: float, shifts: Any, sums: Any) -> Any:
    """For each position: what the documents from there on weigh, as a pair (shift, sum of exp(score - shift)).

    `rest` counts those that are not among the m. Returns whether all scores lie so close together that one shift does
    for every position; it is then the same throughout.
    """
    highest = rest_shift if rest > 0.0 else scores[0]
    lowest = scores[0]
    for position in range(m):
        highest = max(highest, scores[position])
        lowest = min(lowest, scores[position])
    close = highest - lowest < _SPREAD
    shifts[m] = highest if close else (rest_shift if rest > 0.0 else -np.inf)
    sums[m] = rest * exp(rest_shift - shifts[m]) if rest > 0.0 else 0.0
    for position in range(m - 1, -1, -1):
        if close:
            shifts[position] = highest
            sums[position] = sums[position + 1] + exp(scores[position] - highest)
        else:
            add = _add(shifts[position + 1], sums[position + 1], scores[position])
            shifts[position], sums[position] = add
    return close


@hot
def _add(shift: float, total: float, score: float) -> Any:
    # The pair (shift, total) with one more document.
    if score <= shift:
        return shift, total + exp(score - shift)
    return score, total * exp(shift - score) + 1.0


@hot
def swap_odds(scores: Any, shifts: Any, sums: Any, weights: Any, close: bool, a: int, b: int) -> Any:
    """P(list) / P(the list with positions a < b exchanged), infinite or 0 where no number is that large or small.

    `weights` are exp(score - shift) where the scores are close. Between a and b the two lists divide by what is
    left without one or the other document: each factor is on the same side of 1, so their product cannot be 0 times
    infinity, and nothing is subtracted.
    """
    odds = 1.0
    shift, rest = shifts[b + 1], sums[b + 1]
    for position in range(b, a, -1):
        if close:
            odds *= (rest + weights[a]) / (rest + weights[b])
            rest += weights[position - 1]
        else:
            top = max(shift, scores[a], scores[b])
            others = rest * exp(shift - top)
            odds *= (others + exp(scores[a] - top)) / (others + exp(scores[b] - top))
            shift, rest = _add(shift, rest, scores[position - 1])
    return odds
