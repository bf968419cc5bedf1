"""A store that replicas share, which crashes, is damaged and loses rows when a test asks for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from rankloop.serving.clock import LogClock
from rankloop.serving.log.records import Entry, Row
from rankloop.serving.stores.contract import Appended
from tests.serving.memory_store import MemoryStore


class Crash(BaseException):
    """The process is gone."""


class SharedStore(MemoryStore):
    """One log for two engines, and a place to crash: before or after a batch is durable.

    clock: the one that its rows are stamped by, as a database has one; without it, that of each engine.
    """

    shared = True

    def __init__(self, clock: LogClock | None = None) -> None:
        super().__init__()
        self._clock = clock
        self.crash: str | None = None
        self._creating = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def creating(self) -> AsyncIterator[None]:
        async with self._creating:
            yield

    def swap(self, ranker: str, old: Row, new: Row) -> None:
        """Put another row in the place of one."""
        self._logs[ranker][old.seq - 1] = new
        self._index[ranker, old.kind, old.event_id] = new
        for rows in self._about.values():
            rows[:] = [new if row is old else row for row in rows]

    def forget(self, ranker: str, lost: list[Row]) -> None:
        """Lose the newest rows."""
        for row in lost:
            del self._index[ranker, row.kind, row.event_id]
            for rows in self._about.values():
                rows[:] = [one for one in rows if one is not row]
        del self._logs[ranker][-len(lost) :]

    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        crash, self.crash = self.crash, None
        if crash == "before":
            raise Crash
        done = await super().append(entries, at=self._now(at), epoch=epoch)
        if crash == "after":
            raise Crash
        return done

    async def time(self, ranker: str, *, at: int) -> int:
        return await super().time(ranker, at=self._now(at))

    def _now(self, at: int) -> int:
        return at if self._clock is None else self._clock.now()
