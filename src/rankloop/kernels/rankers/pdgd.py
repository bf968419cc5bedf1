"""Pairwise differentiable gradient descent: lists are drawn, a click is a preference, a weight takes out the bias."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import exp
from rankloop.kernels.jit import hot, inlined
from rankloop.kernels.plackett_luce import draw_list, suffix_sums, swap_odds
from rankloop.kernels.rows import score


class PDGDParams(NamedTuple):
    """How many documents are shown, and the step."""

    n_positions: int
    eta: float


class PDGDState(NamedTuple):
    """The linear ranker."""

    w: NDArray[np.float64]  # weights, by feature
    t: NDArray[np.int64]  # rounds learnt


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, line 4: a list from the Plackett-Luce distribution of the scores."""
    scores, weights = scratch[0], scratch[1]
    header, shown, rows = memo
    n, d = context.shape
    m = min(params.n_positions, n)
    score(context, state.w, scores)
    shift, rest = draw_list(scores, n, m, key, 0, weights, items)
    header[0] = m
    header[1] = shift
    header[2] = rest
    for position in range(m):
        item = items[position]
        shown[position] = scores[item]
        for j in range(d):
            rows[position, j] = context[item, j]
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
    """Alg. 1, lines 5-12."""
    header, shown, rows = memo
    step = scratch[2]
    m = int(header[0])
    if gradient_in_scores(shown, m, header[1], header[2], feedback, scratch[3], step):
        for position in range(m):
            size = params.eta * step[position]
            if size != 0.0:
                for j in range(len(state.w)):
                    state.w[j] += size * rows[position, j]
    state.t[0] += 1


@inlined
def gradient_in_scores(
    shown: Any, m: int, rest_shift: float, rest: float, clicks: Any, room: Any, step: Any
) -> bool:
    """The sum over preferences of weight times the gradient of P(preferred before the other), by shown document.

    Returns whether there is any preference. `room` has three rows of m + 1 numbers.
    """
    shifts, sums, weights = room[0], room[1], room[2]
    last = m - 1
    while last >= 0 and clicks[last] == 0.0:
        last -= 1
    if last < 0:
        return False
    close = suffix_sums(shown, m, rest_shift, rest, shifts, sums)
    for position in range(m):
        step[position] = 0.0
        weights[position] = exp(shown[position] - shifts[position]) if close else 0.0
    # A user who clicked at `last` saw everything above it, and the next document (section 4.1).
    for better in range(last + 1):
        if clicks[better] == 0.0:
            continue
        for worse in range(min(last + 2, m)):
            if clicks[worse] != 0.0:
                continue
            a, b = min(better, worse), max(better, worse)
            odds = swap_odds(shown, shifts, sums, weights, close, a, b)
            apart = exp(-abs(shown[better] - shown[worse]))
            slope = apart / ((1.0 + apart) * (1.0 + apart))  # of the sigmoid, eq. (5)
            size = slope / (1.0 + odds)  # eq. (8): rho = P(R*) / (P(R) + P(R*))
            step[better] += size
            step[worse] -= size
    return True
