"""Users who click each position independently, with a probability that depends on item, position and world.

One world is there in each round: the only one, the next one every so many rounds, or one of two at random. Which one
is a function of the round and of a key drawn at the first, so the past can be recomputed without being stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot, inlined, kernel
from rankloop.kernels.lists import best_list
from rankloop.kernels.random import uniform


class ClickParams(NamedTuple):
    """clicks[world, position, item] is the chance of a click; best[world] the value of the best list there."""

    clicks: NDArray[np.float64]
    best: NDArray[np.float64]
    phase: int  # rounds before the next world comes; 0 where it is drawn
    share: float  # the chance of world 1 in each round, where it is drawn


class ClickState(NamedTuple):
    """The present world, and what is needed to recompute the past."""

    t: NDArray[np.int64]  # users so far
    start: NDArray[np.int64]  # since when regret is counted
    key: NDArray[np.uint64]  # of the schedule of worlds
    world: NDArray[np.int64]  # which one is here
    counts: NDArray[np.int64]  # rounds in each world


@inlined
def _world_at(params: Any, key: Any, t: int) -> int:
    if len(params.best) == 1:
        world = 0
    elif params.phase > 0:
        world = t // params.phase % len(params.best)
    else:
        world = int(uniform(key, t) < params.share)
    return world


@hot
def arrive(params: Any, state: Any, key: Any) -> None:
    """The next user, in the world of this round."""
    t = state.t[0]
    if t == 0:
        state.key[0] = key
    world = _world_at(params, state.key[0], t)
    state.world[0] = world
    state.counts[world] += 1
    state.t[0] = t + 1


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """A click or none at each position."""
    world = state.world[0]
    for position in range(len(revealed)):
        revealed[position] = uniform(key, position) < params.clicks[world, position, items[position]]


@hot
def value(params: Any, state: Any, items: Any) -> float:
    """Expected clicks."""
    world = state.world[0]
    total = 0.0
    for position in range(len(items)):
        total += params.clicks[world, position, items[position]]
    return total


@kernel
def hindsight(params: Any, state: Any) -> Any:
    """The value of the best fixed list over all worlds so far."""
    n_worlds, m, n = params.clicks.shape
    if n_worlds == 1:
        return state.counts[0] * params.best[0]
    total = np.zeros((m, n))
    for world in range(n_worlds):
        if state.counts[world] > 0:
            total += state.counts[world] * params.clicks[world]
    return best_list(total, np.empty(m, np.int64))


@kernel
def count_worlds(params: Any, state: Any, rounds: Any, counts: Any) -> None:
    """How many of the first rounds since the start were in each world, for each of `rounds`, which rise."""
    seen = np.zeros(len(params.best), np.int64)
    t = state.start[0]
    for i in range(len(rounds)):
        while t - state.start[0] < rounds[i]:
            seen[_world_at(params, state.key[0], t)] += 1
            t += 1
        counts[i] = seen


@kernel
def best_lists(clicks: Any, lists: Any, best: Any) -> None:
    """The best list of each world and its value."""
    for world in range(len(clicks)):
        best[world] = best_list(clicks[world], lists[world])
