"""Lists drawn from the posterior of the position-based model, each independent of the last.

S[j, i] clicks in N[j, i] displays of item i at position j, each with probability theta_i kappa_j. Examinations come
first, from their posterior with the attractions integrated out (Laplace's approximation in log kappa); then each
attraction given these, a Beta of the same mean and information. The prior of an attraction is Beta(1, 1 / mean - 1):
one click in as many looks as it takes on average, whether clicks are common or rare.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.kernels import sorting
from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import Floats, Ints, apart, hot
from rankloop.kernels.random import uniform
from rankloop.kernels.sorting import by_falling_score

MOST = 0.999  # of a fitted probability: at one, a single miss would be impossible
_FARTHEST = 5.0  # of log kappa from its fit: hardly anything is known of such a position


class DrawScratch(NamedTuple):
    """What is in it means nothing between calls."""

    clicks: Floats  # by item: weighed clicks and displays, one click of the prior among them
    looks: Floats
    theta: Floats  # by item: drawn
    kappa: Floats  # by position: drawn
    precision: Floats  # positions x positions: of log kappa, then its Cholesky factor
    row: Floats  # by position
    slope: Floats  # by position: of the likelihood in log kappa
    by_item: Ints
    by_position: Ints
    sorting: Any


def scratch(n: int, m: int) -> DrawScratch:
    """Scratch for `n` items on `m` positions."""
    return DrawScratch(
        clicks=np.empty(n),
        looks=np.empty(n),
        theta=np.empty(n),
        kappa=np.empty(m),
        precision=np.empty((m, m)),
        row=np.empty(m),
        slope=np.empty(m),
        by_item=np.empty(n, np.int64),
        by_position=np.empty(m, np.int64),
        sorting=sorting.scratch(n),
    )


def scratch_bytes(n: int, m: int) -> int:
    """Bytes of the scratch for `n` items on `m` positions."""
    return 32 * n + 8 * (m * m + 4 * m) + sorting.scratch_bytes(n)


# P. J. Acklam's rational functions for the inverse of the normal distribution; relative error below 1.2e-9
_TAIL = 0.02425


@hot
def normal(u: float) -> Any:
    """The standard normal number below which a share `u` of all lies."""
    if _TAIL < u < 1.0 - _TAIL:
        q = u - 0.5
        r = q * q
        above = (-39.69683028665376 * r + 220.9460984245205) * r - 275.9285104469687
        above = ((above * r + 138.3577518672690) * r - 30.66479806614716) * r + 2.506628277459239
        below = (-54.47609879822406 * r + 161.5858368580409) * r - 155.6989798598866
        below = ((below * r + 66.80131188771972) * r - 13.28068155288572) * r + 1.0
        return above * q / below
    q = np.sqrt(-2.0 * log(max(min(u, 1.0 - u), 1e-300)))
    above = (-0.007784894002430293 * q - 0.3223964580411365) * q - 2.400758277161838
    above = ((above * q - 2.549732539343734) * q + 4.374664141464968) * q + 2.938163982698783
    below = (0.007784695709041462 * q + 0.3224671290700398) * q + 2.445134137142996
    below = (below * q + 3.754408661907416) * q + 1.0
    return above / below if u < 0.5 else -above / below


@hot
def _gamma(a: float, key: Any, first: int) -> Any:
    # Wilson and Hilferty (1931): the cube root is nearly normal; below one, by way of a + 1.
    b = a if a >= 1.0 else a + 1.0
    root = 1.0 - 1.0 / (9.0 * b) + normal(uniform(key, first)) / (3.0 * np.sqrt(b))
    drawn = max(b * root * root * root, 1e-300)
    return drawn if a >= 1.0 else drawn * exp(log(1.0 - uniform(key, first + 1)) / a)


@apart
def beta(a: float, b: float, key: Any, first: int) -> Any:
    """A number drawn from nearly Beta(a, b), by four numbers of `key`."""
    x = _gamma(a, key, first)
    y = _gamma(b, key, first + 2)
    return x / (x + y) if x > 0.0 else 0.0


@hot
def weigh_items(S: Any, N: Any, theta: Any, kappa: Any, mean: float, clicks: Any, looks: Any) -> None:
    """One step of scoring: `clicks` by `looks` are the likelier attractions, and `looks` how much is known of them.

    A display at position j says (1 - theta) / (1 - theta kappa_j) times kappa_j of what a certain look would say.
    """
    m, n = S.shape
    for i in range(n):
        clicks[i] = 1.0
        looks[i] = 1.0 / mean
    for j in range(m):
        k = kappa[j]
        for i in range(n):
            weight = (1.0 - theta[i]) / (1.0 - theta[i] * k)
            clicks[i] += S[j, i] * weight
            looks[i] += N[j, i] * (k * weight)


@hot
def weigh_item(S: Any, N: Any, theta: float, kappa: Any, mean: float, i: int) -> Any:
    """The same step for item i alone: its likelier attraction."""
    clicks, looks = 1.0, 1.0 / mean
    for j in range(len(kappa)):
        weight = (1.0 - theta) / (1.0 - theta * kappa[j])
        clicks += S[j, i] * weight
        looks += N[j, i] * (kappa[j] * weight)
    return min(clicks / looks, MOST)


@hot
def fit_turn(S: Any, N: Any, theta: Any, kappa: Any, mean: float, fits_kappa: bool, scratch: Any) -> Any:
    """One turn of scoring over attractions and examinations, the largest of which is 1; returns the attractions' mean.

    The mean is at most one half, and begins there.
    """
    m, n = S.shape
    weigh_items(S, N, theta, kappa, mean, scratch.clicks, scratch.looks)
    total = 0.5
    for i in range(n):
        theta[i] = min(scratch.clicks[i] / scratch.looks[i], MOST)
        total += theta[i]
    if fits_kappa:
        top = 0.0
        for j in range(m):
            k = min(kappa[j], MOST)
            clicks, looks = 0.5, 1.0
            for i in range(n):
                weight = 1.0 / (1.0 - theta[i] * k)
                clicks += S[j, i] * weight
                looks += N[j, i] * (theta[i] * weight)
            kappa[j] = clicks / looks
            top = max(top, kappa[j])
        for j in range(m):
            kappa[j] /= top
    return min(total / (n + 1.0), 0.5)


@apart
def draw_examinations(
    S: Any, N: Any, theta: Any, kappa: Any, certainty: float, key: Any, first: int, scratch: Any
) -> None:
    """Draw `scratch.kappa`, attractions integrated out, so that what only their products say stays open.

    The centre is one step of Newton's method from the fit: where few lists connect the positions, the turns of the fit
    come close in ever smaller steps. Only ratios are observed: the position with the largest fit keeps it.
    """
    m, n = N.shape
    A, row, drawn, slope = scratch.precision, scratch.row, scratch.kappa, scratch.slope
    for j in range(m):
        for k in range(j):
            A[j, k] = 0.0
        A[j, j] = 1.0
        slope[j] = 0.0
    for i in range(n):
        total, excess = 1.0, 0.0
        for j in range(m):
            p = min(theta[i] * kappa[j], MOST)
            row[j] = N[j, i] * p / (1.0 - p)  # the information on log p
            total += row[j]
            drawn[j] = (S[j, i] - N[j, i] * p) / (1.0 - p)
            excess += drawn[j]
        if total == 1.0:
            continue
        for j in range(m):
            if row[j] > 0.0:
                A[j, j] += row[j]
                part = row[j] / total
                slope[j] += drawn[j] - part * excess
                for k in range(j + 1):
                    A[j, k] -= part * row[k]
    for j in range(m):  # A = L L'
        for k in range(j + 1):
            rest = A[j, k]
            for i in range(k):
                rest -= A[j, i] * A[k, i]
            A[j, k] = np.sqrt(max(rest, 1e-12)) if j == k else rest / A[k, k]
    for j in range(m):  # L y = slope
        for i in range(j):
            slope[j] -= A[j, i] * slope[i]
        slope[j] /= A[j, j]
    top, spread = 0, 1.0 / np.sqrt(certainty)
    for j in range(m - 1, -1, -1):  # L' x = y + normal numbers
        rest = slope[j] + spread * normal(uniform(key, first + j))
        for i in range(j + 1, m):
            rest -= A[i, j] * row[i]
        row[j] = rest / A[j, j]
        if kappa[j] >= kappa[top]:
            top = j
    own, most = row[top], 0.0
    for j in range(m):
        drawn[j] = kappa[j] * exp(max(min(row[j] - own, _FARTHEST), -_FARTHEST))
        most = max(most, drawn[j])
    if most > 1.0:
        for j in range(m):
            drawn[j] /= most


@hot
def draw_list(
    S: Any,
    N: Any,
    theta: Any,
    kappa: Any,
    mean: float,
    draws_kappa: bool,
    certainty: float,
    key: Any,
    first: int,
    scratch: Any,
    items: Any,
) -> None:
    """Draw a model that fits the clicks, and write its best list; `first` of `key` and those after it are used.

    The draw varies as it would had everything been seen `certainty` times as often.
    """
    m, n = S.shape
    drawn = scratch.kappa
    if draws_kappa:
        draw_examinations(S, N, theta, kappa, certainty, key, first, scratch)
    else:
        for j in range(m):
            drawn[j] = kappa[j]
    weigh_items(S, N, theta, drawn, mean, scratch.clicks, scratch.looks)
    for i in range(n):
        x = min(scratch.clicks[i], MOST * scratch.looks[i])
        misses = scratch.looks[i] - x
        scratch.theta[i] = beta(certainty * x, certainty * misses, key, first + m + 4 * i)
    place_items(scratch.theta, drawn, scratch, items)


@hot
def place_items(theta: Any, kappa: Any, scratch: Any, items: Any) -> None:
    """The items with the largest `theta` on the positions with the largest `kappa`."""
    m, n = len(kappa), len(theta)
    by_falling_score(theta, n, scratch.by_item, scratch.sorting)
    by_falling_score(kappa, m, scratch.by_position, scratch.sorting)
    for place in range(m):
        items[scratch.by_position[place]] = scratch.by_item[place]
