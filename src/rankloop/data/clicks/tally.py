"""Counting impressions chunk by chunk: what is held grows with the different cells, not with the rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop.feedback import ClickLog

CELL = ["query", "item", "position"]
# Rows of cells that may wait before they are added up: enough to make adding rare, and 20 MB of numbers.
_WAITING = 500_000


@dataclass(slots=True)
class Tally:
    """Sums of `shown` and `clicked` by query, item and position, and of rows by query."""

    bad_rows: Counter[str] = field(default_factory=Counter)
    bad_clicks: Counter[str] = field(default_factory=Counter)  # on those rows
    _cells: list[pl.DataFrame] = field(default_factory=list)
    _rows: list[pl.DataFrame] = field(default_factory=list)
    _added: int = 0

    def add(self, cells: pl.DataFrame, rows: pl.DataFrame, *, distinct: bool = False) -> None:
        """Count some: columns query, item, position, shown, clicked; and query, rows. No cell twice if `distinct`."""
        if cells.height == 0:
            return
        self._cells.append(_named_alike(cells if distinct else _summed(cells, CELL)))
        self._rows.append(_named_alike(_summed(rows, ["query"])))
        if len(self._cells) > 1 and sum(part.height for part in self._cells) > max(
            _WAITING, 1.5 * self._added
        ):
            self._add_up()

    def _add_up(self) -> None:
        if len(self._cells) == 1:
            return  # each part is added up already
        # Files that write an id as a number and as text mean the same by it.
        self._cells = [_summed(pl.concat(_alike(self._cells)), CELL)]
        self._rows = [_summed(pl.concat(_alike(self._rows)), ["query"])]
        self._added = self._cells[0].height

    def copy(self) -> Tally:
        """The same counts, which no longer change with these."""
        return Tally(
            Counter(self.bad_rows), Counter(self.bad_clicks), list(self._cells), list(self._rows), self._added
        )

    def become(self, other: Tally) -> None:
        """Take over another's counts in place of one's own."""
        self.bad_rows.clear()
        self.bad_clicks.clear()
        self._cells, self._rows, self._added = [], [], 0
        self.merge(other)

    def merge(self, other: Tally) -> None:
        """Add another's counts."""
        self.bad_rows.update(other.bad_rows)
        self.bad_clicks.update(other.bad_clicks)
        for cells, rows in zip(other._cells, other._rows, strict=True):
            self.add(cells, rows, distinct=True)

    def parts(self) -> tuple[pl.DataFrame, pl.DataFrame] | None:
        """Everything counted so far as two tables; None if that is nothing."""
        if not self._cells:
            return None
        self._add_up()
        return self._cells[0], self._rows[0]

    def log(self, *, name: str) -> ClickLog:
        """Everything counted so far; ValueError if there is nothing."""
        if not self._cells:
            reasons = ", ".join(f"{count:,} with {reason}" for reason, count in self.bad_rows.items())
            raise ValueError(f"{name}: no row to count" + (f"; bad rows: {reasons}" if reasons else ""))
        self._add_up()
        cells, rows = self._cells[0], self._rows[0]
        query_ids, queries = _numbered(cells["query"])
        item_ids, items = _numbered(cells["item"])
        positions, shown, clicked = (cells[name].to_numpy() for name in ("position", "shown", "clicked"))
        n_positions = int(positions.max()) + 1
        key = (queries * len(item_ids) + items) * n_positions + positions
        if (key[1:] < key[:-1]).any():
            order = np.argsort(key, kind="stable")
            queries, items, positions = queries[order], items[order], positions[order]
            shown, clicked = shown[order], clicked[order]
        del key
        by_query = dict(_as_text(rows).iter_rows())
        return ClickLog(
            queries=_fixed(queries),
            items=_fixed(items),
            positions=_fixed(positions),
            shown=_fixed(shown),
            clicked=_fixed(clicked),
            query_ids=query_ids,
            item_ids=item_ids,
            rows=np.array([by_query.get(query, 0) for query in query_ids]),
            n_positions=n_positions,
            bad_rows=self.bad_rows,
            bad_clicks={reason: count for reason, count in self.bad_clicks.items() if count},
            name=name,
        )


def _fixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same numbers as an array that does not change, so that it need not be copied again."""
    owned = numbers if numbers.flags.owndata else numbers.copy()
    owned.setflags(write=False)
    return owned


def _summed(frame: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    return frame.group_by(by).agg(pl.all().sum())


def _named_alike(frame: pl.DataFrame) -> pl.DataFrame:
    # Whole numbers stay numbers, which are quicker to group than text; every size of them is the same.
    names = [column for column in ("query", "item") if column in frame.columns]
    return frame.with_columns(
        pl.col(name).cast(pl.Int64 if frame.schema[name].is_integer() else pl.String) for name in names
    )


def _as_text(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        pl.col(name).cast(pl.String) for name in ("query", "item") if name in frame.columns
    )


def _alike(frames: list[pl.DataFrame]) -> list[pl.DataFrame]:
    same = all(frame.schema == frames[0].schema for frame in frames)
    return frames if same else [_as_text(frame) for frame in frames]


def _numbered(column: pl.Series) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The different names in a column, and which of them each is."""
    if column.dtype.is_integer() and (column.to_numpy() >= 0).all():
        values = column.unique().sort()
        number = np.searchsorted(values.to_numpy(), column.to_numpy())
        return tuple(values.cast(pl.String).to_list()), number.astype(np.int64, copy=False)
    names = pl.DataFrame({"value": column.unique()}).with_columns(name=pl.col("value").cast(pl.String))
    # Shorter ones first, so that numbers come by their size.
    names = names.sort(pl.col("name").str.len_chars(), "name").with_row_index("number")
    found = pl.DataFrame({"value": column}).join(names, on="value", how="left", maintain_order="left")
    return tuple(names["name"].to_list()), found["number"].cast(pl.Int64).to_numpy()
