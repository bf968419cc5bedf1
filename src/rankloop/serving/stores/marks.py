"""The newest acknowledged row of each ranker, kept in a file of its own: it proves the loss of rows that were cut off.

A mark is written after its commit, without waiting for the disk. It may therefore be older than the log, never newer,
unless the log has lost its end.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from pathlib import Path

from rankloop.serving.log.digests import SIZE
from rankloop.serving.stores.contract import Head

_SLOT = 64
_MARK = struct.Struct(">q16s")


class Marks:
    """A file with a slot for each ranker, by its number in the store."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._seen = b""  # the whole file, where it is only looked at

    def open(self, *, read_only: bool) -> None:
        """Open the file, and make it where there is none. Who only looks sees it as it is now, from then on."""
        if not read_only:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            return
        for _ in range(3):  # a mark that is being written looks like a damaged one
            with contextlib.suppress(FileNotFoundError):
                self._seen = self._path.read_bytes()
            with contextlib.suppress(ValueError):
                self.all()
                return

    def close(self) -> None:
        """Let go."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def write(self, heads: dict[int, Head]) -> None:
        """Keep these. A full or failing disk is no reason to fail: what they prove is durable already."""
        with contextlib.suppress(OSError):
            for number, head in heads.items():
                told = _MARK.pack(head.seq, head.link)
                os.pwrite(self._file, told + _check(number, told), _SLOT * number)

    def forget(self, number: int) -> None:
        """Have no mark of a ranker any more."""
        os.pwrite(self._file, bytes(_SLOT), _SLOT * number)

    def all(self) -> dict[int, Head]:
        """Every mark, by the number of its ranker."""
        size = len(self._seen) if self._file < 0 else os.fstat(self._file).st_size
        found = {number: self.read(number) for number in range(1, -(-size // _SLOT))}
        return {number: mark for number, mark in found.items() if mark is not None}

    def read(self, number: int) -> Head | None:
        """The mark of a ranker; None where there is none, ValueError where it is damaged."""
        first, size = _SLOT * number, _MARK.size + SIZE
        told = self._seen[first : first + size] if self._file < 0 else os.pread(self._file, size, first)
        if not any(told):
            return None
        mark, check = told[: _MARK.size], told[_MARK.size :]
        if check != _check(number, mark):
            raise ValueError("the mark of its newest acknowledged row is damaged")
        return Head(*_MARK.unpack(mark))


def _check(number: int, told: bytes) -> bytes:
    return hashlib.blake2b(number.to_bytes(8, "big") + told, digest_size=SIZE).digest()
