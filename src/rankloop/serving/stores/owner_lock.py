"""A lock on a folder: one process owns it, and a second one is told who does."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from rankloop.serving.stores.contract import Owned


class OwnerLock:
    """The file `owner.lock` in a folder; the system lets go of it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = -1

    def take(self) -> None:
        """`Owned` where another process has it."""
        self._file = os.open(self._folder / "owner.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            self.release()
            raise Owned(
                f"{self._folder} is served by another process already (process ID {owner or 'unknown'}): "
                "stop it, choose another folder, or share a PostgreSQL database"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let go, where it was taken."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
