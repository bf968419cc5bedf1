"""A disk that loses power: what was not fsynced is gone, or there in part.

SQLite's files go through `VolatileDisk`, which keeps beside each file the bytes that an fsync has promised. A
photograph is what a machine would find after a power loss at that moment: the promised bytes, and of the writes that
were under way each sector with a given chance. A deleted file may come back until the next fsync of any file, which
writes the journal of the file system.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512


class VolatileDisk(apsw.VFS):
    """SQLite's usual files, with a record of what is safe."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.lock = threading.RLock()
        self.safe: dict[Path, bytearray] = {}
        self.written: dict[
            Path, list[tuple[int, bytes | None]]
        ] = {}  # since the last fsync; None: cut off there
        self.deleted: set[Path] = set()

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return _VolatileFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        with self.lock:
            self.written.pop(Path(filename), None)
            self.deleted.add(Path(filename))
            if syncdir:
                self._forget_deleted()

    def fsynced(self, path: Path) -> None:
        with self.lock:
            self._forget_deleted()
            self.safe[path] = _after(self.safe.get(path, bytearray()), self.written.pop(path, []))

    def _forget_deleted(self) -> None:
        for path in self.deleted:
            self.safe.pop(path, None)
        self.deleted.clear()

    def photograph(self, folder: Path, *, rng: random.Random, survives: float) -> None:
        """Write to `folder` what is left after a power loss now; `survives` of the unsafe sectors are there."""
        folder.mkdir(parents=True)
        with self.lock:
            for path in {*self.safe, *self.written}:
                if path.name.endswith("-shm"):  # memory that processes share, not a file
                    continue
                kept = [
                    (at, data) for at, data in _sectors(self.written.get(path, [])) if rng.random() < survives
                ]
                if path in self.safe or kept:
                    (folder / path.name).write_bytes(_after(self.safe.get(path, bytearray()), kept))


class _VolatileFile(apsw.VFSFile):
    def __init__(self, disk: VolatileDisk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.path = Path(name.filename() if hasattr(name, "filename") else name or "temporary")
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        with self.disk.lock:
            super().xWrite(data, offset)
            self.disk.written.setdefault(self.path, []).append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        with self.disk.lock:
            super().xTruncate(newsize)
            self.disk.written.setdefault(self.path, []).append((newsize, None))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.disk.fsynced(self.path)


def _after(before: bytearray, changes: list[tuple[int, bytes | None]]) -> bytearray:
    found = bytearray(before)
    for at, data in changes:
        if data is None:
            del found[at:]
            continue
        found.extend(bytes(max(0, at + len(data) - len(found))))
        found[at : at + len(data)] = data
    return found


def _sectors(changes: list[tuple[int, bytes | None]]) -> list[tuple[int, bytes | None]]:
    cut: list[tuple[int, bytes | None]] = []
    for at, data in changes:
        if data is None:
            cut.append((at, None))
            continue
        first = SECTOR - at % SECTOR
        edges = [0, *range(first, len(data), SECTOR), len(data)]
        cut += [(at + a, data[a:b]) for a, b in itertools.pairwise(edges) if b > a]
    return cut


def photographs(
    disk: VolatileDisk,
    folder: Path,
    acknowledged: Callable[[], set[str]],
    *,
    rng: random.Random,
    survives: float,
    most: int,
) -> list[tuple[Path, set[str]]]:
    """Photograph at random moments, a few acknowledgements apart: where, and what had been acknowledged before."""
    taken: list[tuple[Path, set[str]]] = []
    while len(taken) < most:
        wanted = len(acknowledged()) + rng.randint(1, 12)
        while len(acknowledged()) < wanted:
            time.sleep(0.0002)
        time.sleep(rng.uniform(0.0, 0.003))
        before = acknowledged()
        place = folder / f"photograph-{len(taken)}"
        disk.photograph(place, rng=rng, survives=survives)
        taken.append((place, before))
    return taken
