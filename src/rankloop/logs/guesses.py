"""Guesses at click rates, for estimators that correct them: of what was shown, and of what the policy would show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import numbers
from rankloop.feedback import LoggedLists
from rankloop.logs.em import Cells, by_moments
from rankloop.logs.regression import impressions
from rankloop.logs.regression_em import climb, rates

Numbers = NDArray[np.float64]


class Policy(Protocol):
    """Chances of what a log shows under another policy."""

    def of_cells(self, log: LoggedLists) -> Numbers:
        """The chance of each logged item at its position."""
        ...

    def of_lists(self, log: LoggedLists) -> Numbers | None:
        """The chance of each logged list, or None where only those of items at positions are known."""
        ...

    def mean_rates(self, log: LoggedLists, q: Numbers) -> Numbers:
        """The mean of `q`, items by positions, over what the policy shows, for each logged item's position."""
        ...


Guess = tuple[
    NDArray[np.bool_], Numbers
]  # rows, and the click rates of items (or candidates) by positions for them


def guesses_for(click_rates: Any, log: LoggedLists) -> list[Guess]:
    """The given guess for all rows, or one for each half of them, from the clicks of the other half.

    From the other half, so that a row's own clicks have no part in its guess.
    """
    if click_rates is not None:
        return [(np.ones(log.n_rows, np.bool_), _given(click_rates, log))]
    half = np.arange(log.n_rows) % 2
    fit = _by_items if log.features is None else _by_features
    return [(half == one, fit(log, half != one)) for one in (0, 1)]


def applied(guesses: list[Guess], log: LoggedLists, policy: Policy) -> tuple[Numbers, Numbers]:
    """Guessed click rates of what was shown, and of what the policy would show in its place."""
    first = 0 if log.features is None else log.features.starts[:-1, None]
    places = first + np.maximum(log.items, 0)
    q_shown, q_policy = np.empty(log.items.shape), np.empty(log.items.shape)
    for rows, q in guesses:
        q_shown[rows] = q[places, log.positions][rows]
        q_policy[rows] = policy.mean_rates(log, q)[rows]
    return q_shown, q_policy


def _given(click_rates: Any, log: LoggedLists) -> Numbers:
    if log.features is None:
        shape, what = (log.n_items, log.n_positions), "items by positions"
    else:
        make: Callable[..., Any] | None = getattr(click_rates, "click_rates", None)
        click_rates = click_rates if make is None else make(log.features.rows)
        shape, what = (len(log.features.rows), log.n_positions), "candidates of all lists by positions"
    q = numbers("click_rates", click_rates)
    if q.shape != shape or not np.isfinite(q).all():
        raise ValueError(f"click_rates must be {what}, {shape}, got {q.shape}")
    return q


def _by_items(log: LoggedLists, rows: NDArray[np.bool_]) -> Numbers:
    items, places, clicks = log.items[rows].ravel(), log.positions[rows].ravel(), log.clicks[rows].ravel()
    if clicks.sum() == 0:
        return np.zeros((log.n_items, log.n_positions))
    once = np.ones(len(items))
    cells = Cells(items, places, once, clicks.astype(np.float64), log.n_items, log.n_positions)
    alpha, beta, _ = by_moments(cells, impressions=10.0)
    return np.outer(alpha, beta).clip(0.0, 1.0)


def _by_features(log: LoggedLists, rows: NDArray[np.bool_]) -> Numbers:
    assert log.features is not None
    cells = impressions(log, None, rows)
    if cells.clicked.sum() == 0:
        return np.zeros((len(log.features.rows), log.n_positions))
    return rates(climb(cells, ridge=1.0, tolerance=1e-4, max_steps=50), log.features.rows)
