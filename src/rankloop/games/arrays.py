"""A game as arrays of floats for kernels, each number rounded once from a fraction."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.games.game import Game
from rankloop.games.ranking_game import RankingGame
from rankloop.games.rationals import RowSpace, Whole

_MOST_ACTIONS, _MOST_OUTCOMES, _MOST_SIGNALS = 64, 256, 2_048


class GameArrays(NamedTuple):
    """What is shown for each action, what it loses, and the chance of each of its signals."""

    orders: NDArray[np.int64]
    loss: NDArray[np.float64]  # [action, outcome]
    first: NDArray[np.int64]  # of each action, its first row; and the number of rows
    chance: NDArray[np.float64]  # [row, outcome]


def game_arrays(game: Game) -> GameArrays:
    """The arrays; a ValueError where the game is too large to be played."""
    if isinstance(game, RankingGame) and game.n_items > 4:
        raise ValueError(
            f"a ranking game of n_items={game.n_items} is too large to be played: at most 4 items, 24 orders"
        )
    seen = game.observations
    first = np.cumsum([0, *(len(symbols) for symbols in seen.symbols)])
    if game.n_actions > _MOST_ACTIONS or game.n_outcomes > _MOST_OUTCOMES or first[-1] > _MOST_SIGNALS:
        raise ValueError(
            f"a game of {game.n_actions} actions, {game.n_outcomes} outcomes and {first[-1]} signals is too large to "
            f"be played: at most {_MOST_ACTIONS}, {_MOST_OUTCOMES} and {_MOST_SIGNALS}"
        )
    orders = game.orders if isinstance(game, RankingGame) else [(a,) for a in range(game.n_actions)]
    rows = stacked(game)
    chance = np.array([[int(entry) / seen.scale for entry in row] for row in rows])
    return GameArrays(np.array(orders, dtype=np.int64), game.loss, first.astype(np.int64), chance)


def stacked(game: Game) -> NDArray[np.int64]:
    """The signal matrices of all actions, one above the other, times the scale of the observations."""
    return np.concatenate([game.observations.matrix(a) for a in range(game.n_actions)])


def coordinates(game: Game, choices: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All signals, and what each choice loses beyond the first, in coordinates of what can be seen.

    Losses are in units of their range. The game must be globally observable.
    """
    rows = stacked(game)
    space = RowSpace(rows)
    c = [_rounded(space.coefficients(row), Fraction(1)) for row in rows.astype(object)]
    unit = Fraction(game.observations.scale, spread(game.whole))
    targets = [_rounded(space.coefficients(game.difference(b, choices[0])), unit) for b in choices]
    return np.array(c), np.array(targets)


def spread(losses: Whole) -> int:
    """The largest loss less the smallest, in units; 1 where all are equal."""
    return int(losses.max() - losses.min()) or 1


def _rounded(values: list[Fraction] | None, unit: Fraction) -> list[float]:
    assert values is not None, "a difference of losses that cannot be seen"
    return [float(value * unit) for value in values]
