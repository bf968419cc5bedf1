"""The part of the SQLite store that reads rows from segments, and moves rows there."""

from __future__ import annotations

import abc
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw

from rankloop.serving.log.records import Row
from rankloop.serving.stores import sqlite_file, sqlite_segments, sqlite_snapshots
from rankloop.serving.stores.contract import Missing, Snapshot, Store
from rankloop.serving.stores.segments.closed_history import ClosedHistory
from rankloop.serving.stores.segments.manifest import Segment, folder_name
from rankloop.serving.stores.sqlite_append import Known
from rankloop.serving.stores.sqlite_schema import SEQ, SEQ_BITS

Result = TypeVar("Result")
_ROWS = "id > ? AND id <= ? ORDER BY id LIMIT ?"


class SQLiteHistory(Store):
    """What an SQLite store does with closed history. The rest is in `SQLiteStore`."""

    read_only: bool
    segment_folder: Path
    _known: Known
    _closed: dict[str, ClosedHistory]
    _reader: apsw.Connection
    _writer: apsw.Connection

    @property
    @abc.abstractmethod
    def path(self) -> Path:
        """The file."""

    @abc.abstractmethod
    async def _read(self, call: Callable[[], Result], *, rows: int = 1) -> Result:
        """Run `call` in the thread that reads."""

    @abc.abstractmethod
    async def _write(self, work: Callable[[], Result], then: Callable[[], None] = lambda: None) -> Result:
        """Run `work` in one transaction, and `then` after it, in the thread that writes."""

    @abc.abstractmethod
    async def _alone(self, work: Callable[[], None]) -> None:
        """Run `work` in the thread that writes, outside of a transaction."""

    @abc.abstractmethod
    def _log(self, ranker: str, which: str, values: tuple[Any, ...]) -> list[Row]:
        """Rows of the live log."""

    def _closed_part(self, ranker: str, *, again: bool = False) -> ClosedHistory:
        """What is in segments. Who only reads looks again: another process may have moved rows meanwhile."""
        number = self._known.ids[ranker]
        closed = self._closed.get(ranker)
        if closed is None:
            first = list(self._reader.execute("SELECT link FROM log WHERE id = ?", (number << SEQ_BITS | 1,)))
            folder = self.segment_folder / folder_name(ranker, first[0][0] if first else b"")
            closed = self._closed[ranker] = ClosedHistory(folder, may_write=not self.read_only)
        elif not self.read_only and not again:
            return closed
        with sqlite_file.read_errors(self.path):
            closed.add(sqlite_segments.listed(self._reader, number, after=closed.through))
        return closed

    def _page(self, ranker: str, after: int, limit: int) -> list[Row]:
        base = self._known.ids[ranker] << SEQ_BITS

        def live(after: int, limit: int) -> list[Row]:
            return self._log(ranker, _ROWS, (base + after, base | SEQ, limit))

        rows = live(after, limit)
        gap = bool(rows) and rows[-1].seq != after + len(rows)
        return self._closed_part(ranker, again=gap).page(rows, after=after, limit=limit, rest=live)

    def _snapshot(self, ranker: str, seq: int) -> Snapshot | None:
        number = self._known.ids.get(ranker)
        found = sqlite_snapshots.read(self._reader, number, seq)
        return found if found or number is None else self._closed_part(ranker).snapshot(seq)

    async def history(self, ranker: str) -> ClosedHistory:
        if ranker not in self._known.ids:
            raise Missing(f"there is no ranker {ranker!r}")
        return await self._read(lambda: self._closed_part(ranker))

    async def add_segment(self, ranker: str, segment: Segment, *, links: dict[int, bytes]) -> None:
        number = self._known.ids[ranker]
        await self._write(
            lambda: sqlite_segments.add(self._writer, number, segment, links),
            then=lambda: self._closed[ranker].add([segment]),
        )

    async def clear(self, ranker: str, *, keep: list[int], limit: int) -> bool:
        number, through = self._known.ids[ranker], self._closed[ranker].through
        return await self._write(
            lambda: sqlite_segments.clear(self._writer, number, through=through, keep=keep, limit=limit)
        )

    async def left_over(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        through = (await self.history(ranker)).through
        base = self._known.ids[ranker] << SEQ_BITS
        values = (base + after, base | through, limit)
        return await self._read(lambda: self._log(ranker, _ROWS, values), rows=limit)

    async def give_space_back(self, *, whole: bool = False) -> None:
        if whole:
            await self._alone(lambda: sqlite_segments.rewrite(self._writer))
        while await self._write(lambda: sqlite_segments.give_back(self._writer)):
            pass
