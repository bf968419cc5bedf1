"""Counting impressions chunk by chunk: what is held grows with the different cells, not with the rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from rankloop.feedback import ClickLog

CELL = ["query", "item", "position"]
# Rows of cells that may wait before they are added up: enough to make adding rare, and 50 MB at the most.
_WAITING = 1_000_000


@dataclass(slots=True)
class Tally:
    """Sums of `shown` and `clicked` by query, item and position, and of rows by query."""

    bad_rows: Counter[str] = field(default_factory=Counter)
    _cells: list[pl.DataFrame] = field(default_factory=list)
    _rows: list[pl.DataFrame] = field(default_factory=list)
    _added: int = 0

    def add(self, cells: pl.DataFrame, rows: pl.DataFrame) -> None:
        """Count some: columns query, item, position, shown, clicked; and query, rows."""
        # Names become text only after grouping, when there are few of them left.
        names = pl.col("query").cast(pl.String), pl.col("item").cast(pl.String)
        self._cells.append(_summed(cells, CELL).with_columns(names))
        self._rows.append(_summed(rows, ["query"]).with_columns(names[0]))
        if sum(part.height for part in self._cells) > max(_WAITING, 2 * self._added):
            self._add_up()

    def _add_up(self) -> None:
        self._cells = [_summed(pl.concat(self._cells), CELL)]
        self._rows = [_summed(pl.concat(self._rows), ["query"])]
        self._added = self._cells[0].height

    def log(self, *, name: str) -> ClickLog:
        """Everything counted so far; ValueError if there is nothing."""
        self._cells = [part for part in self._cells if part.height]
        if not self._cells:
            reasons = ", ".join(f"{count:,} with {reason}" for reason, count in self.bad_rows.items())
            raise ValueError(f"{name}: no row to count" + (f"; bad rows: {reasons}" if reasons else ""))
        self._add_up()
        cells, rows = self._cells[0], self._rows[0]
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


def _names(column: pl.Series) -> list[str]:
    # Shorter ones first, so that numbers come by their size.
    return sorted(column.unique().to_list(), key=lambda name: (len(name), name))
