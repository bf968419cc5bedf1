"""Worlds that alternate: the oblivious adversary of the 2022 experiments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.environments.click_matrix import ClickMatrix
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.environments.position_based import PositionBased


class Periodic(ClickWorlds):
    """Every `phase` rounds the next world begins; after the last, the first again.

    Parameters
    ----------
    worlds : sequence of ClickMatrix
        `ClickMatrix`, `PositionBased` and the like, all with as many positions and items.
    phase : int, optional
        Rounds before the next world.

    Examples
    --------
    >>> morning = PositionBased(attraction=[0.9, 0.5, 0.1], examination=[1.0, 0.5])
    >>> people = Periodic([morning, morning.reversed()], phase=1000)
    >>> people.best_lists
    array([[0, 1],
           [1, 2]])
    """

    def __init__(self, worlds: Sequence[ClickMatrix], *, phase: int = 100_000) -> None:
        super().__init__(stacked(worlds), phase=whole("phase", phase, at_least=1))

    @classmethod
    def exchanging(cls, world: ClickMatrix, *, phase: int = 100_000) -> Self:
        """The first periodic world of 2022: the halves of the items change places, positions stay as they are.

        Parameters
        ----------
        world : ClickMatrix
            The world of the odd phases.
        phase : int, optional
            Rounds in a phase.

        Returns
        -------
        Periodic
            The changing world.
        """
        return cls([world, one_world("world", world).exchanged()], phase=phase)

    @classmethod
    def reversing(cls, world: ClickMatrix, *, phase: int = 100_000) -> Self:
        """The second periodic world of 2022: items and positions are reversed, so the best item belongs last.

        Parameters
        ----------
        world : ClickMatrix
            The world of the odd phases.
        phase : int, optional
            Rounds in a phase.

        Returns
        -------
        Periodic
            The changing world.
        """
        return cls([world, one_world("world", world).reversed()], phase=phase)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        world = PositionBased(attraction=[0.9, 0.1, 0.5, 0.6, 0.3], examination=[1.0, 0.5, 0.2])
        yield cls.exchanging(world, phase=7)
        yield cls.reversing(world, phase=30)
        matrices = np.random.default_rng(1).random((3, 4, 4))
        yield cls([ClickMatrix(matrix) for matrix in matrices], phase=1)
        yield cls([world], phase=3)


def one_world(name: str, given: ClickMatrix) -> ClickMatrix:
    """`given`, or a ValueError unless it is a world that does not change."""
    if not isinstance(given, ClickMatrix):
        raise ValueError(f"{name} must be a world that does not change, such as PositionBased, got {given!r}")
    return given


def stacked(worlds: Sequence[ClickMatrix]) -> NDArray[np.float64]:
    """The probabilities of all `worlds`, worlds x positions x items."""
    if not isinstance(worlds, Sequence) or len(worlds) == 0:
        raise ValueError(f"worlds must be a list of at least one world, got {worlds!r}")
    shapes = [one_world(f"worlds[{i}]", world).clicks.shape[1:] for i, world in enumerate(worlds)]
    if len(set(shapes)) > 1:
        raise ValueError(f"worlds must agree in positions and items, got {shapes}")
    return np.concatenate([world.clicks for world in worlds])
