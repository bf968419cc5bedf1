"""What all click environments share: click probabilities by position and item, and the present world."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers
from rankloop.base import Ranking
from rankloop.compiled import CompiledEnvironment, EnvironmentKernels
from rankloop.kernels.environments import click_worlds as kernels
from rankloop.kernels.solvers.assignment import best_list
from rankloop.kernels.solvers.ties import in_order


class ClickWorlds(CompiledEnvironment):
    """Users who click each shown position independently; which world they come from may change with the round.

    A subclass gives the probabilities of its worlds, worlds x positions x items, and when each applies: in turn
    for `phase` rounds each, or, where `phase` is 0, world 1 in a `share` of the rounds, drawn at random, and else
    world 0.

    The value of a list is its expected clicks. `best()` is the best fixed list over the whole schedule, `hindsight()`
    the value of the best fixed list over the rounds played, `ideal(rounds)` the value of showing the best list of
    each round's own world.
    """

    reveals: ClassVar[str] = "clicks"
    measure = "clicks"
    is_loss = False
    max_grade = 1
    n_items: int
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

    @property
    def world(self) -> int:
        """The world that the present user comes from, counted from 0."""
        return int(self.state.world[0])

    def best(self, context: Any = None) -> Ranking:
        """The best fixed list: in expectation, each world as often as the schedule has it."""
        shares = np.full(len(self.clicks), 1 / len(self.clicks))
        if self.params.phase == 0:
            shares = np.array([1 - self.params.share, self.params.share])
        items = np.empty(self.n_positions, np.int64)
        mean = np.tensordot(shares, self.clicks, axes=1)
        best_list(mean, items)
        return Ranking(in_order(mean, items))

    def ideal(self, rounds: ArrayLike) -> NDArray[np.float64]:
        """Value of the best list of each round's world, over the first `rounds` rounds since `start_counting`.

        `play` starts the counting, so `environment.ideal(trace.rounds) - trace.total` is the regret against the best
        list of each phase. It is exact, with the same worlds in the same rounds. Where worlds are drawn, `rounds` must
        not exceed the rounds played.
        """
        given = numbers("rounds", rounds)
        if not ((given >= 0) & (given < 2**53) & (given == np.floor(given))).all():
            raise ValueError(f"rounds must be whole numbers of at least 0, got {rounds!r}")
        wanted = given.astype(np.int64)
        played = int(self.state.t[0] - self.state.start[0])
        if self.params.phase > 0:
            start = self.state.start[0]
            counts = self._turns(start + wanted) - self._turns(start)
        elif wanted.max(initial=0) > played:
            raise ValueError(f"rounds must be at most the {played} that were played, got {rounds!r}")
        else:
            rising, place = np.unique(wanted, return_inverse=True)
            counts = np.empty((len(rising), len(self.clicks)), np.int64)
            kernels.count_worlds(self.params, self.state, rising, counts)
            counts = counts[place].reshape(*wanted.shape, -1)
        total: NDArray[np.float64] = counts @ self.params.best
        return total

    def _turns(self, t: NDArray[np.int64]) -> NDArray[np.int64]:
        # How many of the rounds before t are in each world, the last axis: whole cycles, and what of one is left.
        n_worlds, phase = len(self.clicks), self.params.phase
        cycles, rest = np.divmod(t[..., None], n_worlds * phase)
        turns: NDArray[np.int64] = cycles * phase + np.clip(rest - phase * np.arange(n_worlds), 0, phase)
        return turns

    def start_counting(self) -> None:
        self.state.counts[...] = 0
        self.state.start[...] = self.state.t
