"""The database of a PostgreSQL store: its tables and how they are brought forward, its durability, clock and errors."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from rankloop.serving.clock import DRIFT, TOLERANCE, since_boot
from rankloop.serving.log.digests import beginning, link_of, seal
from rankloop.serving.log.records import KINDS, Row
from rankloop.serving.stores.contract import Diverged, Fenced, Missing, Snapshot, Stale, StoreError

FORMAT = 4  # 2: rows are linked, snapshots are sealed; 3: rankers come and go; 4: rows may be in segments
CHANNEL = "rankloop"
THERE = "place IN ('here', 'leaving')"  # of rankers that can be read in this database


# From format 1, whose rows had no digests. The old functions go: code that knows only them must not write here.
FORWARD = """
DROP FUNCTION IF EXISTS append(bigint, text[], int[], text[], text[], bytea[], bytea[], bigint);
DROP FUNCTION IF EXISTS write_snapshot(int, bigint, bigint, bigint, text, text, text, bytea, int);
ALTER TABLE ranker ADD COLUMN link bytea NOT NULL DEFAULT '';
ALTER TABLE log ADD COLUMN link bytea NOT NULL DEFAULT '';
ALTER TABLE log ALTER COLUMN link DROP DEFAULT;
ALTER TABLE snapshot ADD COLUMN link bytea NOT NULL DEFAULT '', ADD COLUMN seal bytea NOT NULL DEFAULT '';
"""

# From format 2, which knows of no segments. The old function goes: it would take an ID in a segment for a new one.
TO_SEGMENTS = """
DROP FUNCTION IF EXISTS append(bigint, text[], int[], text[], text[], bytea[], bytea[], bytea[], bigint[], bytea[],
    bigint, bigint, bigint, bigint);
"""

# What belongs to no ranker: how many there are of each.
ODDITIES = (
    ("rows of no ranker", "SELECT count(*) FROM log WHERE ranker NOT IN (SELECT id FROM ranker)"),
    ("snapshots of no ranker", "SELECT count(*) FROM snapshot WHERE ranker NOT IN (SELECT id FROM ranker)"),
)

_SCHEMA = Path(__file__).with_name("schema.sql")
_FUNCTIONS = "-- Functions"  # the line of that file at which they begin
_PAGE = 1_000


async def prepare(connection: Any, schema: str, *, may_migrate: bool) -> str:
    """Make ready, all or nothing; the identity of the store."""
    tables, functions = _SCHEMA.read_text().split(_FUNCTIONS)
    async with connection.transaction():
        # Two replicas that start at once must not both make the tables.
        await connection.execute("SELECT pg_advisory_xact_lock(7205001)")
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        await connection.execute(f"SET LOCAL search_path TO {schema}")
        await connection.execute(tables)
        found = await connection.fetchval("SELECT version FROM format")
        if found is not None and found > FORMAT:
            raise StoreError(
                f"the database is in format {found}, written by a newer version of rankloop; "
                f"this one reads {FORMAT} at most"
            )
        if found == 1 and not may_migrate:
            raise StoreError(
                "the database is in format 1, without digests: start the service on it once, or run `rankloop upgrade`"
            )
        await connection.execute(
            "INSERT INTO meta VALUES ('timeline', $1) ON CONFLICT DO NOTHING", secrets.token_hex(8)
        )
        timeline: str = await connection.fetchval("SELECT value FROM meta WHERE name = 'timeline'")
        if found is None:
            await connection.execute("INSERT INTO format VALUES ($1)", FORMAT)
        if found == 1:
            await connection.execute(FORWARD)
            await _link_all(connection, timeline)
        if found in (1, 2, 3) and may_migrate:
            await connection.execute(TO_SEGMENTS)
            await connection.execute("UPDATE format SET version = $1", FORMAT)
        await connection.execute(f"--{functions}")
    return timeline


async def _link_all(connection: Any, timeline: str) -> None:
    """Link rows and seal snapshots that were written before there were digests, as they are now."""
    for number, name in await connection.fetch("SELECT id, name FROM ranker"):
        links = {0: beginning(timeline, name)}
        seq = 0
        while page := await connection.fetch(
            "SELECT seq, at, kind, event, body, digest, decision FROM log WHERE ranker = $1 AND seq > $2 "
            "ORDER BY seq LIMIT $3",
            number,
            seq,
            _PAGE,
        ):
            for seq, at, kind, *rest in page:
                links[seq] = link_of(Row(seq, at, KINDS[kind], *rest), links[seq - 1])
            seqs = [row["seq"] for row in page]
            await connection.execute(
                "UPDATE log SET link = given.link FROM unnest($2::bigint[], $3::bytea[]) AS given (seq, link) "
                "WHERE log.ranker = $1 AND log.seq = given.seq",
                number,
                seqs,
                [links[one] for one in seqs],
            )
        await connection.execute("UPDATE ranker SET link = $2 WHERE id = $1", number, links[seq])
        for found in await connection.fetch(
            "SELECT seq, at, epoch, code, config, hash, state FROM snapshot WHERE ranker = $1", number
        ):
            snapshot = msgspec.structs.replace(Snapshot(*found), link=links.get(found["seq"], b""))
            await connection.execute(
                "UPDATE snapshot SET link = $3, seal = $4 WHERE ranker = $1 AND seq = $2",
                number,
                snapshot.seq,
                snapshot.link,
                seal(name, snapshot),
            )


# Whether a PostgreSQL server keeps what it has acknowledged: its settings, checked before anything is written.


# With these a commit waits for the disk, and for standbys that it has to wait for.
_WAITS = ("on", "remote_apply")
_NEEDED = {
    "fsync": "a crash of the machine can destroy the database",
    "full_page_writes": "a crash of the machine can leave torn pages",
}


async def check_durable_server(connection: Any, *, allow_unsafe: bool) -> str:
    """Refuse a server that can lose what it has acknowledged; what `synchronous_commit` our connections are to have."""
    for name, consequence in _NEEDED.items():
        if await connection.fetchval(f"SHOW {name}") != "on" and not allow_unsafe:
            raise StoreError(
                f"the database runs with {name} = off: {consequence}, and acknowledged events with it. "
                "Set it to on, or start with --unsafe-database where losing them is no harm"
            )
    found: str = await connection.fetchval("SHOW synchronous_commit")
    return found if found in _WAITS or allow_unsafe else "on"


async def check_durable_connection(connection: Any) -> None:
    """Refuse a connection whose commits do not wait, as behind a pooler that drops our settings."""
    found = await connection.fetchval("SELECT current_setting('synchronous_commit')")
    if found not in _WAITS:
        raise StoreError(
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
        """What is not as usual."""
        if not self.behind:
            return []
        return [f"the clock of the database jumped; it is {self.behind:+.1f} s from that of the logs"]


# What errors of PostgreSQL mean to a store, and how its address may be shown.


class NewSegment(StoreError):
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


def meaning(error: Any) -> StoreError:
    """The error that a function of the database raised in words."""
    text = str(error)
    for start, kind in (
        ("epoch", Fenced),
        ("history", Diverged),
        ("moved", Missing),
        ("segments", NewSegment),
        ("stale", Stale),
    ):
        if text.startswith(start):
            return kind(text)
    return StoreError(text)
