"""A world in which some of the users click misleadingly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np

from rankloop.arguments import shares
from rankloop.environments.click_matrix import ClickMatrix
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.environments.periodic import one_world, stacked
from rankloop.environments.position_based import PositionBased


class Corrupted(ClickWorlds):
    """Each user comes from the world `against` with probability `share`, and otherwise from `world`.

    Parameters
    ----------
    world : ClickMatrix
        Who comes mostly.
    against : ClickMatrix, optional
        Who comes to mislead; None takes `world` with items and positions turned round.
    share : float, optional
        How many of the rounds are theirs, between 0 and 1.

    Notes
    -----
    Which rounds these are is drawn at the start and does not depend on what is shown. The value of a list is the clicks
    that it is expected to get from the present user, misleading or not.

    Examples
    --------
    >>> people = Corrupted(PositionBased(attraction=[0.9, 0.5, 0.1], examination=[1.0, 0.5]), share=0.1)
    >>> people.best().items
    array([0, 1])
    """

    def __init__(self, world: ClickMatrix, *, against: ClickMatrix | None = None, share: float = 0.1) -> None:
        foe = one_world("world", world).reversed() if against is None else one_world("against", against)
        part = shares("share", share, n_axes=0)
        if foe.clicks.shape != world.clicks.shape:
            raise ValueError(
                f"against must agree with world in positions and items {world.clicks.shape[1:]}, "
                f"got {foe.clicks.shape[1:]}"
            )
        super().__init__(stacked([world, foe]), phase=0, share=float(part))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        world = PositionBased(attraction=[0.9, 0.1, 0.5, 0.6, 0.3], examination=[1.0, 0.5, 0.2])
        yield cls(world, share=0.3)
        yield cls(world, share=0.0)
        matrices = np.random.default_rng(1).random((2, 3, 3))
        yield cls(ClickMatrix(matrices[0]), against=ClickMatrix(matrices[1]), share=0.5)
