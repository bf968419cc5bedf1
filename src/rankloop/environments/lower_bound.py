"""The world of the lower bound: one list is better than all others, by too little to detect in time (2022)."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import whole
from rankloop.compiled import check_items
from rankloop.environments.click_matrix import ClickMatrix


class LowerBound(ClickMatrix):
    """Every item is clicked at every position with probability 1/2, except one for each position: 1/2 + `delta`.

    Theorem 3 says that every learner has a regret of at least `least_regret` after `horizon` rounds in this world, on
    average over all choices of `best`. To a learner that treats all items alike all choices are alike, so any will do.

    Parameters
    ----------
    n_items : int
        N and m; n must be at least max(m + 3, 2 m).
    n_positions : int
        N and m; n must be at least max(m + 3, 2 m).
    horizon : int
        T, the rounds that will be played, at least n.
    best : array_like, optional
        The list that is better; None takes the first items in order.

    Notation
    --------
    delta = (1/8) sqrt((n - m + 1) / T); least_regret = (1/16) m sqrt((n - m + 1) T).

    Departures
    ----------
    None; but note that the probabilities are not a product of attraction and examination. The bound is for clicks that
    an adversary chooses, not for the stochastic position-based model (erratum C11).

    References
    ----------
    2022, Theorem 3 and Appendix C.

    Examples
    --------
    >>> people = LowerBound(n_items=10, n_positions=5, horizon=60_000)
    >>> people.delta, round(people.least_regret, 1)
    (0.00125, 187.5)
    """

    def __init__(
        self, *, n_items: int, n_positions: int, horizon: int, best: ArrayLike | None = None
    ) -> None:
        m = whole("n_positions", n_positions, at_least=1)
        n = whole("n_items", n_items, at_least=1)
        if n < max(m + 3, 2 * m):
            raise ValueError(
                f"n_items must be at least max(m + 3, 2 m) = {max(m + 3, 2 * m)} for m = {m} positions, got {n}"
            )
        self.horizon = whole("horizon", horizon, at_least=n)
        u = np.arange(m) if best is None else np.asarray(best)
        try:
            if u.dtype.kind not in "iu":
                raise ValueError(f"items must be whole numbers, got {u.dtype}")
            check_items(u.astype(np.int64), m, n)
        except ValueError as error:
            raise ValueError(f"best must be {m} of {n} items, got {best!r}: {error}") from None
        self.delta = sqrt((n - m + 1) / self.horizon) / 8
        self.least_regret = m * sqrt((n - m + 1) * self.horizon) / 16
        clicks = np.full((m, n), 0.5)
        clicks[np.arange(m), u] += self.delta
        super().__init__(clicks)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=6, n_positions=3, horizon=100)
        yield cls(n_items=4, n_positions=1, horizon=4, best=[2])
