"""Moves a ranker from one database to another, while the service runs.

The log is copied while it grows. Then the ranker is frozen: its old database refuses whatever is written to it, and the
rest of the log is copied. It belongs to the new database from the moment in which that says so, in one transaction; up
to there it belongs to the old one. Every step is such a transaction and may be the last: the same command, given
again, finds what is there and completes it; given with the old database, it goes back.

Each run has a mark of its own and writes it to what it has in hand, so that a run that slept changes nothing after
another one has taken over.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

import asyncpg

from rankloop.serving.failpoints import reach
from rankloop.serving.log.digests import beginning, link_of
from rankloop.serving.log.records import KINDS, Row
from rankloop.serving.stores.contract import Missing, StoreError
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.postgres_errors import LOST, without_password

_PAGE = 1_000
_LOG = ("seq", "at", "kind", "event", "decision", "digest", "body", "link")
_SNAPSHOT = ("seq", "at", "epoch", "code", "config", "hash", "state", "link", "seal")
_COLUMNS = ", ".join(_LOG)
_SNAPSHOTS = ", ".join(_SNAPSHOT)


class Moved(NamedTuple):
    """What came of a move."""

    rows: int
    link: bytes
    copied: int


class _Ranker(NamedTuple):
    """What a database says of the ranker."""

    id: int
    place: str
    moves: int
    last_seq: int
    last_at: int
    link: bytes
    origin: str | None


class _Database:
    """A connection to one of the databases, and what the ranker is there."""

    def __init__(self, store: PostgresStore, connection: Any, ranker: str) -> None:
        self.timeline = store.timeline
        self.label = store.label
        self.connection = connection
        self._ranker = ranker
        self.found: _Ranker | None = None

    async def look(self) -> None:
        sql = "SELECT id, place, moves, last_seq, last_at, link, origin FROM ranker WHERE name = $1"
        row = await self.connection.fetchrow(sql, self._ranker)
        self.found = None if row is None else _Ranker(*row)

    @property
    def there(self) -> _Ranker:
        assert self.found is not None
        return self.found

    def has(self, *places: str) -> bool:
        return self.found is not None and self.found.place in places

    async def finish(self) -> None:
        """Leave a mark that the ranker has gone, and nothing else of it."""
        async with self.connection.transaction():
            await self.connection.execute(
                "UPDATE ranker SET place = 'gone', mover = '' WHERE id = $1", self.there.id
            )
            for table in ("log", "snapshot"):
                await self.connection.execute(f"DELETE FROM {table} WHERE ranker = $1", self.there.id)
        await self.look()


async def move(ranker: str, stores: Sequence[PostgresStore], to: int) -> Moved:
    """Move a ranker to another database, or complete a move that was interrupted."""
    async with contextlib.AsyncExitStack() as stack:
        databases = []
        try:
            for store in stores:
                connection = await asyncpg.connect(
                    store.url, server_settings={"search_path": store.schema}, timeout=10
                )
                stack.push_async_callback(connection.close)
                databases.append(_Database(store, connection, ranker))
            return await _Move(ranker, databases, databases[to]).run()
        except (asyncpg.PostgresError, *LOST) as error:
            told = ", ".join(without_password(store.url) for store in stores)
            raise StoreError(f"the move stopped, give the command again: {error} ({told})") from error


class _Move:
    """One run."""

    def __init__(self, ranker: str, databases: list[_Database], target: _Database) -> None:
        self._ranker = ranker
        self._databases = databases
        self._target = target
        self._mark = secrets.token_hex(8)
        self._copied = 0

    async def run(self) -> Moved:
        for one in self._databases:
            await one.look()
        source = self._source()
        await self._clear(source)
        if source is self._target:
            await source.connection.execute(
                "UPDATE ranker SET place = 'here', mover = '' WHERE id = $1 AND place = 'leaving'",
                source.there.id,
            )
        else:
            await self._bring(source)
        await self._name()
        reach("move-named")
        for one in self._databases:
            if one is not self._target and one.has("leaving"):
                await one.finish()
        reach("move-gone")
        await self._target.look()
        return Moved(self._target.there.last_seq, self._target.there.link, self._copied)

    def _source(self) -> _Database:
        """Who has it: it may be leaving one database, and be in another already."""
        having = [one for one in self._databases if one.has("here", "leaving")]
        if not having:
            raise Missing(f"there is no ranker {self._ranker!r}")
        return max(having, key=lambda one: (one.has("here"), one.there.moves))

    async def _clear(self, source: _Database) -> None:
        """Take away what a run with another destination has brought, before anything else is done."""
        for one in self._databases:
            if one is source or not one.has("arriving") or (one is self._target):
                continue
            sql = "UPDATE ranker SET place = 'gone', mover = '' WHERE id = $1 AND place = 'arriving' RETURNING id"
            if await one.connection.fetchval(sql, one.there.id) is None:
                raise StoreError(f"ranker {self._ranker!r} is being moved by another command: try again")
            await one.finish()
        if self._target is not source and self._target.has("here", "leaving"):
            if source.there.moves <= self._target.there.moves or self._target.has("here"):
                raise StoreError(
                    f"{self._target.label} says that it has ranker {self._ranker!r} too, as it was before it was "
                    "moved: has that database come back from a copy? Archive the ranker there, with that database alone"
                )
            await self._target.finish()  # it had left from here, and is to come back

    async def _bring(self, source: _Database) -> None:
        origin = source.there.origin or source.timeline
        sql = "SELECT closed_through FROM ranker WHERE id = $1"
        if await source.connection.fetchval(sql, source.there.id):
            raise StoreError(f"ranker {self._ranker!r} has history in segments, and cannot be moved yet")
        await self._begin(source, origin)
        reach("move-begun")
        if source.has("here"):
            await self._copy(source)
        reach("move-copying")
        frozen = await source.connection.fetchrow(
            "UPDATE ranker SET place = 'leaving', mover = $2 WHERE id = $1 AND place IN ('here', 'leaving') "
            "AND name = $3 RETURNING last_seq, link, moves",
            source.there.id,
            self._mark,
            self._ranker,
        )
        if frozen is None:
            await self._target.finish()
            raise Missing(f"there is no ranker {self._ranker!r} any more")
        reach("move-frozen")
        await self._copy(source)
        await self._copy_snapshots(source)
        reach("move-copied")
        sql = (
            "UPDATE ranker SET place = 'here', mover = '', moves = $4 WHERE id = $1 AND place = 'arriving' "
            "AND mover = $5 AND last_seq = $2 AND link = $3 RETURNING id"
        )
        last, link, moves = frozen
        arrived = await self._target.connection.fetchval(
            sql, self._target.there.id, last, link, moves + 1, self._mark
        )
        if arrived is None:
            raise self._taken_over()
        reach("move-arrived")
        await source.look()

    async def _begin(self, source: _Database, origin: str) -> None:
        """Make room for the ranker, or take over what another run has copied, where it is the beginning of the log."""
        connection, first = self._target.connection, beginning(origin, self._ranker)
        sql = (
            "INSERT INTO ranker (name, place, mover, origin, link) VALUES ($1, 'arriving', $2, $3, $4) "
            "ON CONFLICT (name) DO UPDATE SET place = 'arriving', mover = $2, origin = $3, link = $4, "
            "last_seq = 0, last_at = 0, ahead = 0 WHERE ranker.place = 'gone'"
        )
        await connection.execute(sql, self._ranker, self._mark, origin, first)
        sql = "UPDATE ranker SET mover = $2 WHERE name = $1 AND place = 'arriving' RETURNING id"
        if await connection.fetchval(sql, self._ranker, self._mark) is None:
            raise self._taken_over()
        await self._target.look()
        there = self._target.there
        if there.last_seq:
            sql = "SELECT link FROM log WHERE ranker = $1 AND seq = $2"
            if await source.connection.fetchval(sql, source.there.id, there.last_seq) != there.link:
                await self._target.finish()
                await self._begin(source, origin)

    async def _copy(self, source: _Database) -> None:
        """Copy rows from where the copy ends; every digest is computed from what is read back."""
        sql = f"SELECT {_COLUMNS} FROM log WHERE ranker = $1 AND seq > $2 ORDER BY seq LIMIT $3"
        while page := await source.connection.fetch(sql, source.there.id, self._target.there.last_seq, _PAGE):
            await self._write(page)
            if len(page) < _PAGE:
                return

    async def _write(self, page: list[Any]) -> None:
        connection, there = self._target.connection, self._target.there
        async with connection.transaction():
            sql = "SELECT last_seq FROM ranker WHERE id = $1 AND place = 'arriving' AND mover = $2 FOR UPDATE"
            if await connection.fetchval(sql, there.id, self._mark) != there.last_seq:
                raise self._taken_over()
            await connection.copy_records_to_table(
                "log", records=[(there.id, *row) for row in page], columns=("ranker", *_LOG)
            )
            sql = f"SELECT {_COLUMNS} FROM log WHERE ranker = $1 AND seq > $2 ORDER BY seq"
            written = await connection.fetch(sql, there.id, there.last_seq)
            seq, link = there.last_seq, there.link
            for seq, at, kind, event, decision, digest, body, told in written:
                link = link_of(Row(seq, at, KINDS[kind], event, body, digest, decision), link)
                if link != told:
                    raise StoreError(
                        f"row {seq} of ranker {self._ranker!r} is not what was written: its digest differs"
                    )
            if [tuple(row) for row in written] != [tuple(row) for row in page]:
                raise StoreError(f"rows after {there.last_seq} were not copied as they are")
            await connection.execute(
                "UPDATE ranker SET last_seq = $2, last_at = $3, link = $4 WHERE id = $1",
                there.id,
                seq,
                page[-1]["at"],
                link,
            )
        self._copied += len(page)
        await self._target.look()

    async def _copy_snapshots(self, source: _Database) -> None:
        connection, there = self._target.connection, self._target.there
        sql = f"SELECT {_SNAPSHOTS} FROM snapshot WHERE ranker = $1 ORDER BY seq"
        keys = await source.connection.fetch("SELECT id, subject, key, at, erased FROM subject_key")
        await connection.executemany(
            "INSERT INTO subject_key VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
            [tuple(row) for row in keys],
        )
        async with connection.transaction(), source.connection.transaction(readonly=True):
            await connection.execute("DELETE FROM snapshot WHERE ranker = $1", there.id)
            async for row in source.connection.cursor(
                sql, source.there.id, prefetch=1
            ):  # a state may be large
                await connection.copy_records_to_table(
                    "snapshot", records=[(there.id, *row)], columns=("ranker", *_SNAPSHOT)
                )

    async def _name(self) -> None:
        """Say in the first database that the name belongs to the new one."""
        sql = "INSERT INTO home VALUES ($1, $2) ON CONFLICT (ranker) DO UPDATE SET database = $2"
        await self._databases[0].connection.execute(sql, self._ranker, self._target.timeline)

    def _taken_over(self) -> StoreError:
        return StoreError(
            f"another command moves ranker {self._ranker!r}: look where it is before giving this one again"
        )
