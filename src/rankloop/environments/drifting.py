"""Slow change: two populations of users, and the share of the second rises and falls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np

from rankloop.arguments import whole
from rankloop.environments.click_matrix import ClickMatrix
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.environments.periodic import one_world, stacked
from rankloop.environments.position_based import PositionBased


class Drifting(ClickWorlds):
    """Two populations of users: at first only those of `world`, `steps` phases later only those of `to`, then back.

    Parameters
    ----------
    world : ClickMatrix
        The first population.
    to : ClickMatrix, optional
        The second; None takes `world` with items and positions reversed.
    steps : int, optional
        How many phases it takes from the one to the other. In phase k a user is of the second population with
        probability k / steps.
    phase : int, optional
        Rounds before the share moves on. There and back takes 2 * steps * phase rounds.

    Notes
    -----
    The value of a list is its expected clicks from a user of either population, mixed as in that phase: the population
    of a single user is not part of the truth. Even where both populations follow the position-based model,
    their mixture does not. Every phase keeps its own probabilities, 2 * steps * positions * items numbers.

    Examples
    --------
    >>> people = Drifting(PositionBased(attraction=[0.9, 0.5, 0.1], examination=[1.0]), steps=3, phase=1000)
    >>> people.clicks[:, 0].round(2)
    array([[0.9 , 0.5 , 0.1 ],
           [0.63, 0.5 , 0.37],
           [0.37, 0.5 , 0.63],
           [0.1 , 0.5 , 0.9 ],
           [0.37, 0.5 , 0.63],
           [0.63, 0.5 , 0.37]])
    """

    def __init__(
        self, world: ClickMatrix, *, to: ClickMatrix | None = None, steps: int = 50, phase: int = 10_000
    ) -> None:
        target = one_world("world", world).reversed() if to is None else one_world("to", to)
        if target.clicks.shape != world.clicks.shape:
            raise ValueError(
                f"to must agree with world in positions and items {world.clicks.shape[1:]}, "
                f"got {target.clicks.shape[1:]}"
            )
        steps = whole("steps", steps, at_least=1)
        there = np.arange(steps + 1) / steps
        shares = np.concatenate([there, there[-2:0:-1]])[:, None, None]
        first, second = stacked([world, target])
        super().__init__((1 - shares) * first + shares * second, phase=whole("phase", phase, at_least=1))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        world = PositionBased(attraction=[0.9, 0.1, 0.5, 0.6, 0.3], examination=[1.0, 0.5, 0.2])
        yield cls(world, steps=4, phase=5)
        yield cls(world, to=world.exchanged(), steps=1, phase=20)
