"""Means over lists that explore, of a number by position: what an estimate of whole lists needs, kept between calls."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import exploring_lists

Floats = NDArray[np.float64]


class ByPlace(NamedTuple):
    """Of a number by position: what the item at each place of the greedy order gets.

    greedy, exploring: quantities x places, in lists in that order, and on average in lists that explore. The two
    others are their sums up to, not including, each place.
    """

    greedy: Floats
    exploring: Floats
    greedy_sums: Floats
    exploring_sums: Floats

    def mean(self, scores: Floats, items: Iterable[int], gamma: float) -> Floats:
        """What items get on average, where equal scores are in every order equally likely.

        Parameters
        ----------
        scores : ndarray of float
            By item; the greedy order has the largest first.
        items : iterable of int
            The items that it is wanted for.
        gamma : float
            The share of lists that explore.

        Returns
        -------
        ndarray of float
            Quantities x items.
        """
        found = []
        for item in items:
            score = scores[item]
            first = int(np.count_nonzero(scores > score))
            alike = int(np.count_nonzero(scores == score))
            if alike == 1:
                found.append((1 - gamma) * self.greedy[:, first] + gamma * self.exploring[:, first])
            else:
                greedy = self.greedy_sums[:, first + alike] - self.greedy_sums[:, first]
                exploring = self.exploring_sums[:, first + alike] - self.exploring_sums[:, first]
                found.append(((1 - gamma) * greedy + gamma * exploring) / alike)
        return np.array(found).T


def by_place(by_position: Floats, *, kept: int, drawn: int) -> ByPlace:
    """What the item at each place of the greedy order gets; the same is kept for the next call.

    Parameters
    ----------
    by_position : ndarray of float
        Quantities x positions.
    kept : int
        How many positions from the top an exploring list leaves as they are.
    drawn : int
        How many positions after them are drawn at random; those behind stay in greedy order.

    Returns
    -------
    ByPlace
        For lists in greedy order, and for lists that explore.

    Examples
    --------
    >>> found = by_place(np.array([[3.0, 1.0, 0.5]]), kept=0, drawn=3)
    >>> found.mean(np.array([0.1, 0.9, 0.1]), [0, 1], gamma=0.5)  # the first item is second or third
    array([[1.125, 2.25 ]])
    """
    plain = np.ascontiguousarray(by_position, np.float64)
    return _by_place(plain.shape, plain.tobytes(), kept, drawn)


@functools.lru_cache(maxsize=64)
def _by_place(shape: tuple[int, int], packed: bytes, kept: int, drawn: int) -> ByPlace:
    greedy = np.frombuffer(packed).reshape(shape)
    n = shape[1]
    exploring = np.empty(shape)
    if drawn >= n:
        exploring[:] = greedy.mean(axis=1, keepdims=True)
    else:
        exploring_lists.means(n, kept, drawn, np.array(greedy), exploring)
    start = np.zeros((shape[0], 1))
    sums = (np.hstack([start, np.cumsum(one, axis=1)]) for one in (greedy, exploring))
    return ByPlace(greedy, exploring, *sums)
