"""A position-based model of counts: a first estimate, what a log identifies, and how certain it is of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from rankloop.extras import counted

Floats = NDArray[np.float64]


class Cells(NamedTuple):
    """Counts by item and position, one entry for each pair that occurred."""

    items: NDArray[np.int64]
    positions: NDArray[np.int64]
    shown: Floats
    clicked: Floats
    n_items: int
    n_positions: int

    def by_item(self, values: Floats) -> Floats:
        """Sums over each item's cells."""
        return np.bincount(self.items, values, self.n_items).astype(np.float64, copy=False)

    def by_position(self, values: Floats) -> Floats:
        """Sums over each position's cells."""
        return np.bincount(self.positions, values, self.n_positions).astype(np.float64, copy=False)


class Prior(NamedTuple):
    """A prior for rare items: so many more impressions for each, clicked at the rate `mean`."""

    mean: float
    impressions: float


def by_moments(cells: Cells, *, impressions: float, sweeps: int = 200) -> tuple[Floats, Floats, Prior]:
    """A quick first estimate: alpha and beta such that each item and each position has its own number of clicks.

    Both sides of sum_j clicks_ij = sum_j shown_ij alpha_i beta_j have the same mean, so that it is consistent. Nothing
    bounds it from above, so that it finds the position that is examined most. That one gets beta = 1.
    """
    clicks_of_items, clicks_at = cells.by_item(cells.clicked), cells.by_position(cells.clicked)
    beta = ratio(clicks_at, cells.by_position(cells.shown))
    for _ in range(sweeps):
        beta /= beta.max()
        looks = cells.shown * beta[cells.positions]
        mean = cells.clicked.sum() / looks.sum()
        alpha = ratio(clicks_of_items + impressions * mean, cells.by_item(looks) + impressions)
        before, beta = beta, ratio(clicks_at, cells.by_position(cells.shown * alpha[cells.items]))
        if np.abs(beta / beta.max() - before).max() < 1e-4:
            break
    return alpha, beta / beta.max(), Prior(min(float(mean), 1.0), impressions)


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient; 0 where both are 0, as for an item that was never shown at an examined position."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


# What a log identifies: two positions can be compared if some item that was clicked was shown at both.


_MOST_NAMES = 3


def comparable_groups(cells: Cells) -> NDArray[np.int64]:
    """For each position the number of its group: within a group examinations can be compared, across groups not.

    An item without a click carries no information on examination, so only the others link positions.
    """
    links = cells.by_item(cells.clicked)[cells.items] > 0
    n = cells.n_positions
    edges = coo_array(
        (np.ones(int(links.sum())), (cells.positions[links], n + cells.items[links])),
        shape=(n + cells.n_items, n + cells.n_items),
    )
    labels = connected_components(edges, directed=False)[1]
    return np.asarray(labels[:n], dtype=np.int64)


def identification_warnings(
    cells: Cells,
    group: NDArray[np.int64],
    reference: int,
    beta_error: NDArray[np.float64],
    name: Callable[[int], str] | None = None,
) -> tuple[str, ...]:
    """Warnings, as sentences; positions count from 1 there, and `name`, if given, names an item."""
    seen = cells.by_position(cells.shown) > 0
    sentences = []
    if not seen.all():
        sentences.append(f"nothing was shown at {listed(~seen)}: how often users look there is unknown")
    apart = seen & (group != group[reference])
    if apart.any():
        sentences.append(
            f"examination of {listed(apart)} cannot be compared with that of position {reference + 1}: no item that"
            " was clicked links them; their numbers, and those of items shown only there, are arbitrary"
            f" (not identified){_ties(cells, ~apart & seen, ~apart & seen, name)}"
        )
    # Twice the error of the logarithm: beyond a factor of 2.7 either way. No click at all says something: few look.
    vague = (cells.by_position(cells.clicked) > 0) & ~apart & (beta_error > 0.5)
    if vague.any():
        sentences.append(
            f"examination of {listed(vague)} is hardly known: few items were shown both there and at other positions,"
            f" or few were clicked{_ties(cells, vague, seen & ~apart, name)}"
        )
    return tuple(sentences)


def _ties(
    cells: Cells, here: NDArray[np.bool_], among: NDArray[np.bool_], name: Callable[[int], str] | None
) -> str:
    """Which clicked items were shown at a position of `here` and at another one of `among`, most clicked first."""
    if name is None:
        return ""
    inside = among[cells.positions]
    places = cells.by_item(inside.astype(np.float64))  # a cell is a position, unless one was split
    clicks = cells.by_item(cells.clicked * inside)
    tie = (cells.by_item(here[cells.positions].astype(np.float64)) > 0) & (places > 1) & (clicks > 0)
    best = sorted(np.flatnonzero(tie).tolist(), key=lambda i: (-clicks[i], i))
    if not best:
        return f"; no item ties {listed(here)} to another position"
    more = f" and {len(best) - _MOST_NAMES:,} more" if len(best) > _MOST_NAMES else ""
    shown = ", ".join(f"{name(i)} ({counted(round(clicks[i]), 'click')})" for i in best[:_MOST_NAMES])
    tied = "the item that ties" if len(best) == 1 else "the items that tie"
    return f"; {tied} {listed(here)} to the others: {shown}{more}"


def listed(which: NDArray[np.bool_]) -> str:
    """Positions in words, counted from 1."""
    numbers = [str(j + 1) for j in np.flatnonzero(which)]
    if len(numbers) == 1:
        return f"position {numbers[0]}"
    return f"positions {', '.join(numbers[:-1])} and {numbers[-1]}"


# Confidence intervals of a position-based model.
#
# In the logarithms of alpha and beta the expected information has a simple form: w_ij = shown_ij p / (1 - p) with p =
# alpha_i beta_j stands between item i and position j, and the sums of w on the diagonal. Eliminating the items leaves
# a matrix as large as the number of positions, however many items there are.


_TINY = 1e-12
_BLOCK = 1 << 18  # items


class Errors(NamedTuple):
    """Standard errors of log alpha and log beta; infinite where the log does not identify them."""

    alpha: Floats
    beta: Floats


class _Shares:
    """Items by free positions: what stands between the two, a block of items at a time, which bounds the memory."""

    def __init__(self, cells: Cells, w: Floats, column: NDArray[np.int64], n_free: int) -> None:
        inside = column[cells.positions] >= 0
        self.items, self.columns, self.w = cells.items[inside], column[cells.positions[inside]], w[inside]
        if (self.items[1:] < self.items[:-1]).any():
            order = np.argsort(self.items, kind="stable")
            self.items, self.columns, self.w = self.items[order], self.columns[order], self.w[order]
        self.n_items, self.n_free = cells.n_items, n_free

    def __iter__(self) -> Iterator[tuple[slice, Floats]]:
        for start in range(0, self.n_items, _BLOCK):
            stop = min(start + _BLOCK, self.n_items)
            first, last = np.searchsorted(self.items, (start, stop))
            shares = np.zeros((stop - start, self.n_free))
            # An item can occur twice at a position when a cell was split; the sum is what counts.
            np.add.at(shares, (self.items[first:last] - start, self.columns[first:last]), self.w[first:last])
            yield slice(start, stop), shares


def errors(
    cells: Cells, *, alpha: Floats, beta: Floats, prior: Prior, reference: int, known: NDArray[np.bool_]
) -> Errors:
    """Of the estimates, given that beta of the reference is 1; `known` says which positions can be compared with it."""
    alpha = alpha.clip(_TINY, 1.0 - _TINY)
    beta = beta.clip(_TINY, 1.0)
    # Where every impression was clicked, half a miss is added: no rate is certain.
    p = np.minimum(alpha[cells.items] * beta[cells.positions], 1.0 - 0.5 / cells.shown)
    w = cells.shown * p / (1.0 - p)
    of_items = cells.by_item(w * known[cells.positions]) + prior.impressions * alpha / (1.0 - alpha)
    of_items = np.maximum(of_items, np.finfo(float).tiny)
    free = np.flatnonzero(known & (np.arange(cells.n_positions) != reference))
    column = np.full(cells.n_positions, -1)
    column[free] = np.arange(len(free))
    blocks = _Shares(cells, w, column, len(free))
    information = np.diag(cells.by_position(w)[free])
    for here, shares in blocks:
        information -= shares.T @ (shares / of_items[here, None])
    # By its diagonal, so that a position that few look at is not taken for one of which nothing is known.
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    spread = (
        np.linalg.pinv(information / np.outer(scale, scale), hermitian=True) if len(free) else information
    )
    spread = spread / np.outer(scale, scale)
    beta_error = np.full(cells.n_positions, np.inf)
    beta_error[free] = np.sqrt(np.maximum(np.diag(spread), 0.0))
    beta_error[reference] = 0.0
    alpha_error = np.empty(cells.n_items)
    for here, shares in blocks:
        pull = shares / of_items[here, None]
        alpha_error[here] = np.sqrt(1.0 / of_items[here] + np.einsum("ij,jk,ik->i", pull, spread, pull))
    # An item shown only where nothing is known is as unknown as the positions.
    lost = cells.by_item(cells.shown * known[cells.positions]) == 0
    return Errors(np.where(lost, np.inf, alpha_error), beta_error)


def attraction_interval(alpha: Floats, error: Floats, most_shown: Floats, *, confidence: float) -> Floats:
    """Lower and upper ends: Wilson's interval for as many impressions as would leave the same error.

    It stays within 0 and 1, and says something for items without a click, too. `most_shown` are the impressions of each
    item's largest cell, which bound an attraction of 1 by the same half a miss as `errors` does.
    """
    z = _z(confidence)
    safe = np.minimum(alpha.clip(_TINY), 1.0 - 0.5 / most_shown)
    n = np.where(np.isfinite(error), (1.0 - safe) / (safe * error**2), 0.0)
    n = np.maximum(n, _TINY)
    middle = (alpha + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(alpha * (1 - alpha) / n + z**2 / (4 * n**2))
    ends = np.stack((middle - half, middle + half), axis=1).clip(0.0, 1.0)
    ends[~np.isfinite(error)] = (0.0, 1.0)
    return ends


def examination_interval(beta: Floats, error: Floats, *, confidence: float) -> Floats:
    """Lower and upper ends, as a factor either way: an examination is a ratio to that of the reference."""
    z = _z(confidence)
    with np.errstate(over="ignore", invalid="ignore"):
        ends = np.stack((beta * np.exp(-z * error), beta * np.exp(z * error)), axis=1)
    # No click at all at a position: its examination is 0, and the error of its logarithm says nothing.
    no_clicks = beta <= _TINY
    looks = 1.0 / (_TINY * np.maximum(error, _TINY) ** 2)
    ends[no_clicks] = np.stack((np.zeros_like(beta), z**2 / (z**2 + looks)), axis=1)[no_clicks]
    ends[~np.isfinite(error)] = (0.0, 1.0)
    return ends.clip(0.0, 1.0)


def _z(confidence: float) -> float:
    return float(ndtri(0.5 + confidence / 2))
