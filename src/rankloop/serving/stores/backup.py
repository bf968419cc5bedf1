"""Copies of a store: a folder with one SQLite file, made while the service runs; and how a copy is put back.

A copy of an SQLite store is made by SQLite's own online backup, in one step and therefore of one moment; a copy of a
PostgreSQL store is read in one transaction (`rankloop.serving.stores.postgres_backup`). Writers wait for neither.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import apsw
import msgspec

from rankloop.serving.log.digests import beginning
from rankloop.serving.stores import sqlite_file
from rankloop.serving.stores.contract import Head, Missing, Store, StoreError
from rankloop.serving.stores.marks import Marks
from rankloop.serving.stores.segments.manifest import (
    Segment,
    folder_name,
    sync,
    write_durable,
    write_manifest,
)
from rankloop.serving.stores.sqlite import SQLiteStore
from rankloop.serving.stores.sqlite_file import SEQ_BITS, check_format, newest, read_old, timeline_of

FILE = "rankloop.db"


async def backup(store: Store, folder: Path) -> None:
    """Copy an open store into a new folder, at one moment of its history."""
    with _new_folder(folder) as partial:
        if isinstance(store, SQLiteStore):
            copy_file(store.path, partial / FILE)
        elif store.shared:
            from rankloop.serving.stores.postgres_backup import copy_from

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
        ((found,),) = connection.execute("PRAGMA user_version")
        check_format(int(found), file, may_migrate=False)
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
    from rankloop.serving.stores.postgres_backup import copy_into

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
        read_old(connection)
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
