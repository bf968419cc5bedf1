"""Which rows of a table count, and why the others do not."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from rankloop.data.clicks.columns import click_column, whole_column
from rankloop.data.clicks.tally import Tally

_MOST_POSITIONS = 100_000  # beyond it, a column was taken for positions that holds something else
TOO_MANY_CLICKS = "more clicks than times shown"

Checks = list[tuple[str, pl.Expr]]


def count_rows(
    batch: pl.DataFrame, tally: Tally, *, counts: bool, first_position: int | None, clip: bool, path: Path
) -> None:
    """Count rows that are alike `rows` times, or cells of which `hits` rows were clicked; bad ones by their fault."""
    batch = batch.filter(~pl.all_horizontal(pl.all().exclude("rows").is_null()))  # an empty line
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


def row_checks(first_position: int) -> Checks:
    """The faults of a row, whatever it is read for."""
    return [
        ("no query", pl.col("query").is_null()),
        ("no item", pl.col("item").is_null()),
        (
            f"a position that is not a whole number from {first_position} on",
            (pl.col("position") < 0) | (pl.col("position") > _MOST_POSITIONS),
        ),
        ("a click that is not 0 or 1", pl.col("clicks").is_null()),
    ]


def drop_bad(batch: pl.DataFrame, tally: Tally, checks: Checks) -> pl.DataFrame:
    """The rows without a fault; each bad row is counted once, under its first fault."""
    for reason, bad in checks:
        # A number that could not be read is null, and as bad as one that is out of range.
        wrong = batch.filter(bad.fill_null(True))
        if wrong.height:
            tally.bad_rows[reason] += int(wrong["rows"].sum()) if "rows" in wrong.columns else wrong.height
            if "all_clicks" in wrong.columns:
                tally.bad_clicks[reason] += int(wrong["all_clicks"].clip(lower_bound=0).sum())
            batch = batch.filter(~bad.fill_null(True))
    return batch
