"""The closed part of a ranker's log: rows that are in segments, read as if they were still in the live log."""

from __future__ import annotations

import bisect
import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import numpy as np

from rankloop.serving.log.records import Entry, Kind, Row
from rankloop.serving.stores.errors import Damaged
from rankloop.serving.stores.segments.ids import IdIndex, hash_of
from rankloop.serving.stores.segments.manifest import Segment
from rankloop.serving.stores.segments.parquet import GROUP, read_group, read_groups
from rankloop.serving.stores.values import Snapshot

_log = logging.getLogger("rankloop.serving")
_GROUPS = 8  # that are kept after they were read
_ABANDONED = 3_600  # seconds after which a file that is half-written belongs to a process that was killed
_LARGEST = 2_000_000  # IDs in an index that is joined from others


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
        """The row with this kind and ID."""
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
        """For each entry the row that is here under its kind and ID already."""
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
                    told = (self.folder / one.snapshot).read_bytes()
                    return msgspec.msgpack.decode(told, type=Snapshot)
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
        used = {f"{one.first:012}-{one.last:012}.ids" for one in self._opened()}
        for path in self.folder.glob("*.ids"):
            if path.name not in used:
                path.unlink(missing_ok=True)
        for path in self.folder.glob(".*.part"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()
