"""Counts of clicks by item and position, and what they say: bounds and likelihoods under the position-based model."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import hot
from rankloop.kernels.random import below

# Clicks counted by position and item: S[j, i] clicks in N[j, i] displays of item i at position j.


@hot
def count(S: Any, N: Any, items: Any, clicks: Any) -> None:
    """Add one round: what was shown at each position, and whether it was clicked there."""
    for j in range(len(items)):
        N[j, items[j]] += 1.0
        S[j, items[j]] += clicks[j]


@hot
def clicks_and_looks(S: Any, N: Any, kappa: Any, i: int, clicks: float, looks: float) -> Any:
    """The clicks on item i and how often it was examined, if position j is with chance kappa_j; added to what is given.

    With S and N transposed, and attractions for examinations, the same of a position.
    """
    for j in range(len(kappa)):
        clicks += S[j, i]
        looks += kappa[j] * N[j, i]
    return clicks, looks


@hot
def first_unseen(N: Any) -> int:
    """The first item that was never shown at the first position; -1 once each was.

    The circular lists that begin with each item in turn show every item at every position.
    """
    for i in range(N.shape[1]):
        if N[0, i] == 0.0:
            return i
    return -1


@hot
def draw_unseen(N: Any, key: Any) -> Any:
    """One of the items that were never shown at the first position, and how many there are; -1 and 0 once each was.

    Drawn, not taken in turn: while feedback is on its way the lists of the beginning would all be the same.
    """
    n_unseen = 0
    for i in range(N.shape[1]):
        n_unseen += N[0, i] == 0.0
    if n_unseen == 0:
        return -1, 0
    left = below(key, 0, n_unseen)
    for i in range(N.shape[1]):
        left -= N[0, i] == 0.0
        if left < 0:
            return i, n_unseen
    return -1, 0


# The index of KL-UCB: the largest mean that the observations of a coin do not contradict.


_CLOSE = 1e-13


@hot
def upper_bound(mean: float, n: float, level: float) -> Any:
    """The largest q with n d(mean, q) <= level, d the relative entropy of two coins; 1 where nothing was observed.

    Newton's method from above: d is convex in q, and d >= 2 (q - mean)^2 and d >= (1 - mean) log(1 / (1 - q)) - log 2
    bound where to begin.
    """
    if n <= 0.0 or mean >= 1.0:
        return 1.0
    reach = max(level, 0.0) / n
    if reach <= 0.0:
        return mean
    q = 1.0 - exp(-(reach + 0.6931471805599453) / (1.0 - mean))
    q = min(q, mean + np.sqrt(0.5 * reach))
    for _ in range(50):
        if not q < 1.0:
            return 1.0
        excess = (1.0 - mean) * log((1.0 - mean) / (1.0 - q)) - reach
        if mean > 0.0:
            excess += mean * log(mean / q)
        step = excess * q * (1.0 - q) / (q - mean)
        q -= step
        if step <= _CLOSE:
            break
    return q


@hot
def log_level(t: float) -> Any:
    """Log t + 3 log log t, where that is positive and rising; 0 for the first round."""
    log_t = log(max(t, 1.0))
    return log_t + 3.0 * log(max(log_t, 1.0))


# The likeliest attractions and examinations behind clicks counted by position and item.
#
# S[j, i] clicks in N[j, i] displays of item i at position j, each with probability theta_i kappa_j. Given kappa, the
# likelihood is concave in each theta_i by itself, and vice versa, so the two alternate (Komiyama, Honda and Takeda
# 2017). Only products are observed: kappa_0 is 1, and kappa does not rise from position to position.


_HIGHEST = 1.0 - 1e-12
_STEPS = 60
_CLOSE_ENOUGH = 1e-14
_SETTLED = 1e-9


@hot
def item_root(S: Any, N: Any, kappa: Any, i: int, start: float) -> float:
    """The likeliest theta_i in [0, 1]."""
    return _root(S.T, N.T, kappa, i, i, start)


@hot
def _root(S: Any, N: Any, weights: Any, first: int, last: int, start: float) -> float:
    # The likeliest x in [0, 1] where column i of the rows first .. last is clicked with chance x weights[i]: the
    # examination that these positions share or, with S and N transposed, the attraction of an item. That is the root
    # of sum (N weight x - S) / (1 - weight x), which rises and is convex: one for Newton.
    clicks = 0.0
    for j in range(first, last + 1):
        for i in range(len(weights)):
            clicks += S[j, i]
    if clicks <= 0.0:
        return 0.0
    low, high = 0.0, _HIGHEST
    x = start if low < start < high else 0.5
    for _ in range(_STEPS):
        excess, slope = 0.0, 0.0
        for j in range(first, last + 1):
            for i in range(len(weights)):
                rest = 1.0 / (1.0 - weights[i] * x)
                excess += (N[j, i] * weights[i] * x - S[j, i]) * rest
                slope += weights[i] * (N[j, i] - S[j, i]) * rest * rest
        if excess > 0.0:
            high = x
        else:
            low = x
        after = x - excess / slope if slope > 0.0 else high
        # Before the bounds are looked at: at the root itself one of them is x, and the other far away.
        if abs(after - x) <= _CLOSE_ENOUGH:
            return min(max(after, low), high)
        if not low < after < high:
            after = 0.5 * (low + high) if high < _HIGHEST else 0.5 * (x + _HIGHEST)
        x = after
    return x


@hot
def fit(S: Any, N: Any, theta: Any, kappa: Any, sweeps: int) -> int:
    """Improve `theta` and `kappa` by at most so many turns of both; returns how many it took."""
    n = len(theta)
    kappa[0] = 1.0
    for sweep in range(sweeps):
        moved = 0.0
        for i in range(n):
            before = theta[i]
            theta[i] = item_root(S, N, kappa, i, before)
            moved = max(moved, abs(theta[i] - before))
        moved = max(moved, _fit_positions(S, N, theta, kappa))
        if moved <= _SETTLED:
            return sweep + 1
    return sweeps


@hot
def _fit_positions(S: Any, N: Any, theta: Any, kappa: Any) -> float:
    # Where a position would come out above the one before it, the two share one value (pool adjacent violators).
    m, moved, j = len(kappa), 0.0, 1
    while j < m:
        first, last = j, j
        value = _root(S, N, theta, first, last, kappa[j])
        while first > 1 and value > kappa[first - 1]:
            pooled = kappa[first - 1]
            while first > 1 and kappa[first - 1] == pooled:
                first -= 1
            value = _root(S, N, theta, first, last, value)
        for k in range(first, last + 1):
            moved = max(moved, abs(kappa[k] - value))
            kappa[k] = value
        j += 1
    return moved
