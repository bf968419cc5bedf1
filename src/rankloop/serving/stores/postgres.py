"""The store in PostgreSQL, shared by replicas.

`seq` is taken under a lock on the ranker's own row, held until the commit: a sequence of the database would number rows
in another order than that in which they become visible, and a follower of the log would miss some. What must
happen together happens in one function inside the database, so that a batch is one message and one fsync.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import msgspec

from rankloop.serving.clock import DRIFT, TOLERANCE, since_boot
from rankloop.serving.failpoints import reach
from rankloop.serving.log.digests import archived_name, beginning, content, sealed
from rankloop.serving.log.records import KINDS, NUMBER_OF_KIND, Entry, Kind, Row
from rankloop.serving.stores import contract
from rankloop.serving.stores.contract import Store
from rankloop.serving.stores.segments import MANY, ClosedHistory, Segment, folder_name, in_order, rows_there

Result = TypeVar("Result")
_APPEND = (
    "SELECT place, fresh, seq, at, link, before, kind, event, body, digest, decision FROM append($1, $2::text[], "
    "$3::int[], $4::text[], $5::text[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bigint[], $10::bytea[], "
    "$11::bigint[], $12, $13, $14, $15, $16)"
)
_COLUMNS = (
    "seq, at, kind, event, body, digest, decision, link, coalesce((SELECT old.link FROM log AS old "
    "WHERE old.ranker = log.ranker AND old.seq = log.seq - 1), (SELECT gap.link FROM gap "
    "WHERE gap.ranker = log.ranker AND gap.seq = log.seq - 1)) AS before"
)
_SNAPSHOT = "seq, at, epoch, code, config, hash, state, link, seal"
_NEWEST_KEY = "SELECT id, key FROM subject_key WHERE subject = $1 ORDER BY at DESC, id LIMIT 1"
_MOMENT = "(SELECT coalesce({}, extract(epoch FROM clock_timestamp())::float8) AS moment) AS clock"
_NO_STATE = "''::bytea"
_ABOUT_LISTS: tuple[Kind, ...] = ("decision", "feedback", "expire")


class _Batch:
    """Entries as the function takes them: each once, and those of one ranker together.

    entries: what to append.
    through: for each, the last row of its ranker that is known to be in a segment.
    """

    def __init__(self, entries: list[Entry], through: list[int]) -> None:
        self._entries = entries
        firsts: dict[tuple[str, str, str], int] = {}
        # One that comes twice in a batch is found by its second coming, as it would be by a later batch.
        self._firsts = [
            firsts.setdefault((one.ranker, one.kind, one.event_id), i) for i, one in enumerate(entries)
        ]
        # In one order everywhere, so that two batches never wait for each other's locks.
        self._order = sorted(firsts.values(), key=lambda i: entries[i].ranker)
        ordered = [entries[i] for i in self._order]
        drawn = [one.drawn_from or (None, None) for one in ordered]
        self.columns: tuple[list[Any], ...] = (
            [one.ranker for one in ordered],
            [NUMBER_OF_KIND[one.kind] for one in ordered],
            [one.event_id for one in ordered],
            [one.decision for one in ordered],
            [one.digest for one in ordered],
            [one.body for one in ordered],
            [content(one) for one in ordered],
            [seq for seq, _ in drawn],
            [link for _, link in drawn],
            [through[i] for i in self._order],
        )

    def appended(self, answers: Iterable[Any], read: Callable[[Any, str], Row]) -> list[contract.Appended]:
        """What became of each entry; `read` makes a row of one that was there already, from what was told of it."""
        made: dict[int, contract.Appended] = {}
        for row in answers:
            place, fresh, seq, at, link, before, *_ = row
            i = self._order[place - 1]
            one = self._entries[i]
            if fresh:
                whole = Row(seq, at, one.kind, one.event_id, one.body, one.digest, one.decision, link, before)
            else:
                whole = read(row, one.ranker)
            made[i] = contract.Appended(whole, fresh)
        return [
            made[first] if first == i else contract.Appended(made[first].row, False)
            for i, first in enumerate(self._firsts)
        ]


class PostgresStore(Store):
    """A database that several services share.

    url: postgresql://user@host/name. schema: where the tables are, so that several stores fit in one database.
    database_clock: take the time from the database, so that replicas need not agree; the tests bring their own.
    allow_unsafe: whether to use a server that can lose what it has acknowledged, for tests.
    seconds: how long a call may take, all its attempts together.
    segments: the folder of closed history, which all replicas reach.
    """

    shared = True

    def __init__(
        self,
        url: str,
        *,
        schema: str = "rankloop",
        database_clock: bool = True,
        allow_unsafe: bool = False,
        seconds: float = 5.0,
        segments: Path | None = None,
    ) -> None:
        if not schema.isidentifier() or schema != schema.lower():
            raise ValueError(f"schema must be a plain lower-case name, got {schema!r}")
        self.url = url
        self.schema = schema
        self._database_clock = database_clock
        self._allow_unsafe = allow_unsafe
        self._seconds = seconds
        self._pool: Any = None
        self._listener: Any = None
        self._news = asyncio.Event()
        self._news_of: set[str] = set()
        self._pids: set[int] = set()  # of the connections that this process writes through
        self._ids: dict[str, int] = {}
        self.segment_folder = segments
        self._closed: dict[int, ClosedHistory] = {}
        self._clock = DatabaseClock(seconds=seconds)

    async def open(self) -> None:
        try:
            synchronous = await self._prepare()
            self._pool = await asyncpg.create_pool(
                self.url,
                min_size=1,
                max_size=4,
                timeout=self._seconds,
                reset=_nothing,
                init=None if self._allow_unsafe else check_durable_connection,
                server_settings={
                    "search_path": self.schema,
                    "application_name": "rankloop",
                    "synchronous_commit": synchronous,
                },
            )
        except (asyncpg.PostgresError, OSError) as error:
            raise contract.StoreError(f"cannot connect to {without_password(self.url)}: {error}") from error
        except (*LOST, ValueError) as error:
            raise contract.StoreError(
                f"cannot use the database {without_password(self.url)}: {error}; a URL looks like "
                "postgresql://user@host:5432/name"
            ) from error
        await self.look()
        await self._listen()

    async def _prepare(self) -> str:
        connection = await asyncpg.connect(self.url, timeout=self._seconds)
        try:
            synchronous = await check_durable_server(connection, allow_unsafe=self._allow_unsafe)
            self.timeline = await prepare(connection, self.schema)
        finally:
            await connection.close()
        return synchronous

    async def close(self) -> None:
        if self._listener is not None:
            with contextlib.suppress(Exception):
                await self._listener.close(timeout=2)
            self._listener = None
        if self._pool is not None:
            pool, self._pool = self._pool, None
            with contextlib.suppress(Exception):
                await asyncio.wait_for(pool.close(), 5)

    async def _listen(self) -> None:
        with contextlib.suppress(*LOST):
            self._listener = await asyncpg.connect(self.url, timeout=self._seconds)
            await self._listener.add_listener(f"{CHANNEL}_{self.schema}", self._hear)

    def _hear(self, connection: Any, pid: int, channel: str, ranker: str) -> None:
        if pid not in self._pids:  # what others wrote
            self._news_of.add(ranker)
            self._news.set()

    async def wait_for_news(self, *, seconds: float) -> set[str] | None:
        if self._listener is None or self._listener.is_closed():
            await self._listen()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)
        self._news.clear()
        names, self._news_of = self._news_of, set()
        return names or None

    async def _do(self, work: Callable[[Any], Awaitable[Result]]) -> Result:
        """Run `work` with a connection. All of it may be repeated: what is there already is found, not doubled."""
        clock = asyncio.get_running_loop().time
        pause, end = 0.05, clock() + self._seconds
        while True:
            try:
                return await self._once(work, end - clock())
            except TimeoutError:
                raise contract.StoreError(f"the database did not answer within {self._seconds:g} s") from None
            except asyncpg.exceptions.RaiseError as error:
                raise meaning(error) from error
            except asyncpg.NoDataFoundError as error:
                self._ids.clear()
                raise contract.Missing("there is no such ranker any more") from error
            except (asyncpg.DiskFullError, asyncpg.InsufficientResourcesError) as error:
                raise contract.Full(f"no room in the database: {error}") from error
            except (*LOST, asyncpg.AdminShutdownError, asyncpg.DeadlockDetectedError) as error:
                if clock() + pause >= end or self._pool is None:
                    raise contract.StoreError(f"the database cannot be reached: {error}") from error
                await asyncio.sleep(pause)
                pause = min(2 * pause, 1.0)
            except asyncpg.PostgresIOError as error:
                raise contract.Broken(f"the database could not write: {error}") from error

    async def _once(self, work: Callable[[Any], Awaitable[Result]], seconds: float) -> Result:
        pool, connection, done = self._pool, None, False
        try:
            async with asyncio.timeout(seconds):
                connection = await pool.acquire()
                result = await work(connection)
            done = True
            return result
        finally:
            if connection is not None:
                if not done:
                    connection.terminate()  # it may hang: nothing is asked of it any more
                await pool.release(connection)

    async def rankers(self) -> list[str]:
        found = await self._do(lambda one: one.fetch("SELECT name, id FROM ranker ORDER BY id"))
        self._ids = dict(found)
        return [name for name in self._ids if "~" not in name]

    @contextlib.asynccontextmanager
    async def creating(self) -> AsyncIterator[None]:
        connection = None
        try:
            connection = await asyncpg.connect(self.url, timeout=self._seconds)
            lock = "SELECT pg_advisory_lock(hashtextextended($1, 1))"
            await connection.execute(lock, self.schema, timeout=self._seconds)
            yield
        except LOST as error:
            raise contract.StoreError(f"the database cannot be reached: {error}") from error
        finally:
            if connection is not None:
                connection.terminate()  # and with it goes the lock

    async def archived(self) -> list[str]:
        await self.rankers()
        return [name for name in self._ids if "~" in name]

    async def archive(self, ranker: str, *, at: int) -> str:
        sql, name = "UPDATE ranker SET name = $2 WHERE name = $1 RETURNING id", archived_name(ranker, at)
        if await self._do(lambda one: one.fetchval(sql, ranker, name)) is None:
            raise contract.Missing(f"there is no ranker {ranker!r}")
        await self.rankers()
        return name

    async def _id(self, ranker: str) -> int | None:
        if ranker not in self._ids:
            await self.rankers()
        return self._ids.get(ranker)

    async def _append_live(
        self, entries: list[Entry], *, at: int, epoch: int | None, through: list[int]
    ) -> list[contract.Appended]:
        for name in {entry.ranker for entry in entries if entry.kind != "config"}:
            if await self._id(name) is None:
                raise contract.Missing(f"there is no ranker {name!r}")
        batch = _Batch(entries, through)
        time = None if self._database_clock else at
        quiet = self.may_be_quiet(set(batch.columns[0]))

        async def work(connection: Any) -> Any:
            self._pids.add(connection.get_server_pid())
            reach("before-commit")
            rows = await connection.fetch(
                _APPEND, time, *batch.columns, epoch, *self._clock.expected(), quiet
            )
            reach("after-commit")
            return rows

        return batch.appended(await self._do(work), self._row)

    async def _live(self, ranker: str, which: str, *values: Any) -> list[Row]:
        number = await self._id(ranker)
        sql = f"SELECT {_COLUMNS} FROM log WHERE ranker = $1 AND {which}"
        return [self._row(row, ranker) for row in await self._do(lambda one: one.fetch(sql, number, *values))]

    async def rows_of(self, ranker: str, kind: Kind) -> list[Row]:
        return await self._live(ranker, "kind = $2 ORDER BY seq", NUMBER_OF_KIND[kind])

    async def stories(self, ranker: str, decisions: list[str]) -> dict[str, list[Row]]:
        number = await self._id(ranker)
        stories: dict[str, list[Row]] = {decision: [] for decision in decisions}
        sql = (
            f"SELECT {_COLUMNS} FROM log WHERE ranker = $1 AND kind = {NUMBER_OF_KIND['decision']} AND event = ANY($2) "
            f"UNION ALL SELECT {_COLUMNS} FROM log WHERE ranker = $1 AND decision IN ("
            f"SELECT event FROM log WHERE ranker = $1 AND kind = {NUMBER_OF_KIND['decision']} AND event = ANY($2)) "
            "ORDER BY seq"
        )
        for row in await self._do(lambda one: one.fetch(sql, number, decisions)):
            stories[row["decision"] or row["event"]].append(self._row(row, ranker))
        return await self._with_closed(ranker, stories)

    async def time(self, ranker: str, *, at: int) -> int:
        sql = "SELECT log_time($1, last_at, ahead) FROM ranker WHERE name = $2"
        given = None if self._database_clock else at
        found: int | None = await self._do(lambda one: one.fetchval(sql, given, ranker))
        return at if found is None else found

    async def look(self) -> None:
        sql = "SELECT * FROM look_at_clock($1, $2, $3)"
        if self._database_clock:
            await self._clock.look(lambda *known: self._do(lambda one: one.fetchrow(sql, *known)))
            self.clock_jumps = self._clock.jumps

    def remarks(self) -> list[str]:
        return self._clock.remarks()

    async def due(self, ranker: str, *, after: int, before: int, allowed: int, limit: int) -> contract.Due:
        number = await self._id(ranker)
        listed, heard, over = (NUMBER_OF_KIND[kind] for kind in _ABOUT_LISTS)
        sql = (
            f"SELECT seq, kind = {listed}, at, event, kind = {listed} AND at < $3 AND NOT EXISTS ("
            "SELECT 1 FROM log WHERE ranker = $1 AND decision = one.event AND seq > one.seq AND ("
            f"kind = {heard} AND at <= one.at + $4 OR kind = {over})) AS is_open, "
            f"EXISTS (SELECT 1 FROM log WHERE ranker = $1 AND kind = {heard} AND decision = one.event) "
            "AS touched "
            "FROM log AS one WHERE ranker = $1 AND seq > $2 ORDER BY seq LIMIT $5"
        )
        found = await self._do(lambda one: one.fetch(sql, number, after, before, allowed, limit))
        return contract.due_of(found, after=after, before=before)

    async def head(self, ranker: str) -> contract.Head:
        sql = "SELECT last_seq, link FROM ranker WHERE name = $1"
        found = await self._do(lambda one: one.fetchrow(sql, ranker))
        return contract.Head(0, b"") if found is None else contract.Head(*found)

    async def heads(self, names: set[str] | None = None) -> dict[str, contract.Head]:
        sql, wanted = "SELECT name, last_seq, link FROM ranker", []
        if names is not None:
            sql, wanted = f"{sql} WHERE name = ANY($1)", [sorted(names)]
        found = await self._do(lambda one: one.fetch(f"{sql} ORDER BY id", *wanted))
        return {name: contract.Head(seq, link) for name, seq, link in found if "~" not in name}

    async def acknowledged(self, ranker: str) -> contract.Head | None:
        return await self.head(ranker)  # kept in another table than the rows

    async def problems(self) -> list[str]:
        async def count(connection: Any) -> list[str]:
            found = [(what, await connection.fetchval(sql)) for what, sql in ODDITIES]
            return [f"there are {what}: {n}" for what, n in found if n]

        return await self._do(count)

    async def write_snapshot(self, ranker: str, snapshot: contract.Snapshot, *, keep: int) -> None:
        number = await self._id(ranker)
        sql = "SELECT write_snapshot($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
        values = msgspec.structs.astuple(sealed(ranker, snapshot))
        reach("during-snapshot")
        await self._do(lambda one: one.execute(sql, number, *values, keep))
        reach("after-snapshot")

    async def snapshots(self, ranker: str) -> list[contract.Snapshot]:
        number = await self._id(ranker)
        sql = f"SELECT {_SNAPSHOT.replace('state', _NO_STATE)} FROM snapshot WHERE ranker = $1 ORDER BY seq"
        return [contract.Snapshot(*row) for row in await self._do(lambda one: one.fetch(sql, number))]

    async def read_snapshot(self, ranker: str, seq: int) -> contract.Snapshot | None:
        number = await self._id(ranker)
        sql = f"SELECT {_SNAPSHOT} FROM snapshot WHERE ranker = $1 AND seq = $2"
        row = await self._do(lambda one: one.fetchrow(sql, number, seq))
        return (await self._closed_part(ranker)).snapshot(seq) if row is None else contract.Snapshot(*row)

    def _row(self, row: Any, ranker: str) -> Row:
        before = row["before"]
        if before is None:
            before = beginning(self.timeline, ranker) if row["seq"] == 1 else b""
        kind: Kind = KINDS[row["kind"]] if row["kind"] < len(KINDS) else "conflict"
        return Row(
            seq=row["seq"],
            at=row["at"],
            kind=kind,
            event_id=row["event"],
            body=row["body"],
            digest=row["digest"],
            decision=row["decision"],
            link=row["link"],
            before=before,
        )

    # Closed history. Which rows are in segments is in the database, where all replicas see it; the segments
    # are files in a folder that all of them reach. A replica that does not know of the newest segment
    # cannot append: it looks again, and tries once more.

    async def append(
        self, entries: list[Entry], *, at: int, epoch: int | None = None
    ) -> list[contract.Appended]:
        while True:
            histories = {
                name: await self._closed_part(name)
                for name in {entry.ranker for entry in entries}
                if self._through(name)
            }
            there = await asyncio.to_thread(rows_there, entries, histories) if histories else {}
            rest = [entry for i, entry in enumerate(entries) if i not in there]
            through = [self._through(entry.ranker) for entry in rest]
            try:
                found = await self._append_live(rest, at=at, epoch=epoch, through=through) if rest else []
            except NewSegment:
                await self.rankers()
                for name in {entry.ranker for entry in entries}:
                    await self._closed_part(name, again=True)
                continue
            return in_order(entries, there, found)

    def _through(self, ranker: str) -> int:
        closed = self._closed.get(self._ids.get(ranker, -1))
        return 0 if closed is None else closed.through

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
                raise contract.Damaged(
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

    async def _with_closed(self, ranker: str, stories: dict[str, list[Row]]) -> dict[str, list[Row]]:
        """The rows about decisions, with those that are in segments."""
        missing = [decision for decision, rows in stories.items() if not rows]
        if not missing:
            return stories
        closed = await self._closed_part(ranker, again=True)
        for decision in missing if closed.segments else ():
            if old := await asyncio.to_thread(closed.story, decision):
                late = await self._live(ranker, "decision = $2 ORDER BY seq", decision)
                stories[decision] = [*old, *(row for row in late if row.seq > closed.through)]
        return stories

    async def history(self, ranker: str) -> ClosedHistory | None:
        if await self._id(ranker) is None:
            raise contract.Missing(f"there is no ranker {ranker!r}")
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

    # API keys, and who looks after which ranker

    async def write_key(self, key: contract.StoredKey) -> None:
        sql = (
            "INSERT INTO api_key VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO UPDATE "
            "SET role = $2, digest = $3, at = $4, note = $5"
        )
        await self._do(lambda one: one.execute(sql, *msgspec.structs.astuple(key)))

    async def delete_key(self, key_id: str) -> bool:
        sql = "DELETE FROM api_key WHERE id = $1 RETURNING id"
        return await self._do(lambda one: one.fetchval(sql, key_id)) is not None

    async def keys(self) -> list[contract.StoredKey]:
        sql = "SELECT id, role, digest, at, note FROM api_key ORDER BY at, id"
        return [contract.StoredKey(*row) for row in await self._do(lambda one: one.fetch(sql))]

    async def take_leases(
        self, holder: str, rankers: Collection[str], *, seconds: float, now: float, at_once: bool = False
    ) -> dict[str, int]:
        sql = "SELECT * FROM take_leases($1, $2::text[], $3, $4, $5)"
        values = (holder, list(rankers), seconds, self._moment(now), at_once)
        return dict(await self._do(lambda one: one.fetch(sql, *values)))

    async def let_go(self, holder: str, rankers: Collection[contract.Left], *, now: float) -> None:
        sql = (
            "UPDATE ranker_lease SET holder = '', until = moment, looked = given.looked, wake = moment + given.wake_in "
            "FROM unnest($2::text[], $3::bigint[], $4::float8[]) AS given (name, looked, wake_in) "
            f"JOIN ranker USING (name), {_MOMENT.format('$5')} "
            "WHERE ranker_lease.ranker = ranker.id AND holder = $1"
        )
        columns = [list(column) for column in zip(*rankers, strict=True)] or [[], [], []]
        await self._do(lambda one: one.execute(sql, holder, *columns, self._moment(now)))

    async def unattended(self, *, seconds: float, now: float, besides: Collection[str] = ()) -> list[str]:
        # A ranker that was just made is left to who made it, one that was just let go of to who wrote to it.
        sql = (
            "SELECT name FROM ranker LEFT JOIN ranker_lease ON ranker_lease.ranker = ranker.id, "
            f"{_MOMENT.format('$2')} WHERE strpos(name, '~') = 0 "
            "AND name <> ALL($3::text[]) "
            "AND NOT coalesce(until, last_at / 1000.0) BETWEEN moment - $1 AND moment + 2 * $1 "
            f"AND (last_seq > coalesce(looked, 0) OR wake <= moment) ORDER BY id LIMIT {contract.MOST_UNATTENDED}"
        )
        values = (seconds, self._moment(now), list(besides))
        return [name for (name,) in await self._do(lambda one: one.fetch(sql, *values))]

    def _moment(self, now: float) -> float | None:
        return None if self._database_clock else now

    # Keys of data subjects

    async def subject_key(self, subject: str) -> contract.SubjectKey | None:
        found = await self._do(lambda one: one.fetchrow(_NEWEST_KEY, subject))
        return None if found is None else contract.SubjectKey(*found)

    async def find_subject_key(self, key_id: str) -> contract.SubjectKey | None:
        sql = "SELECT id, key FROM subject_key WHERE id = $1"
        found = await self._do(lambda one: one.fetchrow(sql, key_id))
        return None if found is None else contract.SubjectKey(*found)

    async def write_subject_key(
        self, subject: str, key: contract.SubjectKey, *, at: int
    ) -> contract.SubjectKey:
        sql = "INSERT INTO subject_key (id, subject, key, at) VALUES ($1, $2, $3, $4)"

        async def work(connection: Any) -> contract.SubjectKey:
            async with connection.transaction():
                # Whoever comes second waits here, at whichever replica, and finds the key of the first.
                await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", subject)
                present = await connection.fetchrow(_NEWEST_KEY, subject)
                if present is None:
                    await connection.execute(sql, key.key_id, subject, key.key, at)
            return key if present is None else contract.SubjectKey(*present)

        return await self._do(work)

    async def erase_subject(self, subject: str, *, at: int) -> int:
        sql = "UPDATE subject_key SET subject = NULL, key = NULL, erased = $2 WHERE subject = $1 RETURNING id"
        found = await self._do(lambda one: one.fetch(sql, subject, at))
        # The old rows are in the pages of this small table until it is written anew.
        await self._do(lambda one: one.execute("VACUUM FULL subject_key"))
        return len(found)

    async def erased_keys(self) -> set[str]:
        sql = "SELECT id FROM subject_key WHERE erased IS NOT NULL"
        return {row["id"] for row in await self._do(lambda one: one.fetch(sql))}


async def _nothing(connection: Any) -> None:
    """Instead of asyncpg's reset after each use, which is another message to the server: nothing is ever set here."""


# The database: its tables, its durability, its clock, and what its errors mean.


FORMAT = 4
CHANNEL = "rankloop"

# What belongs to no ranker: how many there are of each.
ODDITIES = (
    ("rows of no ranker", "SELECT count(*) FROM log WHERE ranker NOT IN (SELECT id FROM ranker)"),
    ("snapshots of no ranker", "SELECT count(*) FROM snapshot WHERE ranker NOT IN (SELECT id FROM ranker)"),
)

# Rankers that a development version moved between databases, which says so in columns of its own.
_MOVED = "SELECT 1 FROM ranker AS r WHERE to_jsonb(r) ->> 'place' <> 'here' OR to_jsonb(r) ->> 'origin' <> ''"
_SCHEMA = Path(__file__).with_name("schema.sql")
_FUNCTIONS = "-- Functions"  # the line of that file at which they begin


async def prepare(connection: Any, schema: str) -> str:
    """Make ready, all or nothing; the identity of the store."""
    tables, functions = _SCHEMA.read_text().split(_FUNCTIONS)
    async with connection.transaction():
        # Two replicas that start at once must not both make the tables.
        await connection.execute("SELECT pg_advisory_xact_lock(7205001)")
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        await connection.execute(f"SET LOCAL search_path TO {schema}")
        await connection.execute("CREATE TABLE IF NOT EXISTS format (version int NOT NULL)")
        found = await connection.fetchval("SELECT version FROM format") or 0
        if found > FORMAT:
            raise contract.StoreError(
                f"the database is in format {found}, written by a newer version of rankloop"
            )
        if 0 < found < FORMAT:
            raise contract.StoreError(
                f"the database is in format {found}: start the service of rankloop 0.2 on it once, then this one"
            )
        await connection.execute(tables)
        if not found:
            await connection.execute("INSERT INTO format VALUES ($1)", FORMAT)
        elif await connection.fetchval(_MOVED):
            raise contract.StoreError(
                "rankers of this database were moved by a development version: serve it with rankloop 0.2"
            )
        await connection.execute(
            "INSERT INTO meta VALUES ('timeline', $1) ON CONFLICT DO NOTHING", secrets.token_hex(8)
        )
        timeline: str = await connection.fetchval("SELECT value FROM meta WHERE name = 'timeline'")
        await connection.execute(f"--{functions}")
    return timeline


# Whether a PostgreSQL server keeps what it has acknowledged: its settings, checked before anything is written.


# Of `synchronous_commit`: a commit waits for the disk, and for standbys that it has to wait for.
_WAITS = ("on", "remote_apply")
_NEEDED = {
    "fsync": "a crash of the machine can destroy the database",
    "full_page_writes": "a crash of the machine can leave torn pages",
}


async def check_durable_server(connection: Any, *, allow_unsafe: bool) -> str:
    """Refuse a server that can lose what it has acknowledged; what `synchronous_commit` our connections are to have."""
    for name, consequence in _NEEDED.items():
        if await connection.fetchval(f"SHOW {name}") != "on" and not allow_unsafe:
            raise contract.StoreError(
                f"the database runs with {name} = off: {consequence}, and acknowledged events with it. "
                "Set it to on, or start with --unsafe-database where losing them is no harm"
            )
    found: str = await connection.fetchval("SHOW synchronous_commit")
    return found if found in _WAITS or allow_unsafe else "on"


async def check_durable_connection(connection: Any) -> None:
    """Refuse a connection whose commits do not wait, as behind a pooler that drops our settings."""
    found = await connection.fetchval("SELECT current_setting('synchronous_commit')")
    if found not in _WAITS:
        raise contract.StoreError(
            f"the database runs with synchronous_commit = {found}, and the service cannot change that: set it to on"
        )


# What a replica knows of its database's clock, by a clock of its own that nobody can set.


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
            None  # the time of the logs, in milliseconds, and when it was seen
        )
        self.behind = 0.0  # seconds that the clock of the logs is behind the database's
        self.jumps = 0

    def expected(self) -> tuple[int | None, int, int]:
        """The time that it must be, how far off it may be, both in milliseconds; and the jumps that are known."""
        if self._seen is None:
            return None, 0, 0
        time, at = self._seen
        passed = max(0.0, self._steady() - at)
        most = TOLERANCE + _QUICK + self._seconds + DRIFT * passed
        return time + round(1000 * passed), round(1000 * most), self.jumps

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
        if not self.behind:
            return []
        return [f"the clock of the database jumped; it is {self.behind:+.1f} s from that of the logs"]


# What errors of PostgreSQL mean to a store, and how its address may be shown.


class NewSegment(contract.StoreError):
    """Rows were moved to a segment that this process does not know of yet; nothing was written."""


LOST = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that was cut in the middle of an answer
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.ObjectNotInPrerequisiteStateError,  # closed for maintenance
    asyncpg.InvalidCatalogNameError,  # renamed or dropped
)


def without_password(url: str) -> str:
    """The URL as it may be shown.

    >>> without_password("postgresql://me:secret@host/name")
    'postgresql://me@host/name'
    """
    return re.sub(r"://([^:/@]*):.*@", r"://\1@", url)


def meaning(error: Any) -> contract.StoreError:
    """The error that a function of the database raised in words."""
    text = str(error)
    for start, kind in (
        ("epoch", contract.Fenced),
        ("history", contract.Diverged),
        ("segments", NewSegment),
        ("stale", contract.Stale),
    ):
        if text.startswith(start):
            return kind(text)
    return contract.StoreError(text)
