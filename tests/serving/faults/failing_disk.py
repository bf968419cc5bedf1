"""A disk that fails at one operation: a write, a cut or an fsync, for want of space or with an input/output error."""

from __future__ import annotations

import threading
from typing import Any

import apsw

ERRORS = {"full": apsw.FullError, "broken": apsw.IOError}


class FailingDisk(apsw.VFS):
    """SQLite's usual files, until the operation that fails."""

    def __init__(self, name: str, *, error: str) -> None:
        super().__init__(name, "")
        self.error = ERRORS[error]
        self.left: int | None = None  # operations before the one that fails; None: all succeed
        self.failed = 0
        self._lock = threading.Lock()

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return _File(self, name, flags)

    def operation(self) -> None:
        with self._lock:
            if self.left is None:
                return
            self.left -= 1
            if self.left < 0:
                self.left = None
                self.failed += 1
                raise self.error("the disk does not take it")


class _File(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.operation()
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self.disk.operation()
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self.disk.operation()
        super().xSync(flags)
