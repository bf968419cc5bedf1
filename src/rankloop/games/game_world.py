"""GameWorld: the other side of a finite game, for `simulation.play`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, whole
from rankloop.base import Ranking
from rankloop.compiled import CompiledEnvironment, EnvironmentKernels
from rankloop.games.arrays import game_arrays
from rankloop.games.game import Game
from rankloop.games.ranking_game import RankingGame, ranking_game
from rankloop.games.zoo import apple_tasting
from rankloop.kernels.environments import finite_game as kernels


class GameWorld(CompiledEnvironment):
    """Outcomes of a finite game, listed or drawn, and the signals of what is played.

    Parameters
    ----------
    game : Game
        The game; of a ranking game at most 4 items.
    outcomes : array_like, optional
        The numbers of the outcomes, one a round.
    chances : array_like, optional
        The chance of each outcome; or one row of chances for each of several worlds, which take turns.
    period : int, optional
        How many rounds each of these worlds lasts.

    Examples
    --------
    >>> from rankloop import games, simulation
    >>> game = games.zoo.apple_tasting()
    >>> world = games.GameWorld(game, chances=[0.7, 0.3])
    >>> trace = simulation.play(games.Player(game), world, rounds=1000, seed=1)
    >>> bool(trace.total_regret < 100)
    True
    """

    reveals: ClassVar[str] = "signal"
    kernels = EnvironmentKernels(kernels.arrive, kernels.respond, kernels.value, kernels.hindsight)
    measure = "loss"
    is_loss = True
    n_items: int

    def __init__(
        self,
        game: Game,
        *,
        outcomes: ArrayLike | None = None,
        chances: ArrayLike | None = None,
        period: int = 1_000,
    ) -> None:
        arrays = game_arrays(game)
        k, d = arrays.loss.shape
        if (outcomes is None) == (chances is None):
            raise ValueError("give either outcomes or chances")
        listed, phases = np.empty(0, np.int64), np.ones((1, 1))
        if outcomes is not None:
            given = numbers("outcomes", outcomes)
            if given.ndim != 1 or not len(given) or not np.isin(given, np.arange(d)).all():
                raise ValueError(f"outcomes must be numbers from 0 to {d - 1}, one a round, got {outcomes!r}")
            listed = given.astype(np.int64)
        else:
            phases = _distributions(chances, d)
        self.game, self.chances = game, phases
        self.n_items = game.n_items if isinstance(game, RankingGame) else k
        self.n_positions = arrays.orders.shape[1]
        self.max_grade = int(np.diff(arrays.first).max()) - 1
        self.orders = arrays.orders
        self.params = kernels.GameParams(
            arrays.loss,
            arrays.first,
            arrays.chance,
            listed,
            np.cumsum(phases, axis=1),
            whole("period", period, at_least=1),
        )
        self.state = kernels.GameState(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(k))

    @property
    def remaining(self) -> int | None:
        n = len(self.params.listed)
        return n - int(self.state.t[0]) if n else None

    def arrive(self, *, rng: np.random.Generator) -> None:
        if self.remaining == 0:
            raise ValueError("all outcomes of the list have come; restart() begins again")
        super().arrive(rng=rng)

    def start_counting(self) -> None:
        self.state.totals[:] = 0

    def best(self, context: Any = None) -> Ranking:
        """The best fixed action: over the whole list of outcomes, or in expectation over all worlds."""
        n = len(self.params.listed)
        shares = (
            np.bincount(self.params.listed, minlength=self.params.loss.shape[1])
            if n
            else self.chances.sum(axis=0)
        )
        return Ranking(self.orders[int(np.argmin(self.params.loss @ shares))].copy())

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(apple_tasting(), chances=[0.4, 0.6])
        yield cls(ranking_game(measure="dcg", n_items=3, k=1), chances=np.eye(8)[[1, 6]], period=3)
        yield cls(apple_tasting(), outcomes=np.arange(200) % 2)


def _distributions(chances: Any, n_outcomes: int) -> NDArray[np.float64]:
    rows = np.atleast_2d(numbers("chances", chances))
    if rows.ndim != 2 or rows.shape[1] != n_outcomes or not len(rows):
        raise ValueError(
            f"chances must be {n_outcomes} numbers for each world, got shape {np.shape(chances)}"
        )
    if not np.isfinite(rows).all() or (rows < 0).any() or (np.abs(rows.sum(axis=1) - 1) > 1e-9).any():
        raise ValueError(f"chances must not be negative and sum to 1 in each world, got {chances!r}")
    return rows
