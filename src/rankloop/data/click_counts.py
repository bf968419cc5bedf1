"""Impressions counted by query, item and position: what is held grows with the different cells, not with the rows.

Polars groups equal rows in one streaming pass; only what is left, a row for each different one, is checked and read.
Where a cell of a Parquet table is made of whole numbers, it becomes one number: those are sorted, and equal ones are
counted. A CSV file with rows of different lengths is read again row by row, to count those.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop.data.click_pages import SHOWN
from rankloop.data.click_tables import (
    COLUMNS,
    FAULTS,
    click_column,
    drop_bad,
    find_separator,
    match_columns,
    read_batches,
    read_header,
    renamed,
    require_columns,
    row_checks,
    whole_column,
)
from rankloop.data.text import json_object, line_blocks, lines_of
from rankloop.feedback import ClickLog

TOO_MANY_CLICKS = "more clicks than times shown"
PART = 1 << 25  # rows of Parquet that are grouped at once
_LINES = 100  # of JSON that are looked at for the names of the columns

Limits = dict[str, tuple[int, int]]

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

    def reasons(self) -> str:
        """Why rows were left out, as the end of a sentence."""
        reasons = ", ".join(f"{count:,} with {reason}" for reason, count in self.bad_rows.items())
        return f"; bad rows: {reasons}" if reasons else ""

    def log(self, *, name: str) -> ClickLog:
        """Everything counted so far; ValueError if there is nothing."""
        if not self._cells:
            raise ValueError(f"{name}: no row to count{self.reasons()}")
        self._add_up()
        (cells,), (rows,) = self._cells, self._rows
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
    numbered = pl.DataFrame({"value": column}).join(names, on="value", how="left", maintain_order="left")
    return tuple(names["name"].to_list()), numbered["number"].cast(pl.Int64).to_numpy()


def count_table(
    path: Path,
    tally: Tally,
    *,
    kind: str,
    columns: Mapping[str, str],
    first_position: int | None,
    clip: bool = False,
    names: Sequence[str] = (),
) -> None:
    """Count the rows of a table; `names` are those of a CSV file without a header."""
    header = list(names) or (_json_header(path) if kind == "jsonl" else read_header(path, kind))
    matched = match_columns(path, header, columns)
    counts = "click" not in matched
    needed = ("item", "position", *(("shown", "clicks") if counts else ()))
    known = "; ".join(", ".join(COLUMNS[name]) for name in needed if name not in matched)
    require_columns(path, needed, matched, f" (known names: {known}) among {', '.join(header)}")
    ours = ("query", "item", "position", *(("shown", "clicks") if counts else ("click",)))
    wanted = {name: matched[name] for name in ours if name in matched}

    for rows in _rows_of(path, kind, wanted, tally, names):
        _count_rows(rows, tally, counts=counts, first_position=first_position, clip=clip, path=path)


def _rows_of(
    path: Path, kind: str, wanted: Mapping[str, str], tally: Tally, names: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """The rows of a table under our names; some with how often they occur, or with the clicks of a cell."""
    if kind == "jsonl":
        yield from _json_rows(path, wanted)
    elif kind == "parquet":
        try:
            yield from _parquet_parts(path, wanted)
        except FAULTS as error:
            raise ValueError(f"{path}: broken Parquet file: {error}") from error
    else:
        try:
            grouped = _grouped_text(path, wanted, names)
        except FAULTS:
            yield from read_batches(path, kind, wanted, tally, names)
        else:
            yield grouped


def _grouped_text(path: Path, wanted: Mapping[str, str], names: Sequence[str]) -> pl.DataFrame:
    """Different rows of a CSV file, under our names, and how often each occurs."""
    # Text: a value that is not a number is then one bad row instead of the end of the reading.
    text = pl.scan_csv(
        path,
        infer_schema=False,
        separator=find_separator(path),
        has_header=not names,
        schema=dict.fromkeys(names, pl.String) or None,
    )
    # All columns are parsed: otherwise a cell too many would go unnoticed.
    return _grouped(renamed(text, wanted), pl.QueryOptFlags(projection_pushdown=False))


def _grouped(rows: pl.LazyFrame, flags: pl.QueryOptFlags) -> pl.DataFrame:
    grouped = rows.group_by(rows.collect_schema().names()).agg(pl.len().cast(pl.Int64).alias("rows"))
    return grouped.collect(engine="streaming", optimizations=flags)


def _parquet_parts(path: Path, wanted: Mapping[str, str]) -> Iterator[pl.DataFrame]:
    """Different rows of a Parquet file and how often each occurs, or different cells with their clicks."""
    rows = renamed(pl.scan_parquet(path), wanted)
    schema = rows.collect_schema()
    for ours, dtype in schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise ValueError(
                f"{path}: column {wanted[ours]!r}, for {ours}, holds {dtype}, not text or numbers"
            )
    total = max(int(rows.select(pl.len()).collect().item()), 1)
    parts = [rows.slice(start, PART) for start in range(0, total, PART)]
    limits: Limits = {}
    if "click" in schema and (schema["click"].is_numeric() or schema["click"] == pl.Boolean):
        limits = _limits(rows, [name for name in schema if name != "click"])
    counted: list[pl.DataFrame] = []
    for part in parts:
        if limits:
            counted.append(_counted_keys(part, limits, schema["click"]))
            if sum(keys.height for keys in counted) > PART:
                counted = [_added_up(counted)]
        else:
            yield _grouped(part, pl.QueryOptFlags())
    if counted:
        yield from _cells(_added_up(counted), limits)


def _limits(rows: pl.LazyFrame, cell: list[str]) -> Limits:
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
        known = ends.collect(engine="streaming").row(0, named=True)
    except pl.exceptions.InvalidOperationError:  # beyond 64 bits with a sign
        return {}
    if any(known[f"nulls {name}"] or known[f"low {name}"] is None for name in cell):
        return {}
    limits = {name: (int(known[f"low {name}"]), int(known[f"high {name}"])) for name in cell}
    return limits if math.prod(high - low + 1 for low, high in limits.values()) < 2**60 else {}


def _counted_keys(rows: pl.LazyFrame, limits: Limits, click: pl.DataType) -> pl.DataFrame:
    """Cell and click as one number, 2 for a click that is neither 0 nor 1: each in order, and how often it occurs."""
    key = pl.lit(0, pl.Int64)
    for name, (low, high) in limits.items():
        key = key * (high - low + 1) + (pl.col(name).cast(pl.Int64) - low)
    keys = rows.select((key * 3 + click_column(click).fill_null(2)).alias("key"))
    # Sorted, and equal ones counted: half the time of grouping them.
    runs = (
        keys.select(pl.col("key").sort().rle())
        .unnest("key")
        .select(key="value", rows=pl.col("len").cast(pl.Int64))
    )
    return runs.collect(engine="streaming")


def _added_up(counted: list[pl.DataFrame]) -> pl.DataFrame:
    if len(counted) == 1:
        return counted[0]
    together = pl.concat(counted).lazy().group_by("key").agg(pl.col("rows").sum())
    return together.sort("key").collect(engine="streaming")


def _cells(keys: pl.DataFrame, limits: Limits) -> Iterator[pl.DataFrame]:
    """Cells in order, with their rows and how many of them were clicked; then those whose clicks cannot be read."""
    cell, click = np.divmod(keys["key"].to_numpy(), 3)
    times = keys["rows"].to_numpy()
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    none, one, other = (np.add.reduceat(np.where(click == mark, times, 0), starts) for mark in range(3))
    rest, columns = cell[starts], dict[str, NDArray[np.int64]]()
    for name, (low, high) in reversed(limits.items()):
        rest, place = np.divmod(rest, high - low + 1)
        columns[name] = place + low
    cells = pl.DataFrame({**columns, "rows": none + one, "hits": one, "other": other})
    yield cells.filter(pl.col("rows") > 0).drop("other")
    if other.any():
        no_click = pl.lit(None, pl.Int64).alias("click")
        yield cells.filter(pl.col("other") > 0).select(*limits, no_click, pl.col("other").alias("rows"))


def _count_rows(
    batch: pl.DataFrame, tally: Tally, *, counts: bool, first_position: int | None, clip: bool, path: Path
) -> None:
    """Count rows that are alike `rows` times, or cells of which `hits` rows were clicked; bad ones by their fault."""
    batch = batch.filter(~pl.all_horizontal(pl.all().exclude("rows").is_null()))  # an empty line
    if "rows" not in batch.columns:
        batch = batch.with_columns(rows=pl.lit(1, pl.Int64))
    if "query" not in batch.columns:
        batch = batch.with_columns(pl.lit("").alias("query"))
    types = batch.schema
    added = "hits" in batch.columns
    numbers = {"position": whole_column(types["position"], "position")}
    if added:
        numbers["clicks"] = pl.col("hits")
    elif counts:
        numbers |= {name: whole_column(types[name], name) for name in ("shown", "clicks")}
    else:
        numbers["clicks"] = click_column(types["click"])
    batch = batch.with_columns(**numbers)
    each = pl.lit(1, pl.Int64) if added else pl.col("rows")  # `hits` are those of all rows
    batch = batch.with_columns(all_clicks=pl.col("clicks") * each)
    if first_position is None:
        _ask_where_positions_begin(path, batch)
    first = 1 if first_position is None else first_position
    batch = batch.with_columns(pl.col("position") - first)
    checks = row_checks(first)
    if counts:
        checks.append(("negative counts", (pl.col("shown") < 0) | (pl.col("clicks") < 0)))
        if not clip:
            checks.append((TOO_MANY_CLICKS, pl.col("clicks") > pl.col("shown")))
    good = drop_bad(batch, tally, checks)
    if counts:
        good = good.filter(pl.col("shown") > 0)
        times, clicks = pl.col("shown"), pl.min_horizontal("clicks", "shown")
    else:
        times, clicks = pl.lit(1, pl.Int64), pl.col("clicks")
    cells = good.select(
        "query", "item", "position", (times * pl.col("rows")).alias("shown"), (clicks * each).alias("clicked")
    )
    tally.add(cells, good.select("query", "rows"), distinct=added)


def _ask_where_positions_begin(path: Path, batch: pl.DataFrame) -> None:
    # A few stray zeros among many rows are bad rows; a share of them is a top position.
    batch = batch.filter(pl.col("clicks").is_not_null())
    zeros = batch.filter(pl.col("position") == 0)
    rows, all_rows = int(zeros["rows"].sum()), int(batch["rows"].sum())
    if rows * 1_000 >= all_rows > 0 and rows > 0:
        clicks, of = int(zeros["all_clicks"].sum()), int(batch["all_clicks"].sum())
        share = f", with {clicks / of:.0%} of the clicks," if of > 0 else ""
        raise ValueError(
            f"{path}: {rows:,} of {all_rows:,} rows{share} are at position 0. If that is the top position, say"
            " first_position=0; if the top is 1 and these rows are to be left out, first_position=1"
        )


# Tables as JSON lines: an impression or a count on each line, by the names of its columns.


def _json_header(path: Path) -> list[str]:
    """The names on the first lines."""
    names: dict[str, None] = {}
    for number, block in line_blocks(path):
        for place, line in islice(lines_of(path, number, block), _LINES):
            names |= dict.fromkeys(json_object(path, place, line))
        break
    return list(names)


def is_json_table(path: Path, columns: Mapping[str, str]) -> bool:
    """Whether the first line of JSON lines is a row, with an item of its own, and not a page with a list of them."""
    for number, block in line_blocks(path):
        for place, line in lines_of(path, number, block):
            first = json_object(path, place, line)
            lists = any(isinstance(first.get(name), list) for name in SHOWN)
            return not lists and any(name in first for name in (columns.get("item", ""), *COLUMNS["item"]))
    return False


def _json_rows(path: Path, wanted: Mapping[str, str]) -> Iterator[pl.DataFrame]:
    """The wanted columns under our names, a block of lines at a time, as text."""
    for number, block in line_blocks(path):
        objects = [json_object(path, place, line) for place, line in lines_of(path, number, block)]
        rows = {ours: [_text(fields.get(theirs)) for fields in objects] for ours, theirs in wanted.items()}
        yield pl.DataFrame(rows, schema=dict.fromkeys(wanted, pl.String))


def _text(value: Any) -> str | None:
    """A value as a CSV file would have it; nothing for lists and objects."""
    return None if value is None or isinstance(value, list | dict) else str(value)
