"""Tables of impressions or of counts, in CSV, Parquet or JSON lines.

Impressions in Parquet whose columns are whole numbers are counted as they are read. Otherwise Polars groups equal rows
in one streaming pass; only what is left, a row for each different one, is checked and read. A CSV file with rows of
different lengths is read again by the block, to count those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow.parquet

from rankloop.data.clicks.batches import batches, broken_parquet
from rankloop.data.clicks.cell_table import count_whole_numbers, limits_of
from rankloop.data.clicks.columns import COLUMNS, find_separator, match_columns, read_header, refuse_cut
from rankloop.data.clicks.json_tables import json_batches, json_header
from rankloop.data.clicks.rows import count_rows
from rankloop.data.clicks.spilling import Refused, Spilling
from rankloop.data.clicks.tally import Tally

PART = 1 << 24  # rows of Parquet that are grouped at once

Watch = Callable[[float], None]


def count_table(
    path: Path,
    tally: Tally,
    *,
    kind: str,
    columns: Mapping[str, str],
    first_position: int | None,
    clip: bool = False,
    names: Sequence[str] = (),
    watch: Watch = lambda _: None,
    spilling: Spilling | None = None,
) -> None:
    """Count the rows of a table; `names` are those of a CSV file without a header, `watch` is told the share done."""
    header = list(names) or (json_header(path) if kind == "jsonl" else read_header(path, kind))
    found = match_columns(path, header, columns)
    counts = "click" not in found
    for needed in ("item", "position", *(("shown", "clicks") if counts else ())):
        if needed not in found:
            known = ", ".join(COLUMNS[needed])
            raise ValueError(
                f"{path}: no column for {needed} (known names: {known}) among {', '.join(header)};"
                f" name it with columns={{{needed!r}: ...}}"
            )
    ours = ("query", "item", "position", *(("shown", "clicks") if counts else ("click",)))
    wanted = {name: found[name] for name in ours if name in found}
    if kind == "csv":
        refuse_cut(path, header)
    before = tally.copy() if kind == "csv" else tally

    def count(rows: pl.DataFrame) -> None:
        count_rows(rows, tally, counts=counts, first_position=first_position, clip=clip, path=path)

    try:
        if kind == "parquet":
            _refuse_other_types(path, wanted)
        if kind == "jsonl":
            for batch in json_batches(path, wanted, watch):
                count(batch.with_columns(pl.lit(1, pl.Int64).alias("rows")))
        elif spilling is not None:
            count(spilling.group(path, kind, wanted, header, names=bool(names)))
        elif kind == "csv":
            count(_grouped_text(path, wanted, names))
        else:
            for part in _parquet_parts(path, wanted, watch):
                count(part)
    except (pl.exceptions.PolarsError, OSError, Refused) as error:
        if kind == "parquet":
            raise ValueError(broken_parquet(path, list(wanted.values()), error)) from error
        tally.become(before)
        for batch in batches(path, kind, wanted, tally, names):
            count(batch.with_columns(pl.lit(1, pl.Int64).alias("rows")))


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
    return _grouped(text, wanted, pl.QueryOptFlags(projection_pushdown=False))


def _refuse_other_types(path: Path, wanted: Mapping[str, str]) -> None:
    schema = pl.scan_parquet(path).collect_schema()
    for ours, theirs in wanted.items():
        if schema[theirs].is_nested() or schema[theirs] in (pl.Binary, pl.Object):
            raise ValueError(
                f"{path}: column {theirs!r}, for {ours}, holds {schema[theirs]}, not text or numbers"
            )


def _parquet_parts(path: Path, wanted: Mapping[str, str], watch: Watch) -> Iterator[pl.DataFrame]:
    """Different rows of a Parquet file, or different cells with their clicks."""
    table = pl.scan_parquet(path)
    schema = table.collect_schema()
    for ours, theirs in wanted.items():
        if schema[theirs].is_nested() or schema[theirs] in (pl.Binary, pl.Object):
            raise ValueError(
                f"{path}: column {theirs!r}, for {ours}, holds {schema[theirs]}, not text or numbers"
            )
    total = max(int(pyarrow.parquet.read_metadata(path).num_rows), 1)
    if "click" in wanted:
        rows = _renamed(table, wanted)
        click = rows.collect_schema()["click"]
        cell = [name for name in wanted if name != "click"]
        limits = limits_of(rows, cell) if click.is_numeric() or click == pl.Boolean else {}
        if limits:
            yield from count_whole_numbers(path, wanted, limits, lambda done: watch(done / total))
            return
    for start in range(0, total, PART):
        yield _grouped(table.slice(start, PART), wanted, pl.QueryOptFlags())
        watch(min(start + PART, total) / total)


def _renamed(rows: pl.LazyFrame, wanted: Mapping[str, str]) -> pl.LazyFrame:
    return rows.select(pl.col(theirs).alias(ours) for ours, theirs in wanted.items())


def _grouped(rows: pl.LazyFrame, wanted: Mapping[str, str], flags: pl.QueryOptFlags) -> pl.DataFrame:
    times = pl.len().cast(pl.Int64).alias("rows")
    grouped = _renamed(rows, wanted).group_by(list(wanted)).agg(times)
    return grouped.collect(engine="streaming", optimizations=flags)
