"""A PostgreSQL store as one SQLite file, and back: the same rows, numbers, links and seals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import asyncpg

from rankloop.serving.log.digests import beginning
from rankloop.serving.stores import sqlite_file
from rankloop.serving.stores.contract import Store, StoreError
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.postgres_setup import LOST, THERE, without_password
from rankloop.serving.stores.sqlite_file import (
    KIND_BITS,
    SEQ,
    SEQ_BITS,
    newest,
    origins_of,
    prepare,
    read_old,
    timeline_of,
)

_PAGE = 1_000
_HERE = f"(SELECT id FROM ranker WHERE {THERE})"
_KIND = (1 << KIND_BITS) - 1
_SNAPSHOT = ("ranker", "seq", "at", "epoch", "code", "config", "hash", "state", "link", "seal")
_KEY = ("id", "role", "digest", "at", "note")
_SUBJECT_KEY = ("id", "subject", "key", "at", "erased")
_LOG = ("ranker", "seq", "at", "kind", "event", "decision", "digest", "body", "link")


async def copy_from(store: Store, file: Path) -> None:
    """Read a whole PostgreSQL store in one transaction, so that it is of one moment, into an SQLite file."""
    sqlite_file.make_private(file)
    target = sqlite_file.connect(file, None, read_only=False)
    connection = await _connect(store)
    try:
        prepare(target, file, may_migrate=False)
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            with target:
                await _copy_all(connection, target)
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (asyncpg.PostgresError, apsw.Error, *LOST) as error:
        raise StoreError(f"cannot copy the database to {file}: {error}") from error
    finally:
        target.close()
        await connection.close()


async def _connect(store: Store) -> Any:
    assert isinstance(store, PostgresStore)
    try:
        return await asyncpg.connect(store.url, server_settings={"search_path": store.schema}, timeout=10)
    except (asyncpg.PostgresError, OSError) as error:
        raise StoreError(f"cannot connect to {without_password(store.url)}: {error}") from error


async def _copy_all(connection: Any, target: apsw.Connection) -> None:
    for name, value in await connection.fetch("SELECT name, value FROM meta"):
        target.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
    for number, name, origin in await connection.fetch(
        f"SELECT id, name, origin FROM ranker WHERE {THERE} ORDER BY id"
    ):
        target.execute("INSERT INTO ranker (id, name) VALUES (?, ?)", (number, name))
        if origin is not None:  # it was moved here
            target.execute("INSERT INTO meta VALUES (?, ?)", (f"origin/{number}", origin))
    for row in await connection.fetch(f"SELECT {', '.join(_KEY)} FROM api_key"):
        target.execute("INSERT INTO api_key VALUES (?, ?, ?, ?, ?)", tuple(row))
    insert = (
        "INSERT INTO log (id, topic, at, event, decision, digest, body, link) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    )
    async for page in _pages(
        connection, f"SELECT {', '.join(_LOG)} FROM log WHERE ranker IN {_HERE} ORDER BY ranker, seq"
    ):
        target.executemany(
            insert,
            [
                (ranker << SEQ_BITS | seq, ranker << KIND_BITS | kind, at, *rest)
                for ranker, seq, at, kind, *rest in page
            ],
        )
    for row in await connection.fetch("SELECT ranker, last, entry FROM segment"):
        target.execute("INSERT INTO segment (ranker, last, entry) VALUES (?, ?, ?)", tuple(row))
    for row in await connection.fetch(f"SELECT {', '.join(_SUBJECT_KEY)} FROM subject_key"):
        target.execute("INSERT INTO subject_key VALUES (?, ?, ?, ?, ?)", tuple(row))
    for number, seq, link in await connection.fetch("SELECT ranker, seq, link FROM gap"):
        target.execute("INSERT INTO gap (id, link) VALUES (?, ?)", (number << SEQ_BITS | seq, link))
    sql = f"SELECT {', '.join(_SNAPSHOT)} FROM snapshot WHERE ranker IN {_HERE} ORDER BY ranker, seq"
    async for row in connection.cursor(sql, prefetch=1):  # one at a time: a state may be large
        target.execute(f"INSERT INTO snapshot VALUES ({', '.join('?' * len(_SNAPSHOT))})", tuple(row))


async def _pages(connection: Any, sql: str) -> Any:
    cursor = await connection.cursor(sql)
    while page := await cursor.fetch(_PAGE):
        yield page


async def copy_into(store: Store, file: Path) -> None:
    """Write a copy into an empty PostgreSQL store, all or nothing."""
    source = sqlite_file.connect(file, None, read_only=True)
    read_old(source)
    connection = await _connect(store)
    try:
        async with connection.transaction():
            await _fill(connection, source)
    except (asyncpg.PostgresError, apsw.Error, *LOST) as error:
        raise StoreError(f"cannot write the copy into the database: {error}") from error
    finally:
        source.close()
        await connection.close()


async def _fill(connection: Any, source: apsw.Connection) -> None:
    await connection.execute("LOCK TABLE ranker IN EXCLUSIVE MODE")
    if await connection.fetchval("SELECT count(*) FROM ranker"):
        raise StoreError("the database has rankers already")
    timeline, origins = timeline_of(source), origins_of(source)
    await connection.execute("UPDATE meta SET value = $1 WHERE name = 'timeline'", timeline)
    for number, name in list(source.execute("SELECT id, name FROM ranker ORDER BY id")):
        seq, at, link = newest(source, number, first=beginning(timeline, name))
        await connection.execute(
            "INSERT INTO ranker (id, name, last_seq, last_at, link, origin) VALUES ($1, $2, $3, $4, $5, $6)",
            number,
            name,
            seq,
            at,
            link,
            origins.get(number),
        )
        await connection.execute("SELECT setval(pg_get_serial_sequence('ranker', 'id'), $1)", number)
    rows = source.execute("SELECT id, at, topic, event, decision, digest, body, link FROM log ORDER BY id")
    page: list[tuple[Any, ...]] = []
    for number, at, topic, *rest in rows:
        page.append((number >> SEQ_BITS, number & SEQ, at, topic & _KIND, *rest))
        if len(page) == _PAGE:
            await connection.copy_records_to_table("log", records=page, columns=_LOG)
            page = []
    await connection.copy_records_to_table("log", records=page, columns=_LOG)
    closed = list(source.execute("SELECT ranker, last, entry FROM segment ORDER BY ranker, last"))
    await connection.copy_records_to_table("segment", records=closed, columns=("ranker", "last", "entry"))
    for number, last, _ in closed:
        await connection.execute("UPDATE ranker SET closed_through = $2 WHERE id = $1", number, last)
    subjects = list(source.execute(f"SELECT {', '.join(_SUBJECT_KEY)} FROM subject_key"))
    await connection.copy_records_to_table("subject_key", records=subjects, columns=_SUBJECT_KEY)
    gaps = [
        (number >> SEQ_BITS, number & SEQ, link)
        for number, link in source.execute("SELECT id, link FROM gap")
    ]
    await connection.copy_records_to_table("gap", records=gaps, columns=("ranker", "seq", "link"))
    for row in source.execute(f"SELECT {', '.join(_SNAPSHOT)} FROM snapshot"):
        await connection.copy_records_to_table("snapshot", records=[row], columns=_SNAPSHOT)
    keys = list(source.execute(f"SELECT {', '.join(_KEY)} FROM api_key"))
    await connection.copy_records_to_table("api_key", records=keys, columns=_KEY)
