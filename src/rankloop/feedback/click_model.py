"""What a click model is: a chance for every way in which a user can click on a list."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, shares, whole
from rankloop.feedback.browsing import Browsing

Chances = NDArray[np.float64]


class ClickModel(abc.ABC):
    """How users click on a list of items, position by position.

    Every model knows how attractive each item is: the chance that a user who looks at it clicks. Models differ in who
    looks where. `items` lists item numbers by position, best first: all n items or any m of them. Many lists can be
    given at once, as an array whose last axis is the position; what comes back has the same shape.
    """

    attraction: Chances
    n_positions: int | None = None  # the longest list it knows about; None for any

    @property
    def n_items(self) -> int:
        """How many items there are to show."""
        return len(self.attraction)

    def click(self, items: ArrayLike, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """One user's clicks on each list: 1 for each clicked position, 0 for the others.

        Parameters
        ----------
        items : array_like
            Item numbers by position; axes before the last are lists side by side.
        rng : numpy.random.Generator
            Where the randomness comes from.

        Returns
        -------
        ndarray of int
            The clicks, shaped like `items`.
        """
        return self._draw(self._checked(items), rng).astype(np.int64)

    def click_probabilities(self, items: ArrayLike) -> Chances:
        """The exact chance of a click at each position, whatever happens at the others.

        Parameters
        ----------
        items : array_like
            Item numbers by position; axes before the last are lists side by side.

        Returns
        -------
        ndarray of float
            The probabilities, shaped like `items`.
        """
        return self._marginals(self._checked(items))

    def likelihood(self, items: ArrayLike, clicks: ArrayLike) -> Chances:
        """The exact chance that a list is clicked just so: `clicks` has 0 or 1 for each position.

        Parameters
        ----------
        items : array_like
            Item numbers by position; axes before the last are lists side by side.
        clicks : array_like
            0 or 1 for each position.

        Returns
        -------
        ndarray of float
            One probability for each list.
        """
        shown = self._checked(items)
        given = numbers("clicks", clicks)
        if given.shape[-1:] != shown.shape[-1:] or not np.isin(given, (0.0, 1.0)).all():
            raise ValueError(f"clicks must be 0 or 1 for each of {shown.shape[-1]} positions, got {clicks!r}")
        try:
            shown, given = np.broadcast_arrays(shown, given)
        except ValueError:
            raise ValueError(f"clicks have shape {given.shape}, items {shown.shape}") from None
        return self._likelihood(shown, given.astype(np.bool_))

    def browsing(self, n_positions: int) -> Browsing:
        """The model as tables, for worlds in the compiled loop.

        Parameters
        ----------
        n_positions : int
            The length of the lists that will be shown.

        Returns
        -------
        Browsing
            Who looks where, clicks on what and stops when.

        Raises
        ------
        ValueError
            Where the model knows fewer positions.
        """
        m = whole("n_positions", n_positions, at_least=1)
        if self.n_positions is not None and m > self.n_positions:
            raise ValueError(f"n_positions must be at most {self.n_positions}, as the model has, got {m}")
        return self._browsing(m)

    @abc.abstractmethod
    def _browsing(self, m: int) -> Browsing:
        """As `browsing`, of a number that was checked."""

    @abc.abstractmethod
    def _draw(self, items: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        """As `click`, of lists that were checked."""

    @abc.abstractmethod
    def _marginals(self, items: NDArray[np.int64]) -> Chances:
        """As `click_probabilities`, of lists that were checked."""

    @abc.abstractmethod
    def _likelihood(self, items: NDArray[np.int64], clicks: NDArray[np.bool_]) -> Chances:
        """As `likelihood`, of lists and clicks that were checked."""

    def _checked(self, items: ArrayLike) -> NDArray[np.int64]:
        given = numbers("items", items)
        if given.ndim == 0 or given.shape[-1] == 0:
            raise ValueError(f"items must be a list of item numbers, best position first, got {items!r}")
        if not (np.isfinite(given).all() and (given == np.floor(given)).all()):
            raise ValueError(f"items must be whole numbers, got {items!r}")
        if given.size and not 0 <= given.min() <= given.max() < self.n_items:
            raise ValueError(f"items must be numbers from 0 to {self.n_items - 1}, got {items!r}")
        if self.n_positions is not None and given.shape[-1] > self.n_positions:
            raise ValueError(f"items must fill at most {self.n_positions} positions, got {given.shape[-1]}")
        if (np.diff(np.sort(given, axis=-1), axis=-1) == 0).any():
            raise ValueError(f"items must be different items, got {items!r}")
        return given.astype(np.int64)


def chances(name: str, values: Any, *, ndim: int = 1) -> Chances:
    """`values` as a frozen array of probabilities, or a ValueError that names the argument."""
    array = shares(name, values, n_axes=ndim)
    array.setflags(write=False)
    return array
