"""Closed history: rows that left the live log for Parquet files, called segments, read as if they were still there.

A folder for each ranker: segments, the snapshot after each, indexes of IDs, and the manifest, which says what is in
which file and is chained by digests as the rows are. The manifest is kept twice: in the store, where it says which
rows the live log may lack, and as a file beside the segments, so that the folder explains itself.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import logging
import os
import struct
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.extras import require, write_whole
from rankloop.serving.log.digests import own_name
from rankloop.serving.log.records import KINDS, NUMBER_OF_KIND, Entry, Kind, Row
from rankloop.serving.stores.contract import Appended, Damaged, Snapshot

_log = logging.getLogger("rankloop.serving")
# Rows of these kinds are many, and leave the live log. The others are few, and starting needs them: they stay as well.
MANY: tuple[Kind, ...] = (
    *("decision", "activate", "feedback", "expire", "items", "import", "conflict", "degraded", "ubi"),
)
_GROUPS = 8  # that are kept after they were read
_ABANDONED = 3_600  # seconds after which a file that is half-written belongs to a process that was killed
_LARGEST = 2_000_000  # IDs in an index that is joined from others
FILE = "manifest.json"


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a ranker's log in a file of its own."""

    ranker: str
    first: int
    last: int
    rows: int
    first_at: int
    last_at: int
    before: str
    link: str
    file: str
    digest: str
    snapshot: str
    snapshot_digest: str
    state_hash: str
    chain: str = ""


def chained(segment: Segment, before: Segment | None) -> Segment:
    """The segment with its chain, after the one before it."""
    plain = msgspec.structs.replace(segment, chain="" if before is None else before.chain)
    return msgspec.structs.replace(segment, chain=hashlib.sha256(msgspec.json.encode(plain)).hexdigest())


def faults(segments: list[Segment], *, ranker: str, beginning: bytes) -> list[str]:
    """What is wrong with a manifest, a sentence each: numbers, links and chain."""
    found: list[str] = []
    before: Segment | None = None
    for one in segments:
        first, link = (1, beginning.hex()) if before is None else (before.last + 1, before.link)
        if one.ranker != ranker:
            found.append(f"segment {one.file} is of the ranker {one.ranker!r}")
        if (one.first, one.before) != (first, link) or one.rows != one.last - one.first + 1:
            found.append(f"segment {one.file} does not begin where the one before it ends, with row {first}")
        if chained(one, before) != one:
            found.append(f"the entry of segment {one.file} is not what was written: its digest differs")
        before = one
    return found


def folder_name(ranker: str, link: bytes) -> str:
    """The name of the folder of a ranker's segments: the same wherever its log is, and another one for each log.

    Examples
    --------
    >>> folder_name("unwind~20261115T224000.123", bytes(16))
    'unwind-00000000'
    """
    return f"{own_name(ranker)}-{link.hex()[:8]}"


def write_manifest(folder: Path, segments: list[Segment]) -> None:
    """Write the manifest beside the segments; it is on the disk when this returns."""
    text = msgspec.json.format(msgspec.json.encode(segments), indent=1)
    write_durable(folder / FILE, lambda part: part.write_bytes(text))


def read_manifest(folder: Path) -> list[Segment]:
    """The manifest beside the segments."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=list[Segment])
    except OSError as error:
        raise Damaged(f"the manifest {folder / FILE} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"the manifest {folder / FILE} is damaged: {error}") from None


def write_durable(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole, and wait until it and its name are on the disk."""

    def fill(part: Path) -> None:
        write(part)
        sync(part)

    write_whole(path, fill)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Indexes: where in the segments an ID occurs, as sorted hashes in files that are looked into without being read. One is
# made of the segments alone, and made again where it is missing. Small ones are joined, so that there are few.

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
        found: set[int] = set()
        begins = np.searchsorted(self._hashes, wanted, "left")
        for begin, one in zip(begins.tolist(), wanted, strict=True):
            while begin < len(self._hashes) and self._hashes[begin] == one:
                found.add(self.first + int(self._places[begin]))
                begin += 1
        return found

    def write(self, folder: Path) -> Path:
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
        head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or not head.startswith(_MAGIC):
        raise Damaged(f"the index {path} is damaged")
    _, first, last, n, digest = _HEAD.unpack(head)
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


# Rows in a Parquet file, in groups that can be read one by one.

GROUP = 4_096  # rows
_COLUMNS = {
    "seq": "int64",
    "at": "int64",
    "kind": "int8",
    "event": "string",
    "decision": "string",
    "digest": "binary",
    "body": "binary",
    "link": "binary",
    "before": "binary",  # for the first row of each group only
}


def _arrow() -> tuple[Any, Any]:
    require("pyarrow", extra="arrow", for_="keeping history in Parquet segments")
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pa, pq


class SegmentWriter:
    """Writes rows that come in order to one file."""

    def __init__(self, path: Path) -> None:
        self._pa, pq = _arrow()
        self._schema = self._pa.schema([(name, getattr(self._pa, kind)()) for name, kind in _COLUMNS.items()])
        self._file = pq.ParquetWriter(
            path,
            self._schema,
            compression="zstd",
            use_dictionary=["kind", "digest"],
            write_statistics=["seq", "at"],
            column_encoding={
                "seq": "DELTA_BINARY_PACKED",
                "at": "DELTA_BINARY_PACKED",
                "event": "DELTA_BYTE_ARRAY",
                "decision": "DELTA_BYTE_ARRAY",
            },
        )
        self._waiting: list[Row] = []

    def add(self, rows: list[Row]) -> None:
        self._waiting += rows
        while len(self._waiting) >= GROUP:
            self._write(self._waiting[:GROUP])
            self._waiting = self._waiting[GROUP:]

    def close(self) -> None:
        if self._waiting:
            self._write(self._waiting)
        self._waiting = []
        self._file.close()

    def _write(self, rows: list[Row]) -> None:
        values = [
            (
                one.seq,
                one.at,
                NUMBER_OF_KIND[one.kind],
                one.event_id,
                one.decision,
                one.digest,
                one.body,
                one.link,
            )
            for one in rows
        ]
        columns = [*zip(*values, strict=True), [rows[0].before, *[None] * (len(rows) - 1)]]
        arrays = [
            self._pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)
        ]
        self._file.write_table(self._pa.table(arrays, schema=self._schema), row_group_size=GROUP)


@contextlib.contextmanager
def _opened(path: Path, **how: Any) -> Iterator[Any]:
    """A segment to read from; `Damaged` where that fails, then or while it is read."""
    pa, pq = _arrow()
    try:
        with pq.ParquetFile(path, **how) as file:
            yield file
    except FileNotFoundError:
        raise Damaged(f"the segment {path} is not there") from None
    except (pa.ArrowException, OSError, ValueError, IndexError, KeyError) as error:
        raise Damaged(f"the segment {path} is damaged: {error}") from None


def read_group(path: Path, number: int) -> list[Row]:
    """One group of rows of a segment."""
    with _opened(path, memory_map=True) as file:
        return _rows(file.read_row_group(number))


def read_groups(path: Path) -> Iterator[list[Row]]:
    """All groups of a segment, one after the other."""
    with _opened(path) as file:
        for number in range(file.num_row_groups):
            yield _rows(file.read_row_group(number))


def _rows(table: Any) -> list[Row]:
    columns = [table.column(name).to_pylist() for name in _COLUMNS]
    rows: list[Row] = []
    before = b""
    for seq, at, kind, event, decision, digest, body, link, kept in zip(*columns, strict=True):
        before = before if kept is None else kept
        rows.append(Row(seq, at, KINDS[kind], event, body, digest, decision, link, before))
        before = link
    return rows


# All of them as one.


class ClosedHistory:
    """The segments of one ranker, in their folder. Any thread may ask it; one adds to it.

    may_write: whether a missing index is written to the folder when it is made again.
    """

    def __init__(self, folder: Path, segments: Iterable[Segment] = (), *, may_write: bool = False) -> None:
        self.folder = folder
        self.segments: list[Segment] = list(segments)
        self._may_write = may_write
        self._indexes: list[IdIndex] | None = None
        self._kept: OrderedDict[tuple[str, int], list[Row]] = OrderedDict()
        self._lock = threading.RLock()

    @property
    def through(self) -> int:
        """The last row that is in a segment; 0 where there are none. The live log may lack rows up to it."""
        return self.segments[-1].last if self.segments else 0

    def add(self, segments: list[Segment]) -> None:
        """Know of these as well, in order."""
        with self._lock:
            new = [one for one in segments if one.last > self.through]
            if new:
                self.segments = [*self.segments, *new]
                self._indexes = None  # it is put together again from its files when it is next needed

    def rows(self, after: int, limit: int) -> list[Row]:
        """Up to `limit` rows with a number above `after`, as far as they are here."""
        found: list[Row] = []
        seq = after + 1
        while len(found) < limit and seq <= self.through:
            group, first = self._group_of(seq)
            part = group[seq - first : seq - first + limit - len(found)]
            if not part or part[0].seq != seq:
                raise Damaged(f"row {seq} is not in its segment in {self.folder}")
            found += part
            seq = part[-1].seq + 1
        return found

    def page(
        self, live: list[Row], *, after: int, limit: int, rest: Callable[[int, int], list[Row]]
    ) -> list[Row]:
        """A page of the whole log, where the live log has the rows `live`.

        rest: reads the live log, after a row and up to a limit.
        """
        if after >= self.through or (len(live) == limit and live[-1].seq == after + limit):
            return live
        found = self.rows(after, limit)
        if len(found) < limit:
            found += rest(self.through, limit - len(found))
        return found

    def about(self, names: Iterable[str]) -> list[Row]:
        """All rows whose own ID, or that of the list they are about, is one of these; in order."""
        if not self.segments:
            return []
        asked = set(names)
        wanted = np.array([hash_of(name) for name in asked], np.uint64)
        seqs: set[int] = set()
        for index in self._opened():
            seqs |= index.find(wanted)
        found = []
        for seq in sorted(seqs):
            group, first = self._group_of(seq)
            row = group[seq - first]
            if row.event_id in asked or row.decision in asked:
                found.append(row)
        return found

    def find(self, kind: Kind, event_id: str) -> Row | None:
        for row in self.about([event_id]):
            if (row.kind, row.event_id) == (kind, event_id):
                return row
        return None

    def story(self, decision: str) -> list[Row]:
        """The rows about a decision that is here, itself included; nothing where it is not."""
        found = [
            row
            for row in self.about([decision])
            if row.decision == decision or (row.kind, row.event_id) == ("decision", decision)
        ]
        return found if any(row.kind == "decision" for row in found) else []

    def known(self, entries: list[Entry]) -> list[Row | None]:
        rows = {(row.kind, row.event_id): row for row in self.about(entry.event_id for entry in entries)}
        return [rows.get((entry.kind, entry.event_id)) for entry in entries]

    def unfiled(self, rows: Iterable[Row]) -> list[int]:
        """Those of these rows, which are here, that the index does not lead to."""

        def leads(name: str, seq: int) -> bool:
            wanted = np.array([hash_of(name)], np.uint64)
            return any(seq in index.find(wanted) for index in self._opened())

        return [
            row.seq
            for row in rows
            if not all(leads(one, row.seq) for one in (row.event_id, row.decision) if one is not None)
        ]

    def snapshot(self, seq: int) -> Snapshot | None:
        """The state after the segment that ends with row `seq`."""
        for one in self.segments:
            if one.last == seq:
                try:
                    packed = (self.folder / one.snapshot).read_bytes()
                    return msgspec.msgpack.decode(packed, type=Snapshot)
                except (OSError, msgspec.DecodeError) as error:
                    raise Damaged(
                        f"the snapshot {self.folder / one.snapshot} cannot be read: {error}"
                    ) from None
        return None

    def _group_of(self, seq: int) -> tuple[list[Row], int]:
        """The group that a row is in, and the number of its first row."""
        segment = self.segments[bisect.bisect_left(self.segments, seq, key=lambda one: one.last)]
        number = (seq - segment.first) // GROUP
        with self._lock:
            kept = self._kept.get((segment.file, number))
            if kept is None:
                kept = self._kept[segment.file, number] = read_group(self.folder / segment.file, number)
                if len(self._kept) > _GROUPS:
                    self._kept.popitem(last=False)
            else:
                self._kept.move_to_end((segment.file, number))
        first = segment.first + number * GROUP
        if len(kept) <= seq - first:
            raise Damaged(f"row {seq} is not in the segment {self.folder / segment.file}")
        return kept, first

    def open(self) -> None:
        """Open the index, or make again what is missing of it."""
        if self.segments:
            self._opened()

    def _opened(self) -> list[IdIndex]:
        with self._lock:
            if self._indexes is None:
                self._indexes = self._open()
            return self._indexes

    def _open(self) -> list[IdIndex]:
        files: dict[int, list[IdIndex]] = {}
        for path in sorted(self.folder.glob("*.ids")):
            with contextlib.suppress(Damaged, OSError):
                one = IdIndex.read(path)
                files.setdefault(one.first, []).append(one)
        found: list[IdIndex] = []
        ends = {segment.last for segment in self.segments}
        following = 1
        for segment in self.segments:
            if segment.first < following:
                continue  # in an index that was joined
            fitting = [one for one in files.get(segment.first, ()) if one.last in ends]
            if fitting:
                found.append(max(fitting, key=lambda one: one.last))
            else:
                found.append(self._made_again(segment))
            following = found[-1].last + 1
        return found

    def _made_again(self, segment: Segment) -> IdIndex:
        _log.warning("the index of segment %s is missing, and is made again", segment.file)
        rows = (row for group in read_groups(self.folder / segment.file) for row in group)
        index = IdIndex.of(segment.first, segment.last, rows)
        if self._may_write:
            index.write(self.folder)
        return index

    def write_index(self, index: IdIndex) -> None:
        """Write the index of the next segment, joined with those before it that are not larger."""
        made = [*self._opened(), index]
        while len(made) > 1 and len(made[-2]) <= len(made[-1]) and len(made[-2]) + len(made[-1]) <= _LARGEST:
            last = made.pop()
            made[-1] = made[-1].joined(last)
        made[-1].write(self.folder)

    def tidy(self) -> None:
        """Remove files of indexes that are not needed any more, and what a killed process left half-written."""
        used = {_name(one.first, one.last) for one in self._opened()}
        for path in self.folder.glob("*.ids"):
            if path.name not in used:
                path.unlink(missing_ok=True)
        for path in self.folder.glob(".*.part"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()


def rows_there(entries: list[Entry], histories: Mapping[str, ClosedHistory]) -> dict[int, Row]:
    """The rows that are in segments already, by the place of their entry; histories: by the name of the ranker."""
    there: dict[int, Row] = {}
    for name in {entry.ranker for entry in entries} & histories.keys():
        places = [i for i, entry in enumerate(entries) if entry.ranker == name]
        known = histories[name].known([entries[i] for i in places])
        there |= {i: row for i, row in zip(places, known, strict=True) if row is not None}
    return there


def in_order(entries: list[Entry], there: dict[int, Row], appended: list[Appended]) -> list[Appended]:
    """Of each entry the row that was there, or what appending the others came to."""
    rest = iter(appended)
    return [Appended(there[i], False) if i in there else next(rest) for i in range(len(entries))]
