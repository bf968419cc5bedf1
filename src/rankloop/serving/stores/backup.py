"""Copies of a store: a folder with one SQLite file, made while the service runs; and how a copy is put back.

A copy of an SQLite store is made by SQLite's own online backup, in one step and therefore of one moment. A PostgreSQL
store is read in one transaction, and becomes an SQLite file too: the same rows, numbers, links and seals. Writers wait
for neither.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import msgspec

from rankloop.serving.log.digests import beginning
from rankloop.serving.stores import sqlite_file
from rankloop.serving.stores.contract import Head, Missing, Store, StoreError
from rankloop.serving.stores.postgres import LOST, PostgresStore, without_password
from rankloop.serving.stores.segments import (
    Segment,
    folder_name,
    sync,
    write_durable,
    write_manifest,
)
from rankloop.serving.stores.sqlite import SQLiteStore
from rankloop.serving.stores.sqlite_file import (
    KIND_BITS,
    SEQ,
    SEQ_BITS,
    Marks,
    check_format,
    newest,
    prepare,
    timeline_of,
)

FILE = "rankloop.db"


async def backup(store: Store, folder: Path) -> None:
    """Copy an open store into a new folder, at one moment of its history."""
    with _new_folder(folder) as partial:
        if isinstance(store, SQLiteStore):
            copy_file(store.path, partial / FILE)
        elif store.shared:
            await copy_from(store, partial / FILE)
        else:
            raise ValueError("a store in memory cannot be copied")
        copy_segments(partial / FILE, getattr(store, "segment_folder", None), partial / "segments")
        _mark(partial)


async def restore(copy: Path, store: Store) -> None:
    """Put a copy into a store that has no rankers yet."""
    file = copy / FILE
    if not file.exists():
        raise Missing(f"there is no store in {copy}")
    connection = sqlite_file.connect(file, None, read_only=True)
    try:
        check_format(connection, file)
    except apsw.Error as error:
        raise StoreError(f"{file} cannot be read: {error}") from None
    finally:
        connection.close()
    if isinstance(store, SQLiteStore):
        with _new_folder(store.folder) as partial:
            copy_file(file, partial / FILE)
            inside = store.segment_folder.is_relative_to(store.folder)
            to = partial / store.segment_folder.relative_to(store.folder) if inside else store.segment_folder
            copy_segments(file, copy / "segments", to)
            _mark(partial)
        return
    copy_segments(file, copy / "segments", getattr(store, "segment_folder", None))
    await _opened(store, lambda: copy_into(store, file))


async def _opened(store: Store, work: Callable[[], Awaitable[None]]) -> None:
    await store.open()
    try:
        if await store.rankers() or await store.archived():
            raise ValueError(
                "the database has rankers already: choose another --schema, or an empty database"
            )
        await work()
    finally:
        await store.close()


def copy_file(source: Path, target: Path) -> None:
    """Copy an SQLite file as it is at one moment, while another process writes to it."""
    sqlite_file.make_private(target)
    reader = sqlite_file.connect(source, None, read_only=True)
    writer = apsw.Connection(str(target))
    try:
        with writer.backup("main", reader, "main") as copying:
            copying.step(-1)  # all pages in one read transaction: what is committed meanwhile is not in it
    except apsw.Error as error:
        raise StoreError(f"cannot copy {source} to {target}: {error}") from None
    finally:
        writer.close()
        reader.close()


def copy_segments(file: Path, source: Path | None, target: Path | None) -> None:
    """Copy the segments that the copy of a store names, which never change, and indexes that are there."""
    connection = sqlite_file.connect(file, None, read_only=True)
    try:
        listed: dict[str, list[Segment]] = {}
        sql = (
            "SELECT ranker.name, log.link, entry FROM segment JOIN ranker ON ranker.id = segment.ranker "
            f"JOIN log ON log.id = (ranker.id << {SEQ_BITS} | 1) ORDER BY segment.ranker, last"
        )
        for ranker, link, entry in connection.execute(sql):
            listed.setdefault(folder_name(ranker, link), []).append(msgspec.json.decode(entry, type=Segment))
    finally:
        connection.close()
    if not listed:
        return
    if source is None or target is None:
        raise ValueError("rows of this store are in segments: name their folder with --segments")
    for folder, segments in listed.items():
        old, new = source / folder, target / folder
        new.mkdir(parents=True, exist_ok=True)
        for name in (name for one in segments for name in (one.file, one.snapshot)):
            if not (old / name).exists():
                raise StoreError(f"the segment {old / name} is not there")
            write_durable(new / name, functools.partial(shutil.copyfile, old / name))
        for index in old.glob("*.ids"):
            with contextlib.suppress(FileNotFoundError):  # it was joined with others meanwhile
                shutil.copyfile(index, new / index.name)
        write_manifest(new, segments)


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder beside `folder`, which gets its name when everything is in it and on the disk."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not empty: choose a new folder")
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # what an interrupted attempt left
    partial.mkdir(parents=True)
    try:
        yield partial
        for file in [*partial.rglob("*"), partial]:
            sync(file)
        partial.rename(folder)
        sync(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _mark(folder: Path) -> None:
    """Keep the newest row of each ranker apart from the log, so that a copy that loses its end is noticed."""
    connection = sqlite_file.connect(folder / FILE, None, read_only=True)
    try:
        timeline = timeline_of(connection)
        heads = {}
        for number, name in list(connection.execute("SELECT id, name FROM ranker")):
            seq, _, link = newest(connection, number, first=beginning(timeline, name))
            heads[number] = Head(seq, link)
    finally:
        connection.close()
    marks = Marks(folder / "acknowledged")
    marks.open(read_only=False)
    marks.write(heads)
    marks.close()


# A PostgreSQL store as one SQLite file, and back.

_PAGE = 1_000
_KIND = (1 << KIND_BITS) - 1
_SNAPSHOT = ("ranker", "seq", "at", "epoch", "code", "config", "hash", "state", "link", "seal")
# Tables that are the same in both.
_SAME = {
    "api_key": ("id", "role", "digest", "at", "note"),
    "subject_key": ("id", "subject", "key", "at", "erased"),
    "segment": ("ranker", "last", "entry"),
}
_LOG = ("ranker", "seq", "at", "kind", "event", "decision", "digest", "body", "link")


async def copy_from(store: Store, file: Path) -> None:
    """Read a whole PostgreSQL store in one transaction, so that it is of one moment, into an SQLite file."""
    sqlite_file.make_private(file)
    target = sqlite_file.connect(file, None, read_only=False)
    connection = await _connect(store)
    try:
        prepare(target, file)
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
    for found in await connection.fetch("SELECT id, name FROM ranker ORDER BY id"):
        target.execute("INSERT INTO ranker (id, name) VALUES (?, ?)", tuple(found))
    for table, columns in _SAME.items():
        for row in await connection.fetch(f"SELECT {', '.join(columns)} FROM {table}"):
            target.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", tuple(row))
    insert = (
        "INSERT INTO log (id, topic, at, event, decision, digest, body, link) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    )
    async for page in _pages(connection, f"SELECT {', '.join(_LOG)} FROM log ORDER BY ranker, seq"):
        target.executemany(
            insert,
            [
                (ranker << SEQ_BITS | seq, ranker << KIND_BITS | kind, at, *rest)
                for ranker, seq, at, kind, *rest in page
            ],
        )
    for number, seq, link in await connection.fetch("SELECT ranker, seq, link FROM gap"):
        target.execute("INSERT INTO gap (id, link) VALUES (?, ?)", (number << SEQ_BITS | seq, link))
    sql = f"SELECT {', '.join(_SNAPSHOT)} FROM snapshot ORDER BY ranker, seq"
    async for row in connection.cursor(sql, prefetch=1):  # one at a time: a state may be large
        target.execute(f"INSERT INTO snapshot VALUES ({', '.join('?' * len(_SNAPSHOT))})", tuple(row))


async def _pages(connection: Any, sql: str) -> Any:
    cursor = await connection.cursor(sql)
    while page := await cursor.fetch(_PAGE):
        yield page


async def copy_into(store: Store, file: Path) -> None:
    """Write a copy into an empty PostgreSQL store, all or nothing."""
    source = sqlite_file.connect(file, None, read_only=True)
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
    timeline = timeline_of(source)
    await connection.execute("UPDATE meta SET value = $1 WHERE name = 'timeline'", timeline)
    for number, name in list(source.execute("SELECT id, name FROM ranker ORDER BY id")):
        seq, at, link = newest(source, number, first=beginning(timeline, name))
        await connection.execute(
            "INSERT INTO ranker (id, name, last_seq, last_at, link) VALUES ($1, $2, $3, $4, $5)",
            number,
            name,
            seq,
            at,
            link,
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
    for table, columns in _SAME.items():
        same = list(source.execute(f"SELECT {', '.join(columns)} FROM {table}"))
        await connection.copy_records_to_table(table, records=same, columns=columns)
    for number, last in list(source.execute("SELECT ranker, max(last) FROM segment GROUP BY ranker")):
        await connection.execute("UPDATE ranker SET closed_through = $2 WHERE id = $1", number, last)
    gaps = [
        (number >> SEQ_BITS, number & SEQ, link)
        for number, link in source.execute("SELECT id, link FROM gap")
    ]
    await connection.copy_records_to_table("gap", records=gaps, columns=("ranker", "seq", "link"))
    for row in source.execute(f"SELECT {', '.join(_SNAPSHOT)} FROM snapshot"):
        await connection.copy_records_to_table("snapshot", records=[row], columns=_SNAPSHOT)
