"""Moves rows from SQLite's write-ahead log into the database itself, beside the writing, so that it stays small."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw

EVERY = 64  # commits
MOVE_BYTES = 8_000_000
RESTART_BYTES = 64_000_000
_PATIENCE = 1_000  # milliseconds that it waits for readers


class Checkpoints:
    """To be told of every commit. `failed` tells why nothing more may be written, once it is so."""

    def __init__(self, path: Path, vfs: str | None, *, busy_seconds: float) -> None:
        self._path = path
        self._busy = round(1000 * busy_seconds)  # that the connection is set to otherwise
        self._vfs = vfs
        self._commits = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self.failed: str | None = None

    def stop(self) -> None:
        """Finish what was begun."""
        self._thread.shutdown()

    def after_commit(self, writer: apsw.Connection) -> None:
        """Move something if it is time, in the thread that writes; nothing else writes meanwhile."""
        self._commits += 1
        if self._commits % EVERY:
            return
        with contextlib.suppress(OSError):
            size = Path(f"{self._path}-wal").stat().st_size
            if size > RESTART_BYTES:
                # Under steady writing it never empties by itself. Little is left to move by now, so this is short.
                self._restart(writer)
            elif size > MOVE_BYTES:
                self._thread.submit(self._move)

    def _restart(self, writer: apsw.Connection) -> None:
        with self._noticing():
            writer.set_busy_timeout(_PATIENCE)
            try:
                writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                writer.set_busy_timeout(self._busy)

    def _move(self) -> None:
        # Passive: copies what it can without blocking anyone.
        with self._noticing():
            connection = apsw.Connection(str(self._path), vfs=self._vfs)
            connection.execute("SELECT count(*) FROM lease")  # only then does it know that there is a log
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            connection.close()

    @contextlib.contextmanager
    def _noticing(self) -> Iterator[None]:
        """A busy or full disk is for another time; one that fails while rows are moved is not to be trusted again."""
        try:
            yield
        except (apsw.IOError, apsw.CorruptError) as error:
            self.failed = f"could not move rows within {self._path}: {error}"
        except apsw.Error:
            pass
