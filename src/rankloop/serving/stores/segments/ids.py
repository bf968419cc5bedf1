"""Where in the segments an ID occurs: sorted hashes in files that are looked into without being read.

An index is made of the segments alone, and is made again where it is missing. Small ones are joined, so that there are
few of them however many segments there are.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankloop.serving.log.records import Row
from rankloop.serving.stores.errors import Damaged
from rankloop.serving.stores.segments.manifest import write_durable

_HEAD = struct.Struct("<8sqqq32s")
_MAGIC = b"rlids\x00\x00\x01"
Hashes = NDArray[np.uint64]


def hash_of(name: str) -> int:
    """64 bits of an ID.

    >>> hash_of("one") == hash_of("one") != hash_of("two")
    True
    """
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


class IdIndex:
    """The hashes of the IDs in rows `first` to `last`, sorted, and for each the place of its row after `first`."""

    def __init__(self, first: int, last: int, hashes: Hashes, places: NDArray[np.uint32]) -> None:
        self.first = first
        self.last = last
        self._hashes = hashes
        self._places = places

    def __len__(self) -> int:
        return len(self._hashes)

    @classmethod
    def of(cls, first: int, last: int, rows: Iterable[Row]) -> IdIndex:
        """The index of these rows: of each its own ID, and that of the list it is about."""
        hashes, places = array("Q"), array("I")
        for row in rows:
            for name in {row.event_id, row.decision}:
                if name is not None:
                    hashes.append(hash_of(name))
                    places.append(row.seq - first)
        return cls._sorted(first, last, np.array(hashes, np.uint64), np.array(places, np.uint32))

    @classmethod
    def _sorted(cls, first: int, last: int, hashes: Hashes, places: NDArray[np.uint32]) -> IdIndex:
        order = np.argsort(hashes, kind="stable")
        return cls(first, last, hashes[order], places[order])

    def joined(self, after: IdIndex) -> IdIndex:
        """The index of these rows and of those after them."""
        shift = np.uint32(after.first - self.first)
        return self._sorted(
            self.first,
            after.last,
            np.concatenate([self._hashes, after._hashes]),
            np.concatenate([self._places, after._places + shift]),
        )

    def find(self, wanted: Hashes) -> set[int]:
        """The numbers of rows in which one of these may occur."""
        found: set[int] = set()
        begins = np.searchsorted(self._hashes, wanted, "left")
        for begin, one in zip(begins.tolist(), wanted, strict=True):
            while begin < len(self._hashes) and self._hashes[begin] == one:
                found.add(self.first + int(self._places[begin]))
                begin += 1
        return found

    def write(self, folder: Path) -> Path:
        """Write it to a file in `folder`."""
        parts = [np.ascontiguousarray(self._hashes, "<u8"), np.ascontiguousarray(self._places, "<u4")]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part.data)
        head = _HEAD.pack(_MAGIC, self.first, self.last, len(self), digest.digest())

        def fill(path: Path) -> None:
            with path.open("wb") as file:
                file.write(head)
                for part in parts:
                    file.write(part.data)

        path = folder / _name(self.first, self.last)
        write_durable(path, fill)
        return path

    @classmethod
    def read(cls, path: Path) -> IdIndex:
        """Open a file; it is looked into in place."""
        first, last, n, _ = _head(path)
        hashes = np.memmap(path, "<u8", "r", _HEAD.size, (n,)) if n else np.zeros(0, np.uint64)
        places = np.memmap(path, "<u4", "r", _HEAD.size + 8 * n, (n,)) if n else np.zeros(0, np.uint32)
        return cls(first, last, hashes, places)


def _name(first: int, last: int) -> str:
    return f"{first:012}-{last:012}.ids"


def _head(path: Path) -> tuple[int, int, int, bytes]:
    with path.open("rb") as file:
        told = file.read(_HEAD.size)
    if len(told) < _HEAD.size or not told.startswith(_MAGIC):
        raise Damaged(f"the index {path} is damaged")
    _, first, last, n, digest = _HEAD.unpack(told)
    if path.stat().st_size != _HEAD.size + 12 * n:
        raise Damaged(f"the index {path} is damaged: its length is wrong")
    if path.name != _name(first, last):
        raise Damaged(f"the index {path} is damaged: it says that it is of rows {first} to {last}")
    return first, last, n, digest


def check_index(path: Path) -> None:
    """`Damaged` where an index is not what was written."""
    *_, digest = _head(path)
    with path.open("rb") as file:
        file.seek(_HEAD.size)
        if hashlib.sha256(file.read()).digest() != digest:
            raise Damaged(f"the index {path} is not what was written: its digest differs")
