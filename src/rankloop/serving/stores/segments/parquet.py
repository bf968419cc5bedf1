"""Rows of a log in a Parquet file, in groups that can be read one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankloop.extras import require
from rankloop.serving.log.records import KINDS, NUMBER_OF_KIND, Row
from rankloop.serving.stores.errors import Damaged

GROUP = 4_096  # rows
_NAMES = ("seq", "at", "kind", "event", "decision", "digest", "body", "link", "before")


def _arrow() -> tuple[Any, Any]:
    require("pyarrow", extra="arrow", for_="keeping history in Parquet segments")
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pa, pq


class SegmentWriter:
    """Writes rows that come in order to one file. `before` is kept for the first row of each group only."""

    def __init__(self, path: Path) -> None:
        self._pa, pq = _arrow()
        pa = self._pa
        self._schema = pa.schema(
            [
                ("seq", pa.int64()),
                ("at", pa.int64()),
                ("kind", pa.int8()),
                ("event", pa.string()),
                ("decision", pa.string()),
                ("digest", pa.binary()),
                ("body", pa.binary()),
                ("link", pa.binary()),
                ("before", pa.binary()),
            ]
        )
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
        """Take the next rows; full groups are written."""
        self._waiting += rows
        while len(self._waiting) >= GROUP:
            self._write(self._waiting[:GROUP])
            self._waiting = self._waiting[GROUP:]

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        if self._waiting:
            self._write(self._waiting)
        self._waiting = []
        self._file.close()

    def _write(self, rows: list[Row]) -> None:
        columns = (
            [row.seq for row in rows],
            [row.at for row in rows],
            [NUMBER_OF_KIND[row.kind] for row in rows],
            [row.event_id for row in rows],
            [row.decision for row in rows],
            [row.digest for row in rows],
            [row.body for row in rows],
            [row.link for row in rows],
            [rows[0].before, *[None] * (len(rows) - 1)],
        )
        arrays = [
            self._pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)
        ]
        self._file.write_table(self._pa.table(arrays, schema=self._schema), row_group_size=GROUP)


def read_group(path: Path, number: int) -> list[Row]:
    """One group of rows of a segment."""
    pa, pq = _arrow()
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            return _rows(file.read_row_group(number))
    except FileNotFoundError:
        raise Damaged(f"the segment {path} is not there") from None
    except (pa.ArrowException, OSError, ValueError, IndexError, KeyError) as error:
        raise Damaged(f"the segment {path} is damaged: {error}") from None


def read_groups(path: Path) -> Iterator[list[Row]]:
    """All groups of a segment, one after the other."""
    pa, pq = _arrow()
    try:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield _rows(file.read_row_group(number))
    except FileNotFoundError:
        raise Damaged(f"the segment {path} is not there") from None
    except (pa.ArrowException, OSError, ValueError, IndexError, KeyError) as error:
        raise Damaged(f"the segment {path} is damaged: {error}") from None


def _rows(table: Any) -> list[Row]:
    columns = [table.column(name).to_pylist() for name in _NAMES]
    rows: list[Row] = []
    before = b""
    for seq, at, kind, event, decision, digest, body, link, kept in zip(*columns, strict=True):
        before = before if kept is None else kept
        rows.append(Row(seq, at, KINDS[kind], event, body, digest, decision, link, before))
        before = link
    return rows
