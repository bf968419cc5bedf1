"""What a replica knows of its database's clock, by a clock of its own that nobody can set."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from rankloop.serving.log_clock import DRIFT, TOLERANCE, since_boot

_log = logging.getLogger("rankloop.serving")
_QUICK = 1.0  # seconds in which an answer must be there to tell the time


class DatabaseClock:
    """Tells the database, with each batch, what time it must be; where that is far off, its clock was set.

    seconds: how long a call may take: so far off the time may be because the call was late.
    """

    def __init__(self, *, seconds: float, steady: Callable[[], float] = since_boot) -> None:
        self._steady = steady
        self._seconds = seconds
        self._seen: tuple[int, float] | None = (
            None  # the time of the logs, in milliseconds, and when it was told
        )
        self.behind = 0.0  # seconds that the clock of the logs is behind the database's
        self.jumps = 0

    def expected(self) -> tuple[int | None, int, int]:
        """The time that it must be, how far off it may be, both in milliseconds; and the jumps that are known."""
        if self._seen is None:
            return None, 0, 0
        told, at = self._seen
        passed = max(0.0, self._steady() - at)
        most = TOLERANCE + _QUICK + self._seconds + DRIFT * passed
        return told + round(1000 * passed), round(1000 * most), self.jumps

    async def look(self, ask: Callable[..., Awaitable[Any]]) -> None:
        """Have the database look at its clock, and learn what time it is. A jump is told."""
        first, began = self._seen is None, self._steady()
        now, behind, jumps = await ask(*self.expected())
        ended = self._steady()
        if ended - began <= _QUICK or jumps != self.jumps:
            self._seen = now, ended
        self.behind = behind / 1000
        if jumps != self.jumps and not first:
            _log.warning(
                "the clock of the database jumped; the clock of the logs goes on evenly, %+.1f s apart from it",
                -self.behind,
            )
        self.jumps = jumps

    def remarks(self) -> list[str]:
        """What is not as usual."""
        if not self.behind:
            return []
        return [f"the clock of the database jumped; it is {self.behind:+.1f} s from that of the logs"]
