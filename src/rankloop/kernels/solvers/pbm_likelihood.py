"""The likeliest attractions and examinations behind clicks counted by position and item.

S[j, i] clicks in N[j, i] displays of item i at position j, each with probability theta_i kappa_j. Given kappa, the
likelihood is concave in each theta_i by itself, and the other way round, so the two take turns (Komiyama, Honda and
Takeda 2017). Only products are seen: kappa_0 is 1, and kappa does not rise from position to position.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import hot

_HIGHEST = 1.0 - 1e-12
_STEPS = 60
_SETTLED = 1e-9


@hot
def item_root(S: Any, N: Any, kappa: Any, i: int, start: float) -> float:
    """The likeliest theta_i in [0, 1].

    That is the root of sum_j (N kappa theta - S) / (1 - kappa theta), which rises and is convex: one for Newton.
    """
    clicks = 0.0
    for j in range(len(kappa)):
        clicks += S[j, i]
    if clicks <= 0.0:
        return 0.0
    low, high = 0.0, _HIGHEST
    theta = start if low < start < high else 0.5
    for _ in range(_STEPS):
        excess, slope = 0.0, 0.0
        for j in range(len(kappa)):
            rest = 1.0 / (1.0 - kappa[j] * theta)
            excess += (N[j, i] * kappa[j] * theta - S[j, i]) * rest
            slope += kappa[j] * (N[j, i] - S[j, i]) * rest * rest
        if excess > 0.0:
            high = theta
        else:
            low = theta
        after = theta - excess / slope if slope > 0.0 else high
        if not low < after < high:
            after = 0.5 * (low + high) if high < _HIGHEST else 0.5 * (theta + _HIGHEST)
        if abs(after - theta) <= 1e-14:
            return after
        theta = after
    return theta


@hot
def _position_root(S: Any, N: Any, theta: Any, first: int, last: int, start: float) -> float:
    # The same for one examination shared by the positions first .. last.
    clicks = 0.0
    for j in range(first, last + 1):
        for i in range(len(theta)):
            clicks += S[j, i]
    if clicks <= 0.0:
        return 0.0
    low, high = 0.0, _HIGHEST
    kappa = start if low < start < high else 0.5
    for _ in range(_STEPS):
        excess, slope = 0.0, 0.0
        for j in range(first, last + 1):
            for i in range(len(theta)):
                rest = 1.0 / (1.0 - theta[i] * kappa)
                excess += (N[j, i] * theta[i] * kappa - S[j, i]) * rest
                slope += theta[i] * (N[j, i] - S[j, i]) * rest * rest
        if excess > 0.0:
            high = kappa
        else:
            low = kappa
        after = kappa - excess / slope if slope > 0.0 else high
        if not low < after < high:
            after = 0.5 * (low + high) if high < _HIGHEST else 0.5 * (kappa + _HIGHEST)
        if abs(after - kappa) <= 1e-14:
            return after
        kappa = after
    return kappa


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
        value = _position_root(S, N, theta, first, last, kappa[j])
        while first > 1 and value > kappa[first - 1]:
            pooled = kappa[first - 1]
            while first > 1 and kappa[first - 1] == pooled:
                first -= 1
            value = _position_root(S, N, theta, first, last, value)
        for k in range(first, last + 1):
            moved = max(moved, abs(kappa[k] - value))
            kappa[k] = value
        j += 1
    return moved
