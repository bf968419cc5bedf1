"""What all click environments share: worlds that come by a schedule, and the value of the best list of each."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers
from rankloop.compiled import CompiledEnvironment
from rankloop.kernels.environments import click_worlds


class ScheduledWorlds(CompiledEnvironment):
    """Users who click, on lists of the same items; which world they come from may change with the round.

    `params` has `best`, the value of the best list of each world, `phase` and `share`: worlds come in turn for
    `phase` rounds each, or, where `phase` is 0, world 1 in a `share` of the rounds, drawn at random, and else world 0.
    `state` is what `click_worlds.arrive` writes.
    """

    reveals: ClassVar[str] = "clicks"
    measure = "clicks"
    is_loss = False
    max_grade = 1
    n_items: int
    params: Any

    @property
    def n_worlds(self) -> int:
        """How many worlds there are."""
        return len(self.params.best)

    @property
    def shares(self) -> NDArray[np.float64]:
        """How large a part of the rounds the schedule gives each world, in the long run."""
        if self.params.phase == 0:
            return np.array([1 - self.params.share, self.params.share])
        return np.full(self.n_worlds, 1 / self.n_worlds)

    @property
    def world(self) -> int:
        """The world that the present user comes from, counted from 0."""
        return int(self.state.world[0])

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
            counts = np.empty((len(rising), self.n_worlds), np.int64)
            click_worlds.count_worlds(self.params, self.state, rising, counts)
            counts = counts[place].reshape(*wanted.shape, -1)
        total: NDArray[np.float64] = counts @ self.params.best
        return total

    def _turns(self, t: NDArray[np.int64]) -> NDArray[np.int64]:
        # How many of the rounds before t are in each world, the last axis: whole cycles, and what of one is left.
        n_worlds, phase = self.n_worlds, self.params.phase
        cycles, rest = np.divmod(t[..., None], n_worlds * phase)
        turns: NDArray[np.int64] = cycles * phase + np.clip(rest - phase * np.arange(n_worlds), 0, phase)
        return turns

    def start_counting(self) -> None:
        self.state.counts[...] = 0
        self.state.start[...] = self.state.t
