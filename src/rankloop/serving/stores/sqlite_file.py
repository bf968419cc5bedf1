"""The file of an SQLite store: how it is opened, who may read it, and which versions of SQLite are refused."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import apsw

from rankloop.serving.stores.contract import Broken, Full, StoreError

_OPEN_SECONDS = 5.0  # that opening waits for another process
_LEAST_FREE = 4_000_000  # bytes on the disk
# SQLite's WAL-reset bug: since WAL was introduced in 3.7.0, two connections that write and checkpoint at once could
# corrupt the file, rarely. Fixed in 3.51.3, and in 3.50.7 and 3.44.6 for those series.
_FIXED = (3, 51, 3)
_FIXED_IN_SERIES = {(3, 50): 7, (3, 44): 6}


def check_version(version: str) -> None:
    """`StoreError` where this version of SQLite is known to corrupt files that are written as ours is.

    >>> check_version("3.54.1"), check_version("3.50.7"), check_version("3.44.6")
    (None, None, None)
    >>> check_version("3.51.2")
    Traceback (most recent call last):
    ...
    rankloop.serving.stores.errors.StoreError: SQLite 3.51.2 can corrupt ...
    """
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    least = _FIXED_IN_SERIES.get((major, minor))
    if (major, minor, patch) >= _FIXED or (least is not None and patch >= least):
        return
    raise StoreError(
        f"SQLite {version} can corrupt a file that is written while rows are moved within it (the WAL-reset bug, "
        "fixed in 3.51.3, 3.50.7 and 3.44.6): install a newer apsw"
    )


def make_private(path: Path) -> None:
    """The file is there, and only its owner may read and write it; SQLite gives its companions the same rights."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").chmod(0o600)


def connect(path: Path, vfs: str | None, *, read_only: bool) -> apsw.Connection:
    """A connection: WAL, and durable with every commit."""
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if read_only else apsw.SQLITE_OPEN_CREATE)
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    connection.set_busy_timeout(round(1000 * _OPEN_SECONDS))
    if read_only:
        connection.execute("PRAGMA query_only = ON")
        return connection
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file; another one stays as it is
    ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise ValueError(f"{path} cannot be written in WAL mode, SQLite offers {mode!r}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def begin(writer: apsw.Connection, path: Path) -> None:
    """Take the write lock, in a thread; where another process holds it, wait as long as the connection is set to."""
    try:
        writer.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        raise StoreError(f"another process holds the write lock of {path}") from None


def take_lease(writer: apsw.Connection, holder: str, *, at: float) -> int:
    """Within a transaction: the epoch of the holder, a larger one where another had it before."""
    found = list(writer.execute("SELECT holder, epoch FROM lease"))
    held_by, epoch = found[0] if found else ("", 0)
    if holder != held_by:
        epoch += 1
    writer.execute("INSERT OR REPLACE INTO lease VALUES (1, ?, ?, ?)", (holder, epoch, at))
    return int(epoch)


@contextlib.contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """What a reader meets, as an error of a store."""
    try:
        yield
    except apsw.BusyError:
        raise StoreError(f"another process has locked {path}") from None


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """What a writer meets, as an error of a store."""
    try:
        yield
    except apsw.FullError as error:
        raise Full(f"no room to write to {path}: {error}") from error
    except (apsw.IOError, apsw.CorruptError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise Broken(f"could not write to {path}: {error}") from error


def has_room(folder: Path) -> bool:
    """Whether the disk has room for more than a few rows."""
    with contextlib.suppress(OSError):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize >= _LEAST_FREE
    return True
