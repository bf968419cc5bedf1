"""Makes the tables of the PostgreSQL store, and brings those of an older format forward."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from rankloop.serving.log.digests import beginning, link_of, seal
from rankloop.serving.log.records import KINDS, Row
from rankloop.serving.stores.contract import Snapshot, StoreError
from rankloop.serving.stores.postgres_append import APPEND
from rankloop.serving.stores.postgres_schema import FORMAT, FORWARD, FUNCTIONS, TABLES, TO_SEGMENTS

_PAGE = 1_000


async def prepare(connection: Any, schema: str, *, may_migrate: bool) -> str:
    """Make ready, all or nothing; the identity of the store."""
    async with connection.transaction():
        # Two replicas that start at once must not both make the tables.
        await connection.execute("SELECT pg_advisory_xact_lock(7205001)")
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        await connection.execute(f"SET LOCAL search_path TO {schema}")
        await connection.execute(TABLES)
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
        await connection.execute(FUNCTIONS)
        await connection.execute(APPEND)
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
        for told in await connection.fetch(
            "SELECT seq, at, epoch, code, config, hash, state FROM snapshot WHERE ranker = $1", number
        ):
            snapshot = msgspec.structs.replace(Snapshot(*told), link=links.get(told["seq"], b""))
            await connection.execute(
                "UPDATE snapshot SET link = $3, seal = $4 WHERE ranker = $1 AND seq = $2",
                number,
                snapshot.seq,
                snapshot.link,
                seal(name, snapshot),
            )
