"""Distributions of outcomes near a wall, where two actions are almost equally good: worlds that are hard to learn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.games.game import Game
from rankloop.games.verdict import CellWitness, Verdict


def near_wall(
    game: Game, verdict: Verdict, share: float, *, wall: int | None = 0, side: int = 0
) -> NDArray[np.float64]:
    """A world on the wall between two neighbours, mixed with outcomes in which one of them is better by the most.

    Parameters
    ----------
    game : Game
        The game.
    verdict : Verdict
        What `classify(game, route="cells")` said of it.
    share : float
        The share of these outcomes: at 0 the two are equally good, and better than all others.
    wall : int, optional
        Which pair of neighbours, in the order of `verdict.neighbours`; None begins at the mean of all walls instead,
        where in symmetric games all actions are equally good, and takes the first pair.
    side : int, optional
        Which of the two is better, 0 or 1.

    Returns
    -------
    ndarray of float
        The chance of each outcome.

    Examples
    --------
    >>> from rankloop import games
    >>> game = games.zoo.apple_tasting()
    >>> near_wall(game, games.classify(game), 0.5).tolist()
    [0.25, 0.75]
    """
    witness = verdict.witness
    if not isinstance(witness, CellWitness) or not verdict.neighbours:
        raise ValueError(f"verdict must be about cells, and some of them neighbours, got {verdict!r}")
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, got {share!r}")
    number = whole("wall", 0 if wall is None else wall, at_least=0, at_most=len(verdict.neighbours) - 1)
    pair = verdict.neighbours[number]
    better = whole("side", side, at_least=0, at_most=1)
    lead = game.difference(pair[1 - better], pair[better])
    far = (lead == lead.max()).astype(np.float64)
    points = [witness.walls[pair]] if wall is not None else list(witness.walls.values())
    start = np.array([[x / sum(point) for x in point] for point in points]).mean(axis=0)
    world: NDArray[np.float64] = (1 - share) * start + share * far / far.sum()
    return world
