"""Exploration by optimisation (Lattimore and Szepesvari 2020): exponential weights in any finite game.

With p the chances of the actions, M = sum of p_a c c^T over all signals c of action a, and t_b what action b loses
beyond a base, both in the coordinates of what can be seen, c^T M^-1 t_b is an unbiased estimate of that loss, the one
with the least variance summed over signals. The chances are p = (1 - sum w) q + w: exponential weights q, and
exploration w, which is improved in every round by trying other values in the bound on this round's regret.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import apart, hot
from rankloop.kernels.random import uniform

_LEAST = 0.5  # of exploration, times the learning rate: no estimate is much larger than its inverse
_MOST = 0.5  # of exploration in all
_PIVOT = 1e-14
_EAGER, _EVERY = 512, 4  # rounds in which other exploration is tried: the first ones, then one of four


class PlayerParams(NamedTuple):
    """The game: a row for each signal of each action."""

    orders: NDArray[np.int64]  # of each action, what is shown
    loss: NDArray[np.float64]  # [action, outcome], from 0 to 1
    first: NDArray[np.int64]  # of each action, its first row; and the number of rows
    owner: NDArray[np.int64]  # of each row, its action
    chance: NDArray[np.float64]  # [row, outcome]: of the signal
    c: NDArray[np.float64]  # [row, coordinate]: the same in coordinates
    target: NDArray[np.float64]  # [choice, coordinate]: what choice b loses beyond choice 0
    member: NDArray[np.int64]  # of each action, the choice with the same losses, or -1
    share: NDArray[np.float64]  # of each such action: of its choice's chance
    log_n: float  # of the number of choices


class PlayerState(NamedTuple):
    """What was learnt, and the plan for the next round."""

    t: NDArray[np.int64]  # rounds learnt
    L_hat: NDArray[np.float64]  # of each choice: summed estimates of what it loses beyond choice 0
    w: NDArray[np.float64]  # of each action: exploration
    p: NDArray[np.float64]  # of each action: its chance
    estimate: NDArray[np.float64]  # [row, choice]: what to add where this signal comes
    total: NDArray[np.float64]  # the summed bounds over their learning rates; and the summed bounds


class Room(NamedTuple):
    """Room to work in; never state."""

    M: NDArray[np.float64]  # its Cholesky factor
    H: NDArray[np.float64]  # M^-1 t_b
    q: NDArray[np.float64]
    q_loss: NDArray[np.float64]
    bound: NDArray[np.float64]
    w: NDArray[np.float64]


def room(n_actions: int, n_outcomes: int, n_coordinates: int, n_choices: int) -> Room:
    """Room for a game of this size."""
    r, n = n_coordinates, n_choices
    return Room(
        np.empty((r, r)),
        np.empty((n, r)),
        np.empty(n),
        np.empty(n_outcomes),
        np.empty(n_outcomes),
        np.empty(n_actions),
    )


@hot
def _factor(params: Any, state: Any, scratch: Any) -> None:
    M, c = scratch.M, params.c
    r = M.shape[0]
    for a in range(r):
        for b in range(a + 1):
            M[a, b] = 0.0
    for row in range(c.shape[0]):
        for a in range(r):
            weighed = state.p[params.owner[row]] * c[row, a]
            if weighed != 0.0:
                for b in range(a + 1):
                    M[a, b] += weighed * c[row, b]
    for a in range(r):
        for b in range(a + 1):
            left = M[a, b]
            for i in range(b):
                left -= M[a, i] * M[b, i]
            M[a, b] = np.sqrt(max(left, _PIVOT)) if a == b else left / M[b, b]


@hot
def _solve(params: Any, scratch: Any) -> None:
    M, H = scratch.M, scratch.H
    r = M.shape[0]
    for choice in range(H.shape[0]):
        for a in range(r):
            left = params.target[choice, a]
            for i in range(a):
                left -= M[a, i] * H[choice, i]
            H[choice, a] = left / M[a, a]
        for a in range(r - 1, -1, -1):
            left = H[choice, a]
            for i in range(a + 1, r):
                left -= M[i, a] * H[choice, i]
            H[choice, a] = left / M[a, a]


@apart
def evaluate(params: Any, state: Any, w: Any, eta: float, scratch: Any) -> float:
    """The chances that go with exploration `w`, the estimates, and the bound on this round's regret.

    The bound is the largest, over outcomes, of what p loses beyond q plus the expected price of the estimates,
    (log sum q exp(-eta y) + eta sum q y) / eta, which is exact for exponential weights.
    """
    n_actions, n_outcomes = params.loss.shape
    n_choices = len(state.L_hat)
    spent = 0.0
    for a in range(n_actions):
        spent += w[a]
    for a in range(n_actions):
        state.p[a] = w[a]
        if params.member[a] >= 0:
            state.p[a] += (1.0 - spent) * scratch.q[params.member[a]] * params.share[a]
    _factor(params, state, scratch)
    _solve(params, scratch)
    for x in range(n_outcomes):
        scratch.bound[x] = -scratch.q_loss[x]
        for a in range(n_actions):
            scratch.bound[x] += state.p[a] * params.loss[a, x]
    for row in range(len(params.owner)):
        least, mean = 0.0, 0.0
        for b in range(n_choices):
            y = 0.0
            for i in range(scratch.M.shape[0]):
                y += params.c[row, i] * scratch.H[b, i]
            state.estimate[row, b] = y
            mean += scratch.q[b] * y
            least = y if b == 0 else min(least, y)
        weighed = 0.0
        for b in range(n_choices):
            weighed += scratch.q[b] * exp(-eta * (state.estimate[row, b] - least))
        price = log(max(weighed, 1e-300)) / eta - least + mean
        for x in range(n_outcomes):
            scratch.bound[x] += state.p[params.owner[row]] * price * params.chance[row, x]
    worst = scratch.bound[0]
    for x in range(1, n_outcomes):
        worst = max(worst, scratch.bound[x])
    return float(worst)


@hot
def rate(params: Any, state: Any) -> float:
    """The learning rate: sqrt(log n / summed bounds over rates), at most 1."""
    return float(min(1.0, np.sqrt(params.log_n / max(state.total[0], 1e-9))))


@apart
def plan(params: Any, state: Any, scratch: Any) -> None:
    """Weights, exploration, chances and estimates of the next round; its bound is added to the sums."""
    n_actions, n_outcomes = params.loss.shape
    n_choices = len(state.L_hat)
    if n_choices == 1:  # nothing to learn
        for a in range(n_actions):
            state.p[a] = params.share[a] if params.member[a] == 0 else 0.0
        return
    eta = rate(params, state)
    least, total = state.L_hat[0], 0.0
    for b in range(1, n_choices):
        least = min(least, state.L_hat[b])
    for b in range(n_choices):
        scratch.q[b] = exp(-eta * (state.L_hat[b] - least))
        total += scratch.q[b]
    for b in range(n_choices):
        scratch.q[b] /= total
    for x in range(n_outcomes):
        scratch.q_loss[x] = 0.0
        for a in range(n_actions):
            if params.member[a] >= 0:
                scratch.q_loss[x] += scratch.q[params.member[a]] * params.share[a] * params.loss[a, x]
    least = _LEAST * eta / n_actions
    for a in range(n_actions):
        state.w[a] = max(least, state.w[a])
    bound = evaluate(params, state, state.w, eta, scratch)
    t, planned = state.t[0], True
    tries, t = (2, t) if t < _EAGER else (2 if t % _EVERY == 0 else 0, t // _EVERY)
    for attempt in range(tries):
        # All exploration less or more; then that of one action, each in its turn.
        turn, spent = t // 2 % n_actions, 0.0
        for a in range(n_actions):
            factor = 1.0
            if attempt == 0:
                factor = 0.8 if t % 2 == 0 else 1.25
            elif a == turn:
                factor = 0.6 if t % 2 == 0 else 1.6
            scratch.w[a] = max(least, factor * state.w[a])
            spent += scratch.w[a]
        for a in range(n_actions):
            scratch.w[a] *= min(1.0, _MOST / spent)
        other = evaluate(params, state, scratch.w, eta, scratch)
        planned = other < bound
        if planned:
            bound = other
            for a in range(n_actions):
                state.w[a] = scratch.w[a]
    if not planned:
        evaluate(params, state, state.w, eta, scratch)
    state.total[0] += max(bound, 0.0) / eta
    state.total[1] += max(bound, 0.0)


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Draw an action; the memo keeps its number and the estimates that go with each of its signals."""
    mark = uniform(key, 0)
    chosen = -1
    for a in range(len(state.p)):
        if state.p[a] > 0.0:
            chosen = a
            mark -= state.p[a]
            if mark < 0.0:
                break
    best = 0
    for b in range(1, len(state.L_hat)):
        if state.L_hat[b] < state.L_hat[best]:
            best = b
    for position in range(len(items)):
        items[position] = params.orders[chosen, position]
    for position in range(len(items)):
        propensities[position] = 0.0
        for a in range(len(state.p)):
            if params.orders[a, position] == items[position]:
                propensities[position] += state.p[a]
        propensities[position] = min(1.0, propensities[position])
    memo[0][0] = chosen
    for symbol in range(memo[1].shape[0]):
        row = params.first[chosen] + symbol
        for b in range(memo[1].shape[1]):
            memo[1][symbol, b] = state.estimate[row, b] if row < params.first[chosen + 1] else 0.0
    return bool(params.member[chosen] != best)


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
    """Add the estimates of the signal that came, and plan the next round."""
    for b in range(len(state.L_hat)):
        state.L_hat[b] += memo[1][int(feedback[0]), b]
    state.t[0] += 1
    plan(params, state, scratch)
