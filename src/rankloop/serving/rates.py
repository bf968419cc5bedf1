"""Rates: how many requests a caller may send, as a bucket that fills evenly and holds a second's worth."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rankloop.serving.errors import RateLimited

_MOST_CALLERS = 10_000


class Rate:
    """So many a second for each caller, and as many at once.

    >>> seconds = iter([0.0, 0.0, 0.0, 0.5])
    >>> rate = Rate(2, clock=lambda: next(seconds))
    >>> rate.take("a"), rate.take("a")
    (None, None)
    >>> rate.take("a")
    Traceback (most recent call last):
    ...
    rankloop.serving.errors.RateLimited: limit reached: 2 requests a second
    >>> rate.take("a")
    """

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self._clock = clock
        self._left: dict[
            str, tuple[float, float]
        ] = {}  # of each caller: how many may come, and when that was so

    def take(self, caller: str, per_second: float | None = None) -> None:
        """Count one; `RateLimited` where it is one too many, with the rate of this caller where it has its own."""
        now, rate = self._clock(), per_second or self.per_second
        most = max(1.0, rate)
        left, then = self._left.get(caller, (most, now))
        left = min(most, left + (now - then) * rate)
        if left < 1:
            self._left[caller] = left, now
            raise RateLimited(
                f"limit reached: {rate:g} requests a second",
                retry_after=max(1, math.ceil((1 - left) / rate)),
            )
        if caller not in self._left and len(self._left) >= _MOST_CALLERS:
            self._left.clear()  # a flood of callers: all begin again
        self._left[caller] = left - 1, now

    def charge(self, caller: str, n: float) -> None:
        """Count `n` more of a caller who was let in: it may take them, and must wait longer for its next."""
        left, then = self._left.get(caller, (0.0, self._clock()))
        self._left[caller] = left - n, then
