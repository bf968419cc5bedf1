"""Newton's method for the position-based model, on counts.

A click has probability p = alpha_i beta_j. In the logarithms of alpha and beta the log likelihood is concave, so that
there is one maximum and nothing to be caught in. Given beta, each alpha_i is the root of one rising convex function;
what remains is a concave function of a few positions, and Newton's method on it converges where EM, whose steps become
shorter and shorter along a nearly flat ridge, takes hundreds of thousands of them.

Steps are made of sums in the order of the cells and of +, -, * and /; logarithms only decide how long a step is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from rankloop.kernels import click_fits
from rankloop.logs.em import Cells, Maximum, Numbers, Prior, log_prior

_HALVINGS = 30
_RISE = 1e-4  # of what the slope promises, which a step must bring


class _ByItem(NamedTuple):
    """The cells of each item, one item after another."""

    starts: NDArray[np.int64]
    other: NDArray[np.int64]  # the position of each cell
    clicked: Numbers
    missed: Numbers


def _by_item(cells: Cells) -> _ByItem:
    if (cells.items[1:] >= cells.items[:-1]).all():
        positions, shown, clicked = cells.positions.copy(), cells.shown, cells.clicked
    else:
        order = np.argsort(cells.items, kind="stable")
        positions, shown, clicked = cells.positions[order], cells.shown[order], cells.clicked[order]
    ends = np.cumsum(np.bincount(cells.items, minlength=cells.n_items))
    return _ByItem(np.append(0, ends), positions, clicked, shown - clicked)


class Newton:
    """One fit: the counts by position, the prior, and where the steps are."""

    def __init__(
        self, cells: Cells, *, alpha: Numbers, beta: Numbers, prior: Prior, pinned: NDArray[np.int64]
    ) -> None:
        order = np.argsort(cells.positions, kind="stable")
        self.cells = Cells(
            cells.items[order],
            cells.positions[order],
            cells.shown[order],
            cells.clicked[order],
            cells.n_items,
            cells.n_positions,
        )
        self.by_item = _by_item(cells)
        self.missed = self.cells.shown - self.cells.clicked
        self.starts = np.searchsorted(self.cells.positions, np.arange(cells.n_positions + 1))
        self.prior = prior
        self.clicks_at = self.cells.by_position(self.cells.clicked)
        # Without a click at a position, nobody looks there; the pinned ones stay as they are.
        self.free = self.clicks_at > 0
        self.free[pinned] = False
        self.beta = np.where(self.free, beta.clip(1e-6, 1.0), beta)
        self.beta[(self.clicks_at == 0)] = 0.0
        self.beta[pinned] = beta[pinned]
        self.alpha = self._best_alpha(self.beta, alpha.clip(1e-6, 1.0 - 1e-6))
        self.beta = self._best_beta()
        self.alpha = self._best_alpha(self.beta, self.alpha)

    def maximise(self, *, tolerance: float, max_steps: int) -> Maximum:
        """Steps until none moves an examination by more than `tolerance`."""
        trace = [self.objective(self.alpha, self.beta)]
        for _ in range(max_steps):
            slope, curvature = self._derivatives()
            free = self.free & ~((self.beta >= 1.0) & (slope > 0.0))
            direction = np.zeros_like(self.beta)
            direction[free] = _solve(curvature[np.ix_(free, free)], slope[free])
            small = float(np.abs(direction * self.beta).max(initial=0.0)) <= tolerance
            risen = self._step(direction / max(1.0, np.abs(direction).max(initial=0.0)), slope, trace[-1])
            if small and (risen or self._level(slope, free)):
                return Maximum(self.alpha, self.beta, np.array(trace), True)
            if not risen:  # a corner: given alpha, each position by itself, and then the other way round
                self.beta = self._best_beta()
                self.alpha = self._best_alpha(self.beta, self.alpha)
            trace.append(self.objective(self.alpha, self.beta))
        return Maximum(self.alpha, self.beta, np.array(trace), False)

    def objective(self, alpha: Numbers, beta: Numbers) -> float:
        """The log likelihood and the prior."""
        p = alpha[self.cells.items] * beta[self.cells.positions]
        likelihood = xlogy(self.cells.clicked, p).sum() + xlog1py(self.missed, -p).sum()
        return float(likelihood + log_prior(self.prior, alpha))

    def _step(self, direction: Numbers, slope: Numbers, value: float) -> bool:
        """Go along `direction`, in logarithms, as far as the objective rises enough; False if nowhere."""
        length = 1.0
        for _ in range(_HALVINGS):
            half = 0.5 * length * direction
            beta = np.minimum(self.beta * (1.0 + half) / (1.0 - half), 1.0)  # exp up to the second order
            beta = np.where(self.free, beta, self.beta)
            both = beta + self.beta
            moved = 2.0 * np.divide(beta - self.beta, both, out=np.zeros_like(both), where=both > 0)
            alpha = self._best_alpha(beta, self.alpha)
            # Sums of a million logarithms are exact to about this much.
            noise = 1e-13 * abs(value)
            if self.objective(alpha, beta) >= value + _RISE * float((slope * moved).sum()) - noise:
                self.alpha, self.beta = alpha, beta
                return True
            length *= 0.5
        return False

    def _level(self, slope: Numbers, free: NDArray[np.bool_]) -> bool:
        return bool((np.abs(slope[free]) <= 1e-9 * self.clicks_at[free]).all())

    def _best_alpha(self, beta: Numbers, start: Numbers) -> Numbers:
        prior, by_item, x = self.prior, self.by_item, start.copy()
        liked = prior.impressions * prior.mean
        click_fits.likeliest(
            by_item.starts,
            by_item.other,
            beta,
            by_item.clicked,
            by_item.missed,
            liked,
            prior.impressions - liked,
            x,
        )
        return x

    def _best_beta(self) -> Numbers:
        cells, x = self.cells, self.beta.copy()
        click_fits.likeliest(self.starts, cells.items, self.alpha, cells.clicked, self.missed, 0.0, 0.0, x)
        return np.where(self.free, x, self.beta)

    def _derivatives(self) -> tuple[Numbers, Numbers]:
        """Slope and curvature (its negative) of the objective in log beta, each alpha being the best for it."""
        cells, prior = self.cells, self.prior
        p = self.alpha[cells.items] * self.beta[cells.positions]
        odds = np.divide(p, 1.0 - p, out=np.zeros_like(p), where=self.missed > 0)
        slope = cells.by_position(cells.clicked - self.missed * odds)
        bend = self.missed * odds * (1.0 + odds)
        inside = self.alpha < 1.0
        of_items = cells.by_item(bend)
        missed = prior.impressions * (1.0 - prior.mean)
        of_items[inside] += missed * self.alpha[inside] / (1.0 - self.alpha[inside]) ** 2
        inside &= of_items > 0.0
        curvature = np.diag(cells.by_position(bend))
        share = np.zeros(cells.n_items)
        for j in np.flatnonzero(self.free):
            here = slice(self.starts[j], self.starts[j + 1])
            share[:] = 0.0
            share[cells.items[here]] = bend[here]
            share = np.divide(share, of_items, out=np.zeros_like(share), where=inside)
            curvature[j] -= cells.by_position(bend * share[cells.items])
        return slope, curvature


def _solve(matrix: Numbers, right: Numbers) -> Numbers:
    """The solution for a symmetric matrix without negative directions, by elimination; flat ones are damped."""
    size = len(right)
    a, b = matrix.copy(), right.copy()
    scale = np.diag(matrix).copy()
    a[np.arange(size), np.arange(size)] += 1e-12 * scale
    for k in range(size):
        pivot = max(a[k, k], 1e-10 * scale[k])
        a[k, k] = pivot
        if pivot <= 0.0:
            continue
        factor = a[k + 1 :, k] / pivot
        a[k + 1 :, k + 1 :] -= factor[:, None] * a[k, k + 1 :]
        b[k + 1 :] -= factor * b[k]
    x = np.zeros(size)
    for k in range(size - 1, -1, -1):
        rest = b[k]
        for j in range(k + 1, size):
            rest = rest - a[k, j] * x[j]
        x[k] = rest / a[k, k] if a[k, k] > 0.0 else np.sign(rest)
    return x
