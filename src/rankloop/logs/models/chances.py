"""The likeliest chances behind what was hidden in part: expectation maximisation, then a quasi-Newton method.

Given a point, a model says for each of its chances how often it came true and how often it was tried, on average over
what is hidden. Their ratio is a step of expectation maximisation. Their difference, hits - tries x, is the slope of the
log likelihood in the log-odds of x (Fisher's identity), which is all that L-BFGS needs. EM is sure and slow near the
end; L-BFGS gets there in tens of steps where EM would take a hundred thousand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Numbers = NDArray[np.float64]
Expectation = Callable[[Numbers], tuple[Numbers, Numbers, float]]

_EDGE = 1e-9  # no chance comes closer to 0 or 1
_WARM_UP = 12  # steps of EM
_ROUNDS = 6  # of both methods in turn
_MEMORY = 20  # steps that L-BFGS remembers
_HIGHEST = float(logit(1.0 - _EDGE))
_ROUNDING = 1e-14  # the share of a sum that its last digits are


class Prior(NamedTuple):
    """Trials that are added to each chance, and how many of them come true: (0, 0) for none."""

    hits: Numbers
    tries: Numbers


class Maximum(NamedTuple):
    """Where the search ended."""

    x: Numbers
    log_likelihood: float  # of the log alone, without the prior
    steps: int
    slope: float
    converged: bool


def maximise(
    expect: Expectation, x: Numbers, *, prior: Prior, tolerance: float = 1e-4, max_steps: int = 2_000
) -> Maximum:
    """Climb from `x` until no slope is larger than `tolerance`, in units of the slope's own spread.

    That unit makes the tolerance a distance to the top in standard errors, where nothing is hidden. Where so much is
    hidden that standard errors are 100 times as large, a tenth of a thousandth is still only a hundredth of them.
    """
    taken = 0

    def look(x: Numbers) -> tuple[Numbers, Numbers, float, float]:
        nonlocal taken
        taken += 1
        hits, tries, value = expect(x)
        believed = _dot(prior.hits, np.log(x)) + _dot(prior.tries - prior.hits, np.log1p(-x))
        return hits + prior.hits, tries + prior.tries, value, float(value + believed)

    x = x.clip(_EDGE, 1.0 - _EDGE)
    for _ in range(_ROUNDS):
        for _ in range(_WARM_UP):
            hits, tries, value, _ = look(x)
            slope = _slope(x, hits, tries)
            if slope <= tolerance or taken >= max_steps:
                return Maximum(x, value, taken, slope, slope <= tolerance)
            x = np.divide(hits, tries, out=x.copy(), where=tries > 0).clip(_EDGE, 1.0 - _EDGE)
        x = _quasi_newton(look, x, tolerance=0.5 * tolerance, most=max_steps - taken)
    hits, tries, value, _ = look(x)
    slope = _slope(x, hits, tries)
    return Maximum(x, value, taken, slope, slope <= tolerance)


def _slope(x: Numbers, hits: Numbers, tries: Numbers) -> float:
    up = hits - tries * x
    held = ((x <= _EDGE) & (up < 0.0)) | ((x >= 1.0 - _EDGE) & (up > 0.0))
    spread = np.sqrt(np.maximum(tries * x * (1.0 - x), 1.0))
    return float(np.where(held, 0.0, np.abs(up) / spread).max(initial=0.0))


def _quasi_newton(
    look: Callable[[Numbers], tuple[Numbers, Numbers, float, float]],
    x: Numbers,
    *,
    tolerance: float,
    most: int,
) -> Numbers:
    # L-BFGS in log-odds, in units of each chance's own error, so that those of a rare item and of a position are alike.
    # (SciPy's wakes the threads of BLAS for vectors this short, which takes a hundred times as long.)
    hits, tries, _, value = look(x)
    unit = 1.0 / np.sqrt(np.maximum(tries * x * (1.0 - x), 1e-2))
    edge = _HIGHEST / unit
    z, slope = logit(x) / unit, (hits - tries * x) * unit
    moves: deque[tuple[Numbers, Numbers, float]] = deque(maxlen=_MEMORY)
    left = most
    while left > 0:
        held = ((z <= -edge) & (slope < 0.0)) | ((z >= edge) & (slope > 0.0))
        ahead = np.where(held, 0.0, _direction(slope, moves))
        rise = _dot(ahead, slope)
        if rise <= 0.0:
            moves.clear()
            ahead = np.where(held, 0.0, slope)
            rise = _dot(ahead, slope)
        length = 1.0 if moves else min(1.0, 1.0 / np.sqrt(max(rise, 1e-300)))
        while True:
            there = (z + length * ahead).clip(-edge, edge)
            x = _chances(there, unit)
            hits, tries, _, reached = look(x)
            left -= 1
            if reached >= value + 1e-4 * length * rise - _ROUNDING * abs(value):
                break
            length *= 0.3
            if left <= 0 or length < 1e-10:
                return _chances(z, unit)
        after = (hits - tries * x) * unit
        step, bend = there - z, slope - after
        curve = _dot(step, bend)
        if curve > 1e-12 * _dot(bend, bend):
            moves.append((step, bend, curve))
        z, slope, value = there, after, reached
        if _slope(x, hits, tries) <= tolerance:
            break
    return _chances(z, unit)


def _chances(z: Numbers, unit: Numbers) -> Numbers:
    x: Numbers = expit(z * unit)
    return x


def _direction(slope: Numbers, moves: deque[tuple[Numbers, Numbers, float]]) -> Numbers:
    # The two loops of Nocedal (1980).
    ahead, shares = slope.copy(), []
    for step, bend, curve in reversed(moves):
        share = _dot(step, ahead) / curve
        shares.append(share)
        ahead -= share * bend
    if moves:
        _, bend, curve = moves[-1]
        ahead *= curve / _dot(bend, bend)
    for (step, bend, curve), share in zip(moves, reversed(shares), strict=True):
        ahead += (share - _dot(bend, ahead) / curve) * step
    return ahead


def _dot(a: Numbers, b: Numbers) -> float:
    return float((a * b).sum())
