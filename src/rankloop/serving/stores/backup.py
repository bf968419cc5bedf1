"""Copies of a store: a folder with one SQLite file, made while the service runs; and how a copy is put back.

A copy of an SQLite store is made by SQLite's own online backup, in one step and therefore of one moment; a copy of a
PostgreSQL store is read in one transaction (`rankloop.serving.stores.postgres_backup`). Writers wait for neither.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import apsw

from rankloop.serving.log.digests import beginning
from rankloop.serving.stores import sqlite_file
from rankloop.serving.stores.contract import Head, Missing, Store, StoreError
from rankloop.serving.stores.marks import Marks
from rankloop.serving.stores.spread import SpreadStore
from rankloop.serving.stores.sqlite import SQLiteStore
from rankloop.serving.stores.sqlite_append import newest
from rankloop.serving.stores.sqlite_schema import check_format, timeline_of

FILE = "rankloop.db"


async def backup(store: Store, folder: Path) -> None:
    """Copy an open store into a new folder, at one moment of its history.

    Parameters
    ----------
    store : Store
        An SQLite or PostgreSQL store; the service may be running on it.
    folder : Path
        Where the copy goes: a folder that is not there yet, or is empty.

    Raises
    ------
    ValueError
        Where the folder has something in it, or the store is in memory.
    """
    if isinstance(store, SpreadStore):
        raise ValueError("copy one database at a time: give --database once")
    with _new_folder(folder) as partial:
        if isinstance(store, SQLiteStore):
            copy_file(store.path, partial / FILE)
        elif store.shared:
            from rankloop.serving.stores.postgres_backup import copy_from

            await copy_from(store, partial / FILE)
        else:
            raise ValueError("a store in memory cannot be copied")
        _mark(partial)


async def restore(copy: Path, store: Store) -> None:
    """Put a copy into a store that has no rankers yet.

    Parameters
    ----------
    copy : Path
        A folder that `backup` made.
    store : Store
        An unopened SQLite store on a new folder, or a PostgreSQL store with an empty schema.

    Raises
    ------
    ValueError
        Where there is no copy, or something in its way.
    """
    file = copy / FILE
    if not file.exists():
        raise Missing(f"there is no store in {copy}")
    connection = sqlite_file.connect(file, None, read_only=True)
    try:
        ((found,),) = connection.execute("PRAGMA user_version")
        check_format(int(found), file, may_migrate=False)
    except apsw.Error as error:
        raise StoreError(f"{file} cannot be read: {error}") from None
    finally:
        connection.close()
    if isinstance(store, SQLiteStore):
        with _new_folder(store.folder) as partial:
            copy_file(file, partial / FILE)
            _mark(partial)
        return
    from rankloop.serving.stores.postgres_backup import copy_into

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
        for file in [*partial.iterdir(), partial]:
            _sync(file)
        partial.rename(folder)
        _sync(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


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
