"""A disk that is slow, or does not answer until it is told to: every read, write, cut and fsync waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from rankloop.serving.engine import Engine
from rankloop.serving.stores.sqlite import SQLiteStore

_RESCUE_SECONDS = 60.0  # a test that would stand still for good goes on, and fails


class SlowDisk(apsw.VFS):
    """SQLite's usual files. seconds: how long each operation takes beside its own time."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.seconds = 0.0
        self.rescued = False  # it hung until nobody was left to let it go on
        self.hanging = threading.Event()
        self._left: int | None = None  # operations before it hangs; None: it does not
        self._go_on = threading.Event()
        self._lock = threading.Lock()

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return _SlowFile(self, name, flags)

    def hang(self, after: int = 0) -> None:
        """Hang after so many operations."""
        with self._lock:
            self._go_on.clear()
            self._left = after

    def release(self) -> None:
        """Answer again."""
        with self._lock:
            self._left = None
            self.hanging.clear()
            self._go_on.set()

    def operation(self) -> None:
        if self.seconds:
            time.sleep(self.seconds)
        with self._lock:
            if self._left is None:
                return
            self._left -= 1
            if self._left >= 0:
                return
            self.hanging.set()
        if not self._go_on.wait(_RESCUE_SECONDS):
            self.rescued = True
            self.release()


class _SlowFile(apsw.VFSFile):
    def __init__(self, disk: SlowDisk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self.disk.operation()
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.operation()
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self.disk.operation()
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self.disk.operation()
        super().xSync(flags)


@contextmanager
def impatient(engine: Engine, seconds: float) -> Iterator[None]:
    """Meanwhile nobody waits long for the disk. Before and after it may be as slow as the machine is."""
    store, commit = engine.store, engine.commit
    assert isinstance(store, SQLiteStore)
    usual = store._disk_seconds, commit._seconds
    store._disk_seconds, commit._seconds = seconds, 2 * seconds
    try:
        yield
    finally:
        store._disk_seconds, commit._seconds = usual
