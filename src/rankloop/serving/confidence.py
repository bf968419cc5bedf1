"""Intervals of running means that may be watched at any time: however often they are looked at.

Let x_1, x_2, ... each be at least p_t - c_t, where the prediction p_t and the scale c_t are known before x_t. Then

    exp(lambda sum (x_t - E_t x_t) - sum psi(lambda, c_t) (x_t - p_t)^2),   psi(l, c) = (-log(1 - l c) - l c) / c^2,

is a nonnegative supermartingale for 0 <= lambda < 1 / c_t, by the inequality of Fan, Grama and Liu (2015). The mean of
30 of them, one for each lambda, stays below 1 / error for ever with a probability of 1 - error (Ville). Solved for the
sum, that is a lower bound of the mean of the E_t x_t so far: whatever changes meanwhile, and however large x_t can be.

- Howard, Ramdas, McAuliffe and Sekhon (2021): time-uniform, nonparametric, nonasymptotic confidence sequences.
- Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2022): anytime-valid off-policy inference. As there, the upper
  bound is the lower one of what was missed, so that weights need no bound, and an interval is as wide as they make it.
"""

from __future__ import annotations

import math

import msgspec

from rankloop.feedback.anytime import ERROR, reach

__all__ = ["ERROR", "Bounds", "Watched", "reach"]
_LEAST = -10  # scales below 2^-10 count as that


class _Side(msgspec.Struct, array_like=True):
    """One sum, and the squares by scale that bound it from below."""

    total: float = 0.0
    spread: dict[int, float] = {}

    def add(self, x: float, predicted: float, below: float) -> None:
        fraction, scale = math.frexp(below)
        scale = max(scale - (fraction == 0.5), _LEAST)
        self.total += x
        self.spread[scale] = self.spread.get(scale, 0.0) + (x - predicted) ** 2


class Bounds(msgspec.Struct, frozen=True):
    """A mean, and bounds that hold at all times."""

    mean: float
    low: float
    high: float


class Watched(msgspec.Struct):
    """Running sums over lists: what they got, and what they missed of what was possible.

    Both may be weighted estimates, as long as neither is negative and their means sum to `possible`.
    """

    n: int = 0
    possible: float = 0.0
    got: _Side = msgspec.field(default_factory=_Side)
    missed: _Side = msgspec.field(default_factory=_Side)

    def add(self, got: float, missed: float, possible: float, *, lists: int = 1) -> None:
        """Count one list, or several together."""
        for side, x in ((self.got, got), (self.missed, missed)):
            predicted = min(lists * side.total / self.n, possible) if self.n else possible / 2
            side.add(x, predicted, predicted)
        self.n += lists
        self.possible += possible

    def add_difference(self, x: float, low: float, high: float) -> None:
        """Count a difference that is known beforehand to be between `low` and `high`."""
        predicted = min(max(self.got.total / self.n, low), high) if self.n else 0.0
        self.got.add(x, predicted, predicted - low)
        self.missed.add(-x, -predicted, high - predicted)
        self.n += 1

    def bounds(self, error: float = ERROR) -> Bounds | None:
        """Of the mean for each list; None before there is one, and where the bounds exclude each other."""
        if not self.n:
            return None
        low = (self.got.total - float(reach(self.got.spread, error / 2))) / self.n
        high = (self.possible - self.missed.total + float(reach(self.missed.spread, error / 2))) / self.n
        if low > high:
            return None
        mean = (self.got.total + self.possible - self.missed.total) / (2 * self.n)
        return Bounds(min(max(mean, low), high), low, high)
