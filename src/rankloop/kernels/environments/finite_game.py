"""The other side of a finite game: outcomes that are listed or drawn, and signals of the action that was played."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot, inlined
from rankloop.kernels.random import uniform


class GameParams(NamedTuple):
    """The game, and where outcomes come from."""

    loss: NDArray[np.float64]  # [action, outcome]
    first: NDArray[np.int64]  # of each action, its first row of `chance`; and the number of rows
    chance: NDArray[np.float64]  # [row, outcome]: of each signal
    listed: NDArray[np.int64]  # the outcomes in turn; empty where they are drawn
    phases: NDArray[np.float64]  # [phase, outcome]: cumulated chances
    period: int  # rounds of a phase


class GameState(NamedTuple):
    """The present outcome, and what each action would have lost so far."""

    t: NDArray[np.int64]
    outcome: NDArray[np.int64]
    totals: NDArray[np.float64]


@inlined
def action_of(items: Any) -> Any:
    """The number of an action: the only item; of an order, its place among all orders sorted by the items' ranks."""
    n = len(items)
    if n == 1:
        return items[0]
    number = 0
    for i in range(n):
        place = 0
        while items[place] != i:
            place += 1
        earlier = 0  # items after i, in number, that stand before it
        for p in range(place):
            earlier += items[p] > i
        number = number * (n - i) + earlier
    return number


@hot
def arrive(params: Any, state: Any, key: Any) -> None:
    """The next outcome."""
    t = state.t[0]
    if len(params.listed) > 0:
        x = params.listed[t]
    else:
        phase = t // params.period % len(params.phases)
        mark = uniform(key, 0) * params.phases[phase, -1]
        x = 0
        while x < params.phases.shape[1] - 1 and params.phases[phase, x] <= mark:
            x += 1
    state.outcome[0] = x
    state.t[0] = t + 1
    for a in range(len(state.totals)):
        state.totals[a] += params.loss[a, x]


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """The number of the signal, and zeros."""
    a, mark = action_of(items), uniform(key, 0)
    for position in range(len(revealed)):
        revealed[position] = 0.0
    for row in range(params.first[a], params.first[a + 1]):
        if params.chance[row, state.outcome[0]] > 0.0:
            revealed[0] = float(row - params.first[a])
            mark -= params.chance[row, state.outcome[0]]
            if mark < 0.0:
                return


@hot
def value(params: Any, state: Any, items: Any) -> Any:
    """The loss of the action in the present outcome."""
    return params.loss[action_of(items), state.outcome[0]]


@hot
def hindsight(params: Any, state: Any) -> Any:
    """What the best fixed action would have lost."""
    least = state.totals[0]
    for a in range(1, len(state.totals)):
        least = min(least, state.totals[a])
    return least
