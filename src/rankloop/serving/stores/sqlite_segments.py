"""Segments in the SQLite store: their manifest, the rows that leave the live log, and the space that they leave."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from rankloop.serving.log.records import NUMBER_OF_KIND, Entry
from rankloop.serving.stores.contract import Appended, Diverged
from rankloop.serving.stores.segments.closed_history import ClosedHistory
from rankloop.serving.stores.segments.manifest import Segment
from rankloop.serving.stores.segments.segmented import MANY
from rankloop.serving.stores.sqlite_append import Batch
from rankloop.serving.stores.sqlite_schema import KIND_BITS, SEQ_BITS

PAGES = 2_000  # given back in one transaction
_MANY = ", ".join(str(NUMBER_OF_KIND[kind]) for kind in MANY)


def listed(connection: apsw.Connection, number: int, *, after: int = 0) -> list[Segment]:
    """The segments of a ranker that end after row `after`."""
    sql = "SELECT entry FROM segment WHERE ranker = ? AND last > ? ORDER BY last"
    found = connection.execute(sql, (number, after))
    return [msgspec.json.decode(entry, type=Segment) for (entry,) in found]


def add(writer: apsw.Connection, number: int, segment: Segment, links: dict[int, bytes]) -> None:
    """Within a transaction: take a segment into the manifest."""
    before = listed(writer, number)
    base = number << SEQ_BITS
    if segment.first != (before[-1].last if before else 0) + 1:
        raise Diverged(f"another process has moved row {segment.first} to a segment already")
    found = list(writer.execute("SELECT link FROM log WHERE id = ?", (base | segment.last,)))
    newer = list(writer.execute("SELECT 1 FROM log WHERE id = ?", (base | segment.last + 1,)))
    if found != [(bytes.fromhex(segment.link),)] or not newer:
        raise Diverged(f"row {segment.last} is another one than in segment {segment.file}, or the newest")
    writer.execute(
        "INSERT INTO segment (ranker, last, entry) VALUES (?, ?, ?)",
        (number, segment.last, msgspec.json.encode(segment).decode()),
    )
    writer.executemany(
        "INSERT OR REPLACE INTO gap (id, link) VALUES (?, ?)",
        [(base | seq, link) for seq, link in links.items()],
    )


def clear(writer: apsw.Connection, number: int, *, through: int, keep: list[int], limit: int) -> bool:
    """Within a transaction: delete some of the rows up to `through` that are many; whether there may be more."""
    base = number << SEQ_BITS
    which = f"topic & {(1 << KIND_BITS) - 1} IN ({_MANY}) AND id NOT IN ({', '.join(str(base | seq) for seq in keep)})"
    first = f"SELECT id FROM log WHERE id > ? AND id <= ? AND {which} ORDER BY id LIMIT 1"
    for (found,) in list(writer.execute(first, (base, base | through))):
        end = min(found + limit - 1, base | through)
        writer.execute(f"DELETE FROM log WHERE id BETWEEN ? AND ? AND {which}", (found, end))
        return True
    return False


def give_back(writer: apsw.Connection) -> int:
    """Within a transaction: give some free pages back to the file system; how many are left."""
    ((mode,),) = writer.execute("PRAGMA auto_vacuum")
    if mode != 2:  # a file from before there were segments: only `VACUUM` changes that
        return 0
    for _ in writer.execute(f"PRAGMA incremental_vacuum({PAGES})"):
        pass
    ((left,),) = writer.execute("PRAGMA freelist_count")
    return int(left)


def rewrite(writer: apsw.Connection) -> None:
    """Make a file from before there were segments one that can give space back, where it has much to give back."""
    ((mode,),) = writer.execute("PRAGMA auto_vacuum")
    ((free,),) = writer.execute("PRAGMA freelist_count")
    ((pages,),) = writer.execute("PRAGMA page_count")
    if mode != 2 and 4 * free > pages:
        writer.execute("PRAGMA auto_vacuum = INCREMENTAL")
        writer.execute("VACUUM")


def insert(batch: Batch, entries: list[Entry], histories: dict[str, ClosedHistory]) -> list[Appended]:
    """Insert what is neither in the live log nor in a segment, and find what is."""
    there: dict[int, Any] = {}
    for name in {entry.ranker for entry in entries}:
        history = histories.get(name)
        if history is not None and history.segments:
            places = [i for i, entry in enumerate(entries) if entry.ranker == name]
            known = history.known([entries[i] for i in places])
            there.update({i: row for i, row in zip(places, known, strict=True) if row is not None})
    if not there:
        return batch.insert(entries)
    rest = [entry for i, entry in enumerate(entries) if i not in there]
    fresh = iter(batch.insert(rest) if rest else [])
    return [Appended(there[i], False) if i in there else next(fresh) for i in range(len(entries))]
