"""The clock that rows are stamped by, and IDs that sort by time.

The clock is the time of day, but never further than a clock that cannot be set says.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import time
from collections.abc import Callable

_log = logging.getLogger("rankloop.serving")
# Seconds between two looks that are no jump: a clock that is being adjusted runs a little off.
TOLERANCE = 1.0
DRIFT = 0.001  # and this share of the time between them


def since_boot() -> float:
    """Seconds since the machine started, its sleep included where the system counts it; nobody can set them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class LogClock:
    """The time of day as long as it runs evenly. A jump of it is noticed, counted, told, and left out.

    wall: the time of day in seconds. steady: seconds that only ever pass.
    """

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float]) -> None:
        self._wall = wall
        self._steady = steady
        self._last = wall(), steady()
        self.offset = 0.0  # how far the time of day is ahead of this clock
        self.jumps = 0

    def time_of_day(self) -> float:
        """Seconds since 1970 as the machine says now, set right since the start or not: what others compare with."""
        return self._wall()

    def now(self) -> int:
        wall, steady = self._wall(), self._steady()
        passed = max(0.0, steady - self._last[1])
        jump = wall - self._last[0] - passed
        self._last = wall, steady
        if abs(jump) > TOLERANCE + DRIFT * passed:
            self.offset += jump
            self.jumps += 1
            if abs(self.offset) < TOLERANCE:  # it was set right again
                self.offset = 0.0
            _log.warning(
                "the clock of this machine jumped by %+.1f s; the log's clock goes on evenly, %+.1f s apart from it",
                jump,
                -self.offset,
            )
        return int((wall - self.offset) * 1000)


def next_time(at: int, *, last: int, ahead: int) -> tuple[int, int]:
    """The time of a ranker's next row, and how far its clock then is ahead of the given one.

    The time of a log never falls. Where the clock was set back, its own goes on from the last row at the same pace.

    >>> next_time(5_000, last=4_000, ahead=0)
    (5000, 0)
    >>> next_time(5_000, last=9_000, ahead=0)  # the clock was set back
    (9000, 4000)
    >>> next_time(6_000, last=9_000, ahead=4_000)  # and a second later
    (10000, 4000)
    """
    time = at + ahead
    return (time, ahead) if time >= last else (last, last - at)


def held(now: float, *, until: float, seconds: float) -> bool:
    """Whether a lease still holds. One that reaches further than any lease was taken before the clock was set back.

    >>> [held(100.0, until=until, seconds=5.0) for until in (104.0, 99.0, 9e9)]
    [True, False, False]
    """
    return 0 < until - now <= 2 * seconds


_PROCESS = secrets.token_hex(6)
_count = itertools.count()


def new_id() -> str:
    """Return an identifier that no other process makes and that sorts by time, so that an index grows at its end.

    >>> new_id() < new_id()
    True
    """
    return f"{time.time_ns() // 1_000_000:012x}-{_PROCESS}-{next(_count):08x}"
