"""Counting impressions chunk by chunk: what is held grows with the different cells, not with the rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from rankloop.feedback import ClickLog

CELL = ["query", "item", "position"]
# Rows of cells that may wait before they are added up: enough to make adding rare, and 20 MB of numbers.
_WAITING = 500_000


@dataclass(slots=True)
class Tally:
    """Sums of `shown` and `clicked` by query, item and position, and of rows by query."""

    bad_rows: Counter[str] = field(default_factory=Counter)
    _cells: list[pl.DataFrame] = field(default_factory=list)
    _rows: list[pl.DataFrame] = field(default_factory=list)
    _added: int = 0

    def add(self, cells: pl.DataFrame, rows: pl.DataFrame) -> None:
        """Count some: columns query, item, position, shown, clicked; and query, rows."""
        self._cells.append(_named_alike(_summed(cells, CELL)))
        self._rows.append(_named_alike(_summed(rows, ["query"])))
        if sum(part.height for part in self._cells) > max(_WAITING, 2 * self._added):
            self._add_up()

    def _add_up(self) -> None:
        # Files that write an id as a number and as text mean the same by it.
        self._cells = [_summed(pl.concat(_alike(self._cells)), CELL)]
        self._rows = [_summed(pl.concat(_alike(self._rows)), ["query"])]
        self._added = self._cells[0].height

    def log(self, *, name: str) -> ClickLog:
        """Everything counted so far; ValueError if there is nothing."""
        self._cells = [part for part in self._cells if part.height]
        if not self._cells:
            reasons = ", ".join(f"{count:,} with {reason}" for reason, count in self.bad_rows.items())
            raise ValueError(f"{name}: no row to count" + (f"; bad rows: {reasons}" if reasons else ""))
        self._add_up()
        cells, rows = _as_text(self._cells[0]), _as_text(self._rows[0])
        query_ids, item_ids = (_names(cells[column]) for column in ("query", "item"))
        cells = cells.with_columns(
            pl.col("query").replace_strict(query_ids, np.arange(len(query_ids)), return_dtype=pl.Int64),
            pl.col("item").replace_strict(item_ids, np.arange(len(item_ids)), return_dtype=pl.Int64),
        ).sort(CELL)
        by_query = dict(rows.iter_rows())
        return ClickLog(
            queries=cells["query"].to_numpy(),
            items=cells["item"].to_numpy(),
            positions=cells["position"].to_numpy(),
            shown=cells["shown"].to_numpy(),
            clicked=cells["clicked"].to_numpy(),
            query_ids=tuple(query_ids),
            item_ids=tuple(item_ids),
            rows=np.array([by_query.get(query, 0) for query in query_ids]),
            n_positions=int(cells["position"].max()) + 1,  # type: ignore[arg-type]
            bad_rows=self.bad_rows,
            name=name,
        )


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


def _names(column: pl.Series) -> list[str]:
    # Shorter ones first, so that numbers come by their size.
    return sorted(column.unique().to_list(), key=lambda name: (len(name), name))
