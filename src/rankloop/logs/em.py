"""Expectation maximisation for the position-based model, on counts.

For each click on item i at position j, the user examined and liked it. For each impression without a click, the
expected number of users who liked the item, and who examined it, follows from alpha_i and beta_j; summed over the
counts, that is one step, and no step needs a session. The probability of a click depends on alpha_i beta_j alone, so
that one position, the reference, can be taken as always examined.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

Numbers = NDArray[np.float64]

_NEAR_ZERO, _NEAR_ONE = 1e-9, 1.0 - 1e-3


class Cells(NamedTuple):
    """Counts by item and position, one entry for each pair that occurred."""

    items: NDArray[np.int64]
    positions: NDArray[np.int64]
    shown: Numbers
    clicked: Numbers
    n_items: int
    n_positions: int

    def by_item(self, values: Numbers) -> Numbers:
        """Sums over each item's cells."""
        return np.bincount(self.items, values, self.n_items).astype(np.float64, copy=False)

    def by_position(self, values: Numbers) -> Numbers:
        """Sums over each position's cells."""
        return np.bincount(self.positions, values, self.n_positions).astype(np.float64, copy=False)


class Prior(NamedTuple):
    """A prior for rare items: so many more impressions for each, clicked at the rate `mean`."""

    mean: float
    impressions: float


class Maximum(NamedTuple):
    """Where the steps ended."""

    alpha: Numbers
    beta: Numbers
    trace: Numbers  # the objective at the start of each step
    converged: bool


def by_moments(cells: Cells, *, impressions: float, sweeps: int = 200) -> tuple[Numbers, Numbers, Prior]:
    """A quick first estimate: alpha and beta such that each item and each position has its own number of clicks.

    Both sides of sum_j clicks_ij = sum_j shown_ij alpha_i beta_j have the same mean, so that it is consistent. Nothing
    bounds it from above, so that it finds the position that is examined most. That one gets beta = 1.
    """
    clicks_of_items, clicks_at = cells.by_item(cells.clicked), cells.by_position(cells.clicked)
    beta = _ratio(clicks_at, cells.by_position(cells.shown))
    for _ in range(sweeps):
        beta /= beta.max()
        looks = cells.shown * beta[cells.positions]
        mean = cells.clicked.sum() / looks.sum()
        alpha = _ratio(clicks_of_items + impressions * mean, cells.by_item(looks) + impressions)
        before, beta = beta, _ratio(clicks_at, cells.by_position(cells.shown * alpha[cells.items]))
        if np.abs(beta / beta.max() - before).max() < 1e-4:
            break
    return alpha, beta / beta.max(), Prior(min(float(mean), 1.0), impressions)


def _ratio(numerator: Numbers, denominator: Numbers) -> Numbers:
    # An item that was never shown at an examined position has 0 of 0.
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def maximise(
    cells: Cells,
    *,
    alpha: Numbers,
    beta: Numbers,
    prior: Prior,
    pinned: NDArray[np.int64],
    tolerance: float,
    max_steps: int,
) -> Maximum:
    """Steps of EM from alpha and beta until none changes a parameter by more than `tolerance`.

    The examinations of the `pinned` positions stay as they are.
    """
    n, fixed = cells.n_items, cells.n_items + pinned
    shown_of_items, shown_at = cells.by_item(cells.shown), cells.by_position(cells.shown)
    x = np.concatenate((alpha, beta)).clip(_NEAR_ZERO, _NEAR_ONE)
    x[fixed] = beta[pinned]
    trace: list[float] = []

    def step(x: Numbers) -> tuple[Numbers, float]:
        """One step, and the objective where it began."""
        alpha, beta = x[cells.items], x[n + cells.positions]
        p = alpha * beta
        unclicked = cells.shown - cells.clicked
        # P(likes | no click) = alpha (1 - beta) / (1 - alpha beta), and the other way round for looks.
        missed = np.divide(unclicked, 1.0 - p, out=np.zeros_like(p), where=unclicked > 0)
        likes = cells.by_item(cells.clicked + missed * alpha * (1.0 - beta))
        looks = cells.by_position(cells.clicked + missed * beta * (1.0 - alpha))
        fresh = np.concatenate(
            (
                (likes + prior.impressions * prior.mean) / (shown_of_items + prior.impressions),
                _ratio(looks, shown_at),
            )
        )
        fresh[fixed] = x[fixed]
        likelihood = xlogy(cells.clicked, p).sum() + xlog1py(unclicked, -p).sum()
        return fresh, float(likelihood + log_prior(prior, x[:n]))

    for _ in range(max_steps):
        fresh, value = step(x)
        trace.append(value)
        moved, x = np.abs(fresh - x).max(), fresh
        if moved < tolerance:
            return Maximum(x[:n], x[n:], np.array(trace), True)
    return Maximum(x[:n], x[n:], np.array(trace), False)


def log_prior(prior: Prior, alpha: Numbers) -> float:
    """The prior's part of the objective."""
    if prior.impressions == 0.0:
        return 0.0
    liked = xlogy(prior.mean, alpha) + xlog1py(1.0 - prior.mean, -alpha)
    return float(prior.impressions * liked.sum())
