"""The alternative of PMED that displays tell least: a convex problem in the logarithms, solved by a barrier method.

Click rates are products of an attraction and an examination, so their logarithms are sums, and the relative entropy
d(mu, e^z) is convex in z. Alternatives share the click rates of the best list, which makes the log attractions x of its
items the only unknowns beside those of other items; that examinations do not rise, and that the rival is as good as the
item before it, is linear in x. So Newton's method with a falling barrier ends within `GAP` of the least distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.solvers.pbm_likelihood import item_root

GAP = 1e-7  # at most this far above the least distance
LOWEST = -14.0  # of log attractions
_HIGHEST = 1.0 - 1e-9
_WEAKER = 0.1
_STEPS = 60  # of Newton at one barrier; a handful is enough
_HALVINGS = 40


@kernel
def distance(
    x: Any, rival: int, q: Any, mu: Any, log_c: Any, order: Any, theta: Any, kappa: Any, slope: Any, bend: Any
) -> float:
    """How well displays q tell an alternative from what was seen: sum q d(mu, theta' kappa') off the best list.

    x are the log attractions of the m best items, in `order`. The examinations follow, because theta' kappa' on the
    best list is as it was: kappa'_j = c_j / theta'_(j). The item at place `rival` of the order, where that is beyond m,
    is as good as the m-th; every other item beyond m is whatever is hardest to tell. Writes the alternative to
    `theta` and `kappa`, and the derivatives by x to `slope` (m) and `bend` (m x m).
    """
    m, n = q.shape
    for j in range(m):
        theta[order[j]] = exp(x[j])
        kappa[j] = exp(log_c[j] - x[j])
        slope[j] = 0.0
        for k in range(m):
            bend[j, k] = 0.0
    seen = q * mu
    curves = np.empty(m)
    total = 0.0
    for place in range(n):
        i = order[place]
        if place >= m:
            theta[i] = theta[order[m - 1]] if place == rival else item_root(seen, q, kappa, i, 0.5)
        twin = place if place < m else m - 1  # whose x the item's attraction follows, where it does
        follows = place < m or place == rival
        sum_curves = 0.0
        for j in range(m):
            curves[j] = 0.0
            if place == j or q[j, i] == 0.0:
                continue
            p = min(theta[i] * kappa[j], _HIGHEST)
            total += q[j, i] * entropy(mu[j, i], p)
            rest = 1.0 / (1.0 - p)
            h = q[j, i] * (p - mu[j, i]) * rest
            curves[j] = q[j, i] * p * (1.0 - mu[j, i]) * rest * rest
            sum_curves += curves[j]
            slope[j] -= h  # through kappa'_j
            bend[j, j] += curves[j]
            if follows:
                slope[twin] += h
                bend[twin, twin] += curves[j]
                bend[j, twin] -= curves[j]
                bend[twin, j] -= curves[j]
        if not follows and sum_curves > 0.0 and theta[i] < _HIGHEST:  # its attraction moves along
            for j in range(m):
                for k in range(m):
                    bend[j, k] -= curves[j] * curves[k] / sum_curves
    return total


@kernel
def entropy(p: float, q: float) -> float:
    """The relative entropy d(p, q) of two coins."""
    total = 0.0
    if p > 0.0:
        total += p * log(p / q)
    if p < 1.0:
        total += (1.0 - p) * log((1.0 - p) / (1.0 - q))
    return total


@kernel
def nearest(rival: int, q: Any, mu: Any, log_c: Any, order: Any, x: Any, theta: Any, kappa: Any) -> float:
    """The least distance of an alternative with this rival; writes it to `x`, `theta` and `kappa`.

    x[0] is given and stays. The answer is at most `GAP` above the truth.
    """
    m = len(x)
    unknown = np.full(m, -1)  # the number of each x among the unknowns; -1 where it is given
    n_unknown = 0
    for j in range(1, m):
        if j == rival:
            unknown[j] = unknown[j - 1]
        else:
            unknown[j] = n_unknown
            n_unknown += 1
    for j in range(1, m):
        if j == rival:
            x[j] = x[j - 1]
        else:
            x[j] = max(x[j - 1] + 0.5 * (log_c[j] - log_c[j - 1]), 0.99 * LOWEST)
    slope, bend, tried = np.empty(m), np.empty((m, m)), x.copy()
    value = distance(x, rival, q, mu, log_c, order, theta, kappa, slope, bend)
    if n_unknown == 0:
        return value
    g, H, step = np.empty(n_unknown), np.empty((n_unknown, n_unknown)), np.empty(n_unknown)
    n_bounds = 3 * n_unknown
    barrier = max(value, GAP)
    while True:
        barrier = max(barrier * _WEAKER, 0.5 * GAP / n_bounds)
        for _ in range(_STEPS):
            _reduce(x, rival, log_c, unknown, slope, bend, barrier, g, H)
            if not _solve(H, g, step):
                break
            decrement = 0.0
            for a in range(n_unknown):
                decrement += g[a] * step[a]
            if decrement <= 0.02 * barrier:
                break
            before = value + barrier * _wall(x, rival, log_c)
            size = 1.0
            moved = False
            for _ in range(_HALVINGS):
                for j in range(1, m):
                    tried[j] = x[j] - size * step[unknown[j]] if unknown[j] >= 0 else x[j]
                wall = _wall(tried, rival, log_c)
                if wall < np.inf:
                    after = distance(tried, rival, q, mu, log_c, order, theta, kappa, slope, bend)
                    if after + barrier * wall <= before - 0.1 * size * decrement:
                        value, moved = after, True
                        break
                size *= 0.5
            if not moved:  # as good as numbers allow
                value = distance(x, rival, q, mu, log_c, order, theta, kappa, slope, bend)
                break
            x[:] = tried
        if barrier * n_bounds <= GAP:
            return value


@hot
def _slack(x: Any, log_c: Any, j: int) -> float:
    slack: float = (x[j] - x[j - 1]) - (log_c[j] - log_c[j - 1])
    return slack


@hot
def _wall(x: Any, rival: int, log_c: Any) -> float:
    """Minus the logarithms of all distances to a bound; infinite outside."""
    total = 0.0
    for j in range(1, len(x)):
        low, high = x[j] - LOWEST, -x[j]
        if low <= 0.0 or high <= 0.0:
            return np.inf
        total -= log(low) + log(high)
        if j != rival:
            slack = _slack(x, log_c, j)
            if slack <= 0.0:
                return np.inf
            total -= log(slack)
    return total


@hot
def _reduce(
    x: Any, rival: int, log_c: Any, unknown: Any, slope: Any, bend: Any, barrier: float, g: Any, H: Any
) -> None:
    """Derivatives by the unknowns, of the distance and the barrier together."""
    m = len(x)
    g[:] = 0.0
    H[:] = 0.0
    for j in range(1, m):
        a = unknown[j]
        if a < 0:
            continue
        low, high = 1.0 / (x[j] - LOWEST), -1.0 / x[j]
        g[a] += slope[j] - barrier * (low - high)
        H[a, a] += barrier * (low * low + high * high)
        for k in range(1, m):
            if unknown[k] >= 0:
                H[a, unknown[k]] += bend[j, k]
    for j in range(1, m):
        if j == rival:
            continue
        push = 1.0 / _slack(x, log_c, j)
        a, b = unknown[j], unknown[j - 1]
        g[a] -= barrier * push
        H[a, a] += barrier * push * push
        if b >= 0:
            g[b] += barrier * push
            H[b, b] += barrier * push * push
            H[a, b] -= barrier * push * push
            H[b, a] -= barrier * push * push


@hot
def _solve(H: Any, g: Any, step: Any) -> bool:
    """Write H^-1 g to `step`, by Cholesky in place; False where H is not positive."""
    d = len(g)
    for a in range(d):
        for b in range(a + 1):
            rest = H[a, b]
            for c in range(b):
                rest -= H[a, c] * H[b, c]
            if a == b:
                if not rest > 0.0:
                    return False
                H[a, a] = np.sqrt(rest)
            else:
                H[a, b] = rest / H[b, b]
    for a in range(d):
        rest = g[a]
        for c in range(a):
            rest -= H[a, c] * step[c]
        step[a] = rest / H[a, a]
    for a in range(d - 1, -1, -1):
        rest = step[a]
        for c in range(a + 1, d):
            rest -= H[c, a] * step[c]
        step[a] = rest / H[a, a]
    return True
