"""The table of snapshots in the SQLite store. A damaged one has a seal that does not fit, or raises `Damaged`."""

from __future__ import annotations

from typing import Any

import apsw

from rankloop.serving.failpoints import reach
from rankloop.serving.log.digests import seal
from rankloop.serving.stores.contract import Damaged, Diverged, Snapshot
from rankloop.serving.stores.sqlite_schema import SEQ_BITS, as_text

_TEXTS = ("code", "config", "hash")


def write(writer: apsw.Connection, number: int, ranker: str, snapshot: Snapshot, *, keep: int) -> None:
    """Within a transaction: keep it with the newest `keep` - 1 others; `Diverged` where it is not of this log."""
    row = number << SEQ_BITS | snapshot.seq
    if list(writer.execute("SELECT link FROM log WHERE id = ?", (row,))) != [(snapshot.link,)]:
        raise Diverged(f"the log of {ranker!r} has no such row {snapshot.seq}")
    writer.execute(
        "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            number,
            snapshot.seq,
            snapshot.at,
            snapshot.epoch,
            snapshot.code_hash,
            snapshot.config_hash,
            snapshot.state_hash,
            snapshot.state,
            snapshot.link,
            seal(ranker, snapshot),
        ),
    )
    reach("during-snapshot")
    writer.execute(
        "DELETE FROM snapshot WHERE ranker = ?1 AND seq NOT IN "
        "(SELECT seq FROM snapshot WHERE ranker = ?1 ORDER BY seq DESC LIMIT ?2)",
        (number, keep),
    )


def listed(reader: apsw.Connection, number: int | None) -> list[Snapshot]:
    """All of a ranker, oldest first, without their states."""
    return _read(reader, "x''", "ranker = ? ORDER BY seq", (number,))


def read(reader: apsw.Connection, number: int | None, seq: int) -> Snapshot | None:
    """One of them, whole."""
    found = _read(reader, "state", "ranker = ? AND seq = ?", (number, seq))
    return found[0] if found else None


def _read(reader: apsw.Connection, state: str, which: str, values: tuple[Any, ...]) -> list[Snapshot]:
    sql = f"SELECT seq, at, epoch, code, config, hash, {state}, link, seal FROM snapshot WHERE {which}"
    try:
        try:
            found = list(reader.execute(sql, values))
        except UnicodeDecodeError:
            for column in _TEXTS:
                sql = sql.replace(f" {column},", f" CAST({column} AS BLOB),")
            found = [(*row[:3], *map(as_text, row[3:6]), *row[6:]) for row in reader.execute(sql, values)]
    except apsw.Error as error:
        raise Damaged(f"snapshots cannot be read: {error}") from error
    return [_snapshot(row) for row in found]


def _snapshot(found: tuple[Any, ...]) -> Snapshot:
    kinds = (int, int, int, str, str, str, bytes, bytes, bytes)
    if all(type(value) is kind for value, kind in zip(found, kinds, strict=True)):
        return Snapshot(*found)
    return Snapshot(found[0], 0, 0, "", "", "", b"", b"", b"\0")  # no snapshot has such a seal
