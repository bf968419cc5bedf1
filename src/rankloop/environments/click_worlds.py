"""Click environments without a model of the user: click probabilities by position and item, in each world."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranking
from rankloop.compiled import EnvironmentKernels
from rankloop.environments.scheduled_worlds import ScheduledWorlds
from rankloop.kernels.environments import click_worlds as kernels
from rankloop.kernels.solvers.assignment import best_list
from rankloop.kernels.solvers.ties import in_order


class ClickWorlds(ScheduledWorlds):
    """Users who click each shown position independently; which world they come from may change with the round.

    A subclass gives the probabilities of its worlds, worlds x positions x items, and when each applies: in turn
    for `phase` rounds each, or, where `phase` is 0, world 1 in a `share` of the rounds, drawn at random, and else
    world 0.

    The value of a list is its expected clicks. `best()` is the best fixed list over the whole schedule, `hindsight()`
    the value of the best fixed list over the rounds played, `ideal(rounds)` the value of showing the best list of
    each round's own world.
    """

    params: kernels.ClickParams
    state: kernels.ClickState
    kernels = EnvironmentKernels(kernels.arrive, kernels.respond, kernels.value, kernels.hindsight)

    def __init__(self, clicks: NDArray[np.float64], *, phase: int = 1, share: float = 0.0) -> None:
        n_worlds, self.n_positions, self.n_items = clicks.shape
        self.best_lists = np.empty((n_worlds, self.n_positions), np.int64)  # the best list of each world
        best = np.empty(n_worlds)
        kernels.best_lists(clicks, self.best_lists, best)
        self.params = kernels.ClickParams(clicks, best, phase, share)
        self.state = kernels.ClickState(
            t=np.zeros(1, np.int64),
            start=np.zeros(1, np.int64),
            key=np.zeros(1, np.uint64),
            world=np.zeros(1, np.int64),
            counts=np.zeros(n_worlds, np.int64),
        )

    @property
    def clicks(self) -> NDArray[np.float64]:
        """The probability of a click, worlds x positions x items."""
        return self.params.clicks

    def best(self, context: Any = None) -> Ranking:
        """The best fixed list: in expectation, each world as often as the schedule has it."""
        items = np.empty(self.n_positions, np.int64)
        mean = np.tensordot(self.shares, self.clicks, axes=1)
        best_list(mean, items)
        return Ranking(in_order(mean, items))
