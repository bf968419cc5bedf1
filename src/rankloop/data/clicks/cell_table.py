"""Impressions counted by cell as they are read, where query, item and position are whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop.data.clicks.batches import parquet_batches
from rankloop.kernels import cell_table as kernel

_FULL = 0.7  # of the rows of a table, beyond which it grows
_MOST_ROWS = 2**31 - 1  # impressions that a cell's count can hold
_BATCH = 1 << 17

Limits = dict[str, tuple[int, int]]


class CellTable:
    """Counts of cells, each one number made of query, item and position."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.table = _empty(1 << 18)
        self.used, self.rows = 0, 0

    def count(self, columns: dict[str, NDArray[np.int64]], clicks: NDArray[np.uint8]) -> None:
        """Count impressions, clicked 0 or 1 times each."""
        key = np.zeros(len(clicks), np.int64)
        for name, (low, high) in self.limits.items():
            key *= high - low + 1
            key += columns[name].astype(np.int64, copy=False)
            key -= low
        size = len(self.table)
        while self.used + len(key) > _FULL * size:
            size *= 2
        if size > len(self.table):
            larger = _empty(size)
            kernel.move(self.table, larger)
            self.table = larger
        self.used += kernel.count(self.table, key, clicks)
        self.rows += len(key)

    def cells(self) -> pl.DataFrame:
        """Every cell, with its rows and how many of them were clicked, in the order of query, item and position."""
        found = self.table[self.table[:, 0] >= 0]
        found = found[np.argsort(found[:, 0])]
        key, rows = found[:, 0].copy(), found[:, 1] & (kernel.CLICK - 1)
        columns: dict[str, NDArray[np.int64]] = {"rows": rows, "hits": found[:, 1] >> 32}
        for name, (low, high) in reversed(self.limits.items()):
            key, columns[name] = np.divmod(key, high - low + 1)
            columns[name] += low
        return pl.DataFrame(columns)


def _empty(size: int) -> NDArray[np.int64]:
    table = np.empty((size, 2), np.int64)
    table[:, 0] = -1
    return table


def count_whole_numbers(
    path: Path, wanted: Mapping[str, str], limits: Limits, watch: Callable[[int], None]
) -> Iterator[pl.DataFrame]:
    """The different cells of the impressions in a Parquet file, and rows whose click is neither 0 nor 1."""
    table, bad = CellTable(limits), list[pl.DataFrame]()
    done = 0
    for batch in parquet_batches(path, list(wanted.values()), _BATCH):
        columns = {ours: batch.column(theirs) for ours, theirs in wanted.items()}
        click = pl.Series(columns.pop("click"))
        hit, miss = (click, ~click) if click.dtype == pl.Boolean else (click == 1, click == 0)
        known = (hit | miss).fill_null(False).to_numpy()
        hits = hit.fill_null(False).to_numpy().astype(np.uint8)
        cells = {name: column.to_numpy(zero_copy_only=False) for name, column in columns.items()}
        if not known.all():
            bad.append(pl.DataFrame({name: column[~known] for name, column in cells.items()}))
            cells, hits = {name: column[known] for name, column in cells.items()}, hits[known]
        if table.rows + len(hits) > _MOST_ROWS:
            yield table.cells()
            table = CellTable(limits)
        table.count(cells, hits)
        done += batch.num_rows
        watch(done)
    yield table.cells()
    if bad:
        no_click, once = pl.lit(None, pl.Int64).alias("click"), pl.lit(1, pl.Int64).alias("rows")
        yield pl.concat(bad).with_columns(no_click, once)


def limits_of(rows: pl.LazyFrame, cell: list[str]) -> Limits:
    """Least and largest value of each column, if one whole number can hold a cell; else nothing."""
    schema = rows.collect_schema()
    if not all(schema[name].is_integer() for name in cell):
        return {}
    ends = rows.select(
        *(pl.col(name).min().cast(pl.Int64).alias(f"low {name}") for name in cell),
        *(pl.col(name).max().cast(pl.Int64).alias(f"high {name}") for name in cell),
        *(pl.col(name).null_count().alias(f"nulls {name}") for name in cell),
    )
    try:
        told = ends.collect(engine="streaming").row(0, named=True)
    except pl.exceptions.InvalidOperationError:  # beyond 64 bits with a sign
        return {}
    if any(told[f"nulls {name}"] or told[f"low {name}"] is None for name in cell):
        return {}
    limits = {name: (int(told[f"low {name}"]), int(told[f"high {name}"])) for name in cell}
    sizes = [high - low + 1 for low, high in limits.values()]
    return limits if math.prod(sizes) < 2**62 else {}
