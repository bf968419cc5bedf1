"""What the methods have in common: rankings in, a list and its credits out."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, whole
from rankloop.feedback.revealed import Clicks

Rankings = Sequence[ArrayLike]
MOST_LISTS = 1_000_000  # that `distribution` enumerates


@dataclass(frozen=True, slots=True, eq=False)
class Multileaved:
    """A list made from several rankings, and what clicks on it are worth.

    Parameters
    ----------
    items : ndarray of int
        The items to show, best position first.
    credits : ndarray of float
        What a click is worth: a row for each ranker, a column for each position.
    """

    items: NDArray[np.int64]
    credits: NDArray[np.float64]

    def credit(self, clicks: ArrayLike) -> NDArray[np.float64]:
        """The credit of each ranker.

        Parameters
        ----------
        clicks : array_like
            1 for each clicked position, 0 for the others.

        Returns
        -------
        ndarray of float
            One number for each ranker, in the order in which the rankings were given.
        """
        return self.credits @ Clicks().check(clicks, len(self.items))

    def preferences(self, clicks: ArrayLike) -> NDArray[np.int64]:
        """Which ranker the clicks prefer, for each pair.

        Parameters
        ----------
        clicks : array_like
            1 for each clicked position, 0 for the others.

        Returns
        -------
        ndarray of int
            Row i, column j: 1 where ranker i got more credit than ranker j, -1 where less, 0 where both got the same.
        """
        credit = self.credit(clicks)
        signs: NDArray[np.int64] = np.sign(credit[:, None] - credit).astype(np.int64)
        return signs

    def save(self) -> dict[str, NDArray[Any]]:
        """The list and its credits as named arrays, ready for `np.savez`: clicks may come later.

        Returns
        -------
        dict of str to numpy.ndarray
            What `load` takes.
        """
        return {"items": self.items, "credits": self.credits}

    @classmethod
    def load(cls, saved: Mapping[str, NDArray[Any]]) -> Multileaved:
        """The list that `save` wrote.

        Parameters
        ----------
        saved : mapping of str to numpy.ndarray
            What `save` gave.

        Returns
        -------
        Multileaved
            The same list, with the same credits.

        Raises
        ------
        ValueError
            Where it is something else.
        """
        for name in ("items", "credits"):
            if name not in saved:
                raise ValueError(f"saved list has no {name!r}, only {sorted(saved)}")
        items = read_ranking("items", saved["items"])
        worth = numbers("credits", saved["credits"])
        if worth.ndim != 2 or worth.shape[1] != len(items) or not np.isfinite(worth).all():
            raise ValueError(
                f"credits must be finite, rankers x {len(items)} positions, got {saved['credits']!r}"
            )
        return cls(items, worth)


class Distribution(NamedTuple):
    """Every list that may be shown, and its exact probability.

    Parameters
    ----------
    lists : ndarray of int
        A row of items for each list.
    probabilities : ndarray of float
        One for each list; they add up to 1.
    """

    lists: NDArray[np.int64]
    probabilities: NDArray[np.float64]


class Multileaving(abc.ABC):
    """A way to make one list from several rankings."""

    @abc.abstractmethod
    def show(
        self, rankings: Rankings, *, n_positions: int | None = None, rng: np.random.Generator
    ) -> Multileaved:
        """Make a list from the rankings.

        Parameters
        ----------
        rankings : sequence of array_like
            One list of item numbers for each ranker, best first. They may hold different items.
        n_positions : int, optional
            The length of the list to show; by default that of the shortest ranking, which is also the most.
        rng : numpy.random.Generator
            Where the randomness comes from.

        Returns
        -------
        Multileaved
            The items to show, and what a click at each position is worth to each ranker.
        """

    @abc.abstractmethod
    def distribution(self, rankings: Rankings, *, n_positions: int | None = None) -> Distribution:
        """The exact probability of each list that `show` may make, by enumeration: for short lists.

        Parameters
        ----------
        rankings : sequence of array_like
            One list of item numbers for each ranker, best first.
        n_positions : int, optional
            The length of the list to show; by default that of the shortest ranking.

        Returns
        -------
        Distribution
            The lists in rising order, and their probabilities.
        """

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"


def read_rankings(rankings: Any, n_positions: Any) -> tuple[list[NDArray[np.int64]], int]:
    """The rankings as arrays, and how many positions are to be filled; ValueError if they are anything else."""
    if isinstance(rankings, str | bytes) or not isinstance(rankings, Iterable):
        raise ValueError(f"rankings must be a list of rankings, got {rankings!r}")
    lists = [read_ranking(f"rankings[{i}]", ranking) for i, ranking in enumerate(rankings)]
    if not lists:
        raise ValueError(f"rankings must hold at least one ranking, got {rankings!r}")
    shortest = min(map(len, lists))
    if n_positions is None:
        return lists, shortest
    return lists, whole("n_positions", n_positions, at_least=1, at_most=shortest)


def read_ranking(name: str, given: Any) -> NDArray[np.int64]:
    """One list of item numbers."""
    items = numbers(name, given)
    if items.ndim != 1 or not len(items):
        raise ValueError(f"{name} must be a list of item numbers, best first, got {given!r}")
    if not ((items >= 0) & (items == np.floor(items)) & (items < 2.0**53)).all():
        raise ValueError(f"{name} must hold whole numbers from 0 on, got {given!r}")
    if len(np.unique(items)) != len(items):
        raise ValueError(f"{name} must not hold an item twice, got {given!r}")
    return items.astype(np.int64)


def ranks(lists: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All items, rising, and by ranker and item the rank from 1; an item that a ranking lacks comes after its last."""
    items = np.unique(np.concatenate(lists))
    table = np.array([np.full(len(items), len(order) + 1) for order in lists])
    for row, order in zip(table, lists, strict=True):
        row[np.searchsorted(items, order)] = np.arange(1, len(order) + 1)
    return items, table


def collected(chances: Mapping[tuple[int, ...], float]) -> Distribution:
    """The lists in rising order, with their probabilities."""
    lists = sorted(chances)
    return Distribution(np.array(lists, np.int64), np.array([chances[items] for items in lists]))


def check_few(n_lists: float) -> None:
    """ValueError where enumerating would take too long."""
    if n_lists > MOST_LISTS:
        raise ValueError(
            f"distribution enumerates at most {MOST_LISTS:,} lists, here are up to {n_lists:.3g}"
        )
