"""A world of clicks without a click model: a probability for each position and item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import shares
from rankloop.environments.click_worlds import ClickWorlds


class ClickMatrix(ClickWorlds):
    """Users who click item i at position j with probability `probabilities[j][i]`, whatever else is shown.

    Parameters
    ----------
    probabilities : array_like
        Positions x items; no more positions than items.

    Examples
    --------
    >>> people = ClickMatrix([[0.5, 0.4, 0.1], [0.4, 0.1, 0.0]])
    >>> people.best().items, round(people.ideal(1000).item())
    (array([1, 0]), 800)
    """

    def __init__(self, probabilities: ArrayLike) -> None:
        chances = shares("probabilities", probabilities, n_axes=2)
        if len(chances) > chances.shape[1]:
            raise ValueError(
                f"probabilities must have no more positions than items, got {len(chances)} x {chances.shape[1]}"
            )
        super().__init__(chances[None])

    def reversed(self) -> ClickMatrix:
        """The same world with items and positions in the opposite order."""
        return ClickMatrix(self.clicks[0, ::-1, ::-1])

    def exchanged(self) -> ClickMatrix:
        """The same world with the items of the two halves exchanged; of an odd number the middle item stays."""
        return ClickMatrix(self.clicks[0][:, halves_exchanged(self.n_items)])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        rng = np.random.default_rng(1)
        yield cls(rng.random((3, 5)))
        yield cls(rng.random((4, 4)))
        yield cls([[0.0]])


def halves_exchanged(n_items: int) -> NDArray[np.int64]:
    """For each index, the item that takes it when the halves are exchanged.

    >>> halves_exchanged(4), halves_exchanged(5)
    (array([2, 3, 0, 1]), array([3, 4, 2, 0, 1]))
    """
    items = np.arange(n_items)
    half = n_items // 2
    return np.concatenate([items[n_items - half :], items[half : n_items - half], items[:half]])
