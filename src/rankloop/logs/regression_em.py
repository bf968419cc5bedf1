"""A position-based model whose attractions come from features: for lists in which items hardly ever occur twice.

A click has probability p = beta_j s(w x + b), with beta_j the examination of position j and s the logistic function.
Regression-EM climbs to the maximum of this likelihood in ever shorter steps; Fisher scoring climbs to the same one in
about ten. With beta_j in logarithms, dp = p (dlog beta_j + (1 - s) d(w x + b)), and the expected information is the sum
of p / (1 - p) times the squares of that bracket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, xlog1py, xlogy

Numbers = NDArray[np.float64]

_TINY = 1e-12
_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class Impressions:
    """Rows of features, each with its position, how often it was shown there and how often clicked."""

    x: Numbers
    positions: NDArray[np.int64]
    shown: Numbers
    clicked: Numbers
    n_positions: int

    def at(self, values: Numbers) -> Numbers:
        """Sums by position."""
        return np.bincount(self.positions, values, self.n_positions).astype(np.float64)


class Climb(NamedTuple):
    """Where the steps ended: the parameters, their covariance, and how."""

    weights: Numbers
    intercept: float
    log_beta: Numbers
    pinned: NDArray[np.bool_]
    covariance: Numbers  # of the logarithms of the free examinations, the intercept and the weights
    log_likelihood: float
    steps: int
    converged: bool


def climb(cells: Impressions, *, ridge: float, tolerance: float, max_steps: int) -> Climb:
    """Maximum likelihood with the largest examination at 1.

    The position with the highest click rate begins with 1. Where another one then comes out above 1, that one is
    given 1 in its place; and where they take turns, both.
    """
    clicked, shown = cells.at(cells.clicked), cells.at(cells.shown)
    clicks = np.divide(clicked, shown, out=np.zeros_like(clicked), where=shown > 0)
    tried = [int(np.argmax(clicks))]
    pinned = np.arange(cells.n_positions) == tried[0]
    while True:
        found = _scoring(cells, pinned, clicks, ridge=ridge, tolerance=tolerance, max_steps=max_steps)
        above = np.where(pinned, -np.inf, found.log_beta)
        worst = int(np.argmax(above))
        if above[worst] <= 1e-9:
            return found
        pinned = pinned.copy() if worst in tried else np.zeros_like(pinned)
        pinned[worst] = True
        tried.append(worst)


def rates(found: Climb, x: Numbers) -> Numbers:
    """The chance of a click on each row of features at each position."""
    return np.outer(expit(x @ found.weights + found.intercept), np.minimum(np.exp(found.log_beta), 1.0))


def _scoring(
    cells: Impressions,
    pinned: NDArray[np.bool_],
    rates: Numbers,
    *,
    ridge: float,
    tolerance: float,
    max_steps: int,
) -> Climb:
    free = ~pinned & (rates > 0)
    n_free, d = int(free.sum()), cells.x.shape[1]
    column = np.full(cells.n_positions, -1)
    column[free] = np.arange(n_free)
    top = float(rates[pinned].mean())
    theta = np.zeros(n_free + 1 + d)
    theta[:n_free] = np.minimum(np.log(rates[free] / top), 0.0)
    theta[n_free] = logit(np.clip(top, 1e-6, 1.0 - 1e-6))
    seen = np.column_stack([np.ones(len(cells.x)), cells.x])
    place = column[cells.positions]
    penalty = np.concatenate([np.zeros(n_free + 1), np.full(d, ridge)])
    silent = (rates == 0) & ~pinned  # no click there: nobody looks, and its misses say nothing

    def chances(theta: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        log_beta = np.where(silent, -np.inf, 0.0)
        log_beta[free] = theta[:n_free]
        s = expit(seen @ theta[n_free:])
        # Above 1 while steps are taken, an examination counts up to a chance of 1.
        return np.minimum(np.exp(log_beta)[cells.positions] * s, 1.0 - _TINY), s, log_beta

    def value(p: Numbers, theta: Numbers) -> float:
        likelihood = xlogy(cells.clicked, p).sum() + xlog1py(cells.shown - cells.clicked, -p).sum()
        return float(likelihood - 0.5 * (penalty * theta**2).sum())

    p, s, log_beta = chances(theta)
    now, converged, steps = value(p, theta), False, 0
    while not converged and steps < max_steps:
        steps += 1
        slope, information = _derivatives(cells, seen, place, n_free, p, s)
        slope -= penalty * theta
        direction = _solve(information + np.diag(penalty), slope)
        gain = float(slope @ direction)
        if gain <= tolerance:
            converged = True
            continue
        length = 1.0
        for _ in range(_HALVINGS):
            after = theta + length * direction
            p, s, log_beta = chances(after)
            if value(p, after) >= now + 1e-4 * length * gain:
                break
            length *= 0.5
        else:  # as far up as numbers of this size can tell
            p, s, log_beta = chances(theta)
            converged = gain <= 1e-6
            break
        theta, now = after, value(p, after)
    _, information = _derivatives(cells, seen, place, n_free, p, s)
    likelihood = float(xlogy(cells.clicked, p).sum() + xlog1py(cells.shown - cells.clicked, -p).sum())
    return Climb(
        weights=theta[n_free + 1 :],
        intercept=float(theta[n_free]),
        log_beta=log_beta,
        pinned=pinned,
        covariance=_inverse(information + np.diag(penalty)),
        log_likelihood=likelihood,
        steps=steps,
        converged=converged,
    )


def _derivatives(
    cells: Impressions, seen: Numbers, place: NDArray[np.int64], n_free: int, p: Numbers, s: Numbers
) -> tuple[Numbers, Numbers]:
    """The slope of the log likelihood, and its expected information."""
    g = seen * (1.0 - s)[:, None]
    pull = (cells.clicked - cells.shown * p) / (1.0 - p)
    weight = cells.shown * p / (1.0 - p)
    inside = place >= 0
    slope = np.concatenate([np.bincount(place[inside], pull[inside], n_free), g.T @ pull])
    information = np.zeros((len(slope), len(slope)))
    information[:n_free, :n_free] = np.diag(np.bincount(place[inside], weight[inside], n_free))
    information[n_free:, n_free:] = g.T @ (g * weight[:, None])
    for j in range(n_free):
        here = place == j
        information[j, n_free:] = weight[here] @ g[here]
    information[n_free:, :n_free] = information[:n_free, n_free:].T
    return slope, information


def _scaled(matrix: Numbers) -> tuple[Numbers, Numbers]:
    scale = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    return matrix / np.outer(scale, scale), scale


def _solve(matrix: Numbers, right: Numbers) -> Numbers:
    small, scale = _scaled(matrix)
    damped = small + 1e-10 * np.eye(len(right))
    solved: Numbers = np.linalg.solve(damped, right / scale) / scale
    return solved


def _inverse(matrix: Numbers) -> Numbers:
    """The inverse; where a direction is flat, its variance is as large as rounding lets it be."""
    small, scale = _scaled(matrix)
    inverse: Numbers = np.linalg.inv(small + 1e-10 * np.eye(len(matrix))) / np.outer(scale, scale)
    return inverse
