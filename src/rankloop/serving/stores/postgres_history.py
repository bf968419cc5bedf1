"""The part of the PostgreSQL store that reads rows from segments, and moves rows there.

Which rows are in segments is in the database, where all replicas see it; the segments are files in a folder that all of
them reach. A replica that does not know of the newest segment cannot append: it looks again, and tries once more.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rankloop.serving.log.records import NUMBER_OF_KIND, Entry, Kind, Row
from rankloop.serving.stores.contract import Appended, Damaged, Missing, Store
from rankloop.serving.stores.postgres_errors import NewSegment
from rankloop.serving.stores.segments.closed_history import ClosedHistory
from rankloop.serving.stores.segments.manifest import Segment, folder_name
from rankloop.serving.stores.segments.segmented import MANY

Result = TypeVar("Result")


class PostgresHistory(Store):
    """What a store in PostgreSQL does with closed history. The rest is in `PostgresStore`."""

    segment_folder: Path | None
    _closed: dict[int, ClosedHistory]  # by the number of the ranker
    _ids: dict[str, int]

    @abc.abstractmethod
    async def _do(self, work: Callable[[Any], Awaitable[Result]]) -> Result:
        """Run `work` with a connection."""

    @abc.abstractmethod
    async def _id(self, ranker: str) -> int | None:
        """The number of a ranker."""

    @abc.abstractmethod
    async def _append_live(
        self, entries: list[Entry], *, at: int, epoch: int | None, through: list[int]
    ) -> list[Appended]:
        """Append to the live log; `NewSegment` where a ranker has other segments than up to the row of `through`."""

    @abc.abstractmethod
    async def _live(self, ranker: str, which: str, *values: Any) -> list[Row]:
        """Rows of the live log; the number of the ranker is the first value."""

    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        while True:
            there = await self._in_segments(entries)
            rest = [entry for i, entry in enumerate(entries) if i not in there]
            through = [self._through(entry.ranker) for entry in rest]
            try:
                found = await self._append_live(rest, at=at, epoch=epoch, through=through) if rest else []
            except NewSegment:
                await self.rankers()
                for name in {entry.ranker for entry in entries}:
                    await self._closed_part(name, again=True)
                continue
            fresh = iter(found)
            return [Appended(there[i], False) if i in there else next(fresh) for i in range(len(entries))]

    def _through(self, ranker: str) -> int:
        closed = self._closed.get(self._ids.get(ranker, -1))
        return 0 if closed is None else closed.through

    async def _in_segments(self, entries: list[Entry]) -> dict[int, Row]:
        """The rows that are in segments already, by the place of their entry."""
        there: dict[int, Row] = {}
        for name in {entry.ranker for entry in entries}:
            if not self._through(name):
                continue
            closed = await self._closed_part(name)
            places = [i for i, entry in enumerate(entries) if entry.ranker == name]
            known = await asyncio.to_thread(closed.known, [entries[i] for i in places])
            there.update({i: row for i, row in zip(places, known, strict=True) if row is not None})
        return there

    async def _closed_part(self, ranker: str, *, again: bool = False) -> ClosedHistory:
        """What is in segments; with `again`, as the database says it is now."""
        number = await self._id(ranker)
        if number is None:
            return ClosedHistory(Path())
        closed = self._closed.get(number)
        if closed is None or again:
            after = 0 if closed is None else closed.through
            sql = "SELECT entry FROM segment WHERE ranker = $1 AND last > $2 ORDER BY last"
            found = await self._do(lambda one: one.fetch(sql, number, after))
            segments = [msgspec.json.decode(entry, type=Segment) for (entry,) in found]
            if segments and self.segment_folder is None:
                raise Damaged(
                    f"rows 1 to {segments[-1].last} of {ranker!r} are in segments: name their folder with --segments"
                )
            if closed is None:
                sql = "SELECT link FROM log WHERE ranker = $1 AND seq = 1"
                first: bytes = await self._do(lambda one: one.fetchval(sql, number)) or b""
                folder = (self.segment_folder or Path()) / folder_name(ranker, first)
                closed = self._closed.setdefault(number, ClosedHistory(folder, may_write=True))
            closed.add(segments)
        return closed

    async def read(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        which = "seq > $2 ORDER BY seq LIMIT $3"
        live = await self._live(ranker, which, after, limit)
        gap = bool(live) and live[-1].seq != after + len(live)
        closed = await self._closed_part(ranker, again=gap)
        if after >= closed.through or (len(live) == limit and not gap):
            return live
        found = await asyncio.to_thread(closed.rows, after, limit)
        if len(found) < limit:
            found += await self._live(ranker, which, closed.through, limit - len(found))
        return found

    async def find(self, ranker: str, kind: Kind, event_id: str) -> Row | None:
        found = await self._live(ranker, "kind = $2 AND event = $3", NUMBER_OF_KIND[kind], event_id)
        if found:
            return found[0]
        closed = await self._closed_part(ranker, again=True)
        return await asyncio.to_thread(closed.find, kind, event_id) if closed.segments else None

    async def _with_closed(self, ranker: str, told: dict[str, list[Row]]) -> dict[str, list[Row]]:
        """The rows about decisions, with those that are in segments."""
        missing = [decision for decision, rows in told.items() if not rows]
        if not missing:
            return told
        closed = await self._closed_part(ranker, again=True)
        for decision in missing if closed.segments else ():
            if old := await asyncio.to_thread(closed.story, decision):
                late = await self._live(ranker, "decision = $2 ORDER BY seq", decision)
                told[decision] = [*old, *(row for row in late if row.seq > closed.through)]
        return told

    async def history(self, ranker: str) -> ClosedHistory | None:
        if await self._id(ranker) is None:
            raise Missing(f"there is no ranker {ranker!r}")
        closed = await self._closed_part(ranker, again=True)
        return None if self.segment_folder is None else closed

    async def add_segment(self, ranker: str, segment: Segment, *, links: dict[int, bytes]) -> None:
        sql = "SELECT add_segment($1, $2, $3, $4, $5, $6::bigint[], $7::bytea[])"
        values = (
            segment.first,
            segment.last,
            bytes.fromhex(segment.link),
            msgspec.json.encode(segment).decode(),
        )
        number = await self._id(ranker)
        await self._do(lambda one: one.execute(sql, number, *values, list(links), list(links.values())))
        (await self._closed_part(ranker)).add([segment])

    async def clear(self, ranker: str, *, keep: list[int], limit: int) -> bool:
        number, through = await self._id(ranker), (await self._closed_part(ranker)).through
        sql = "SELECT clear_rows($1, $2, $3::int[], $4::bigint[], $5)"
        kinds = [NUMBER_OF_KIND[kind] for kind in MANY]
        return bool(await self._do(lambda one: one.fetchval(sql, number, through, kinds, keep, limit)))

    async def left_over(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        through = (await self._closed_part(ranker)).through
        return await self._live(ranker, "seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4", after, through, limit)
