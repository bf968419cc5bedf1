"""Retention in a running service: rankers take turns, one segment at a time, beside the requests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from rankloop.serving.log.digests import BadRow
from rankloop.serving.retention import MOST, Retention, close_history
from rankloop.serving.stores.contract import StoreError

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine

_log = logging.getLogger("rankloop.serving")
_PAUSE = 1.0  # seconds between two looks
_ALL_AGAIN = 3_600.0  # seconds after which rankers to which nothing happens are looked at as well
AT_LEAST = 20_000  # rows of a segment
_FEW = 100  # segments, before they become larger with the history: there are never many


class Trimming:
    """Moves closed history of the rankers that changed to segments.

    at_least: rows below which no segment is made: so much more than the policy asks for may be live, or a hundredth
    of a long history.
    """

    def __init__(self, engine: Engine, retention: Retention, *, at_least: int = AT_LEAST) -> None:
        self._engine = engine
        self._retention = retention
        self._at_least = at_least
        self._task: asyncio.Task[None] | None = None
        self.changed: set[str] = set()

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._go_on())

    async def stop(self) -> None:
        """Stop; what was begun goes on with the next start."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        looked = -_ALL_AGAIN
        while True:
            await asyncio.sleep(_PAUSE)
            if loop.time() - looked >= _ALL_AGAIN:
                looked = loop.time()
                self.changed |= set(self._engine.rankers)
            await self.look()

    async def look(self) -> int:
        """Make the segments that are due, of rankers that changed; how many."""
        changed, self.changed = self.changed, set()
        made = 0
        for name in sorted(changed):
            try:
                while await self._trim(name):
                    made += 1
            except (StoreError, BadRow, ValueError, OSError) as error:
                _log.warning("closed history of ranker %r stays in the live log: %s", name, error)
        return made

    async def _trim(self, name: str) -> bool:
        engine = self._engine
        served = engine.rankers.get(name)
        if served is None or served.read_only or engine.broken or not engine.housekeeping.is_mine(name):
            return False
        closed = await engine.store.history(name)
        through = 0 if closed is None else closed.through
        now = await engine.store.time(name, at=engine.now())
        segment = await close_history(
            engine.store,
            name,
            self._retention,
            now=now,
            expired_through=served.fold.expire_cursor,
            at_least=min(MOST, max(self._at_least, through // _FEW)),
        )
        if segment is not None:
            _log.info("ranker %r: rows %d to %d are in %s", name, segment.first, segment.last, segment.file)
        return segment is not None
