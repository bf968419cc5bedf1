"""Confidence intervals of a position-based model.

In the logarithms of alpha and beta the expected information has a simple form: w_ij = shown_ij p / (1 - p) with
p = alpha_i beta_j stands between item i and position j, and the sums of w on the diagonal. Eliminating the items
leaves a matrix as large as the number of positions, however many items there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rankloop.logs.em import Cells, Numbers, Prior

_TINY = 1e-12
_BLOCK = 1 << 18  # items


class Errors(NamedTuple):
    """Standard errors of log alpha and log beta; infinite where the log does not identify them."""

    alpha: Numbers
    beta: Numbers


class _Shares:
    """Items by free positions: what stands between the two, a block of items at a time, which bounds the memory."""

    def __init__(self, cells: Cells, w: Numbers, column: NDArray[np.int64], n_free: int) -> None:
        inside = column[cells.positions] >= 0
        self.items, self.columns, self.w = cells.items[inside], column[cells.positions[inside]], w[inside]
        if (self.items[1:] < self.items[:-1]).any():
            order = np.argsort(self.items, kind="stable")
            self.items, self.columns, self.w = self.items[order], self.columns[order], self.w[order]
        self.n_items, self.n_free = cells.n_items, n_free

    def __iter__(self) -> Iterator[tuple[slice, Numbers]]:
        for start in range(0, self.n_items, _BLOCK):
            stop = min(start + _BLOCK, self.n_items)
            first, last = np.searchsorted(self.items, (start, stop))
            shares = np.zeros((stop - start, self.n_free))
            # An item can occur twice at a position when a cell was split; the sum is what counts.
            np.add.at(shares, (self.items[first:last] - start, self.columns[first:last]), self.w[first:last])
            yield slice(start, stop), shares


def errors(
    cells: Cells, *, alpha: Numbers, beta: Numbers, prior: Prior, reference: int, known: NDArray[np.bool_]
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


def attraction_interval(alpha: Numbers, error: Numbers, most_shown: Numbers, *, confidence: float) -> Numbers:
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


def examination_interval(beta: Numbers, error: Numbers, *, confidence: float) -> Numbers:
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
