"""Thompson sampling for position-based clicks: a model drawn given all clicks so far, and the best list of it.

Attractions and examinations are drawn by Metropolis-Hastings, one coordinate after the other, going on from the last
draw with feedback. The draw travels in the ticket, because `rank` may not store it.
Arrays are position-major: S[j, i] are the clicks on item i at position j, N[j, i] how often it stood there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.click_counts import clicks_and_looks, count
from rankloop.kernels.elementary import cos_turns, exp, log
from rankloop.kernels.jit import hot
from rankloop.kernels.random import uniform
from rankloop.kernels.sorting import by_falling_score

_WIDTH = (
    2.4  # standard deviations of a proposal in those of what it is for: the usual choice in one dimension
)


class PBMTSParams(NamedTuple):
    """How the model is drawn."""

    sweeps: int  # turns over all coordinates in a round
    draws_kappa: bool  # whether examinations are drawn too
    kept: float  # what is left of a count after a round: 1 where nothing is forgotten


class PBMTSState(NamedTuple):
    """Clicks and displays, and the last draw with feedback."""

    t: NDArray[np.int64]  # rounds with feedback
    S: NDArray[np.float64]  # by position and item: clicks
    N: NDArray[np.float64]  # by position and item: displays
    theta: NDArray[np.float64]  # by item: drawn attractions
    kappa: NDArray[np.float64]  # by position: drawn examinations


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Draw a model and show its best list. Exploring: another list than that of the mean attractions."""
    theta, kappa = memo
    m, n = state.S.shape
    for i in range(n):
        theta[i] = state.theta[i]
    for j in range(m):
        kappa[j] = state.kappa[j]
    for sweep in range(params.sweeps):
        first = 3 * sweep * (n + m)
        for i in range(n):
            draw(state.S, state.N, theta, kappa, i, key, first + 3 * i)
        if params.draws_kappa:
            for j in range(m):
                draw(state.S.T, state.N.T, kappa, theta, j, key, first + 3 * (n + j))
    greedy, by_item, by_position, room = scratch
    best_list(state, kappa, greedy, by_item, by_position, room, items)
    explored = False
    for j in range(m):
        greedy[j] = items[j]
    by_falling_score(theta, n, by_item, room)
    for place in range(m):
        j = by_position[place]
        items[j] = by_item[place]
        explored |= items[j] != greedy[j]
    return explored


@hot
def best_list(
    state: Any, kappa: Any, mean: Any, by_item: Any, by_position: Any, room: Any, items: Any
) -> None:
    """The list of the mean attractions under `kappa`: clicks by looks, one of each assumed beforehand."""
    m, n = state.S.shape
    for i in range(n):
        clicks, looks = clicks_and_looks(state.S, state.N, kappa, i, 0.5, 1.0)
        mean[i] = clicks / looks
    by_falling_score(mean, n, by_item, room)
    by_falling_score(kappa, m, by_position, room)
    for place in range(m):
        items[by_position[place]] = by_item[place]


@hot
def draw(S: Any, N: Any, theta: Any, kappa: Any, i: int, key: Any, first: int) -> None:
    """One Metropolis-Hastings step for the attraction of item i, given everything else.

    With S and N transposed, and `theta` and `kappa` in each other's place, the same for the examination of a position.
    """
    clicks, looks = clicks_and_looks(S, N, kappa, i, 0.0, 0.0)
    before = theta[i]
    after = before + _width(clicks, looks) * normal(key, first)
    if not 0.0 < after < 1.0:
        return
    change = clicks * log(after / before)
    for j in range(len(kappa)):
        if N[j, i] > S[j, i]:
            change += (N[j, i] - S[j, i]) * log((1.0 - after * kappa[j]) / (1.0 - before * kappa[j]))
    if change >= 0.0 or uniform(key, first + 2) < exp(change):
        theta[i] = after


@hot
def _width(clicks: float, looks: float) -> Any:
    # About the spread of what is being drawn; it may depend on everything but that itself.
    return _WIDTH * np.sqrt(clicks + 1.0) / (looks + 4.0)


@hot
def normal(key: Any, first: int) -> Any:
    """A standard normal number from the numbers of `key` at `first` and after it (Box and Muller)."""
    radius = np.sqrt(-2.0 * log(1.0 - uniform(key, first)))
    return radius * cos_turns(uniform(key, first + 1))


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
    """Count clicks and displays, and go on from this draw."""
    theta, kappa = memo
    if params.kept < 1.0:
        for j in range(state.S.shape[0]):
            for i in range(state.S.shape[1]):
                state.S[j, i] *= params.kept
                state.N[j, i] *= params.kept
    count(state.S, state.N, items, feedback)
    for i in range(len(theta)):
        state.theta[i] = theta[i]
    for j in range(len(kappa)):
        state.kappa[j] = kappa[j]
    state.t[0] += 1
