"""The likeliest attractions and examinations behind clicks counted by position and item.

S[j, i] clicks in N[j, i] displays of item i at position j, each with probability theta_i kappa_j. Given kappa, the
likelihood is concave in each theta_i by itself, and vice versa, so the two alternate (Komiyama, Honda and
Takeda 2017). Only products are observed: kappa_0 is 1, and kappa does not rise from position to position.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import hot

_HIGHEST = 1.0 - 1e-12
_STEPS = 60
_CLOSE = 1e-14
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
        if abs(after - x) <= _CLOSE:
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
