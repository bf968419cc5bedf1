"""Tables of impressions or of counts: which column is which, how values are read, and which rows are bad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rankloop.arguments import ArgumentError
from rankloop.data.text import broken_file_named, open_bytes, read_rows

if TYPE_CHECKING:
    from rankloop.data.click_counts import Tally

# Names of the columns in the known formats; the first of each is ours.
COLUMNS = {
    "query": ("query", "query_id", "qid", "q", "search_term", "search_query", "keyword"),
    "item": ("item", "item_id", "document", "document_id", "doc", "doc_id", "sku", "product", "product_id"),
    "position": ("position", "rank", "pos", "slot"),
    "click": ("click", "clicked", "is_click"),
    "shown": ("shown", "impressions", "displays", "views"),
    "clicks": ("clicks",),
    "propensity": ("propensity", "propensity_score", "pscore"),
    "page": ("page", "page_id", "session", "session_id", "decision"),
}
FAULTS = (pl.exceptions.PolarsError, OSError)  # of a file that cannot be read
BAD_CHANCE = "a propensity that is not above 0 and up to 1"
_MOST_POSITIONS = 100_000  # beyond it, a column was taken for positions that holds something else
_ROWS = 200_000  # of CSV in a batch

Checks = list[tuple[str, pl.Expr]]


class Table(NamedTuple):
    """A CSV or Parquet file, and how it is to be read."""

    path: Path
    kind: str
    columns: Mapping[str, str]
    first_position: int


def match_columns(path: Path, header: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Which of the columns in `header` is which, by our names."""
    for ours, theirs in columns.items():
        if ours not in COLUMNS:
            raise ArgumentError("columns", f"columns must name any of {', '.join(COLUMNS)}, got {ours!r}")
        if theirs not in header:
            raise ArgumentError(
                "columns", f"columns: {path} has no column {theirs!r}, only {', '.join(header)}"
            )
    matched = dict(columns)
    for ours, known in COLUMNS.items():
        for name in known:
            if name in header:
                matched.setdefault(ours, name)
    return matched


def require_columns(path: Path, names: Iterable[str], matched: Mapping[str, str], why: str = "") -> None:
    """ValueError that names all columns that are missing, at once."""
    if missing := [name for name in names if name not in matched]:
        them = "it" if len(missing) == 1 else "them"
        told = ", ".join(f"{name!r}: ..." for name in missing)
        raise ValueError(
            f"{path}: no column for {', '.join(missing)}{why}; name {them} with columns={{{told}}}"
        )


def read_header(path: Path, kind: str) -> list[str]:
    """The names of the columns of a table."""
    if kind == "parquet":
        try:
            return list(pl.read_parquet_schema(path))
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"{path}: broken Parquet file: {error}") from error
    _, first = next(read_rows(path, separator=find_separator(path)), (1, []))
    if not first:
        raise ValueError(f"{path}: no header line")
    return first


def find_separator(path: Path) -> str:
    """What stands between the cells: a comma, a tab or a semicolon, whichever the header has."""
    with broken_file_named(path, lambda: 0), open_bytes(path) as file:
        header = file.readline(1 << 16)
    if b"\r" in header.rstrip(b"\r\n"):
        raise ValueError(
            f"{path}, line 1: lines end in CR alone, as on very old systems; write them with LF or CR LF"
        )
    return max((",", "\t", ";"), key=lambda sign: header.count(sign.encode()))


def whole_column(dtype: pl.DataType, name: str) -> pl.Expr:
    """A column as whole numbers; null where a value is not one."""
    if dtype == pl.String:  # "2.0" is 2, as a spreadsheet may write it
        text = pl.col(name).str.strip_chars().str.replace(r"\.0+$", "")
        return text.cast(pl.Int64, strict=False)
    if dtype.is_float():
        return pl.when(pl.col(name) == pl.col(name).floor()).then(pl.col(name).cast(pl.Int64, strict=False))
    return pl.col(name).cast(pl.Int64, strict=False)


def click_column(dtype: pl.DataType) -> pl.Expr:
    """The column `click` as 0 or 1; null for anything else."""
    if dtype == pl.String:
        text = pl.col("click").str.strip_chars().str.to_lowercase()
        yes, no = text.is_in(["1", "true", "1.0"]), text.is_in(["0", "false", "0.0"])
    else:
        number = pl.col("click").cast(pl.Float64, strict=False)
        yes, no = number == 1.0, number == 0.0
    return pl.when(yes).then(pl.lit(1, pl.Int64)).when(no).then(pl.lit(0, pl.Int64))


def renamed(rows: pl.LazyFrame, wanted: Mapping[str, str]) -> pl.LazyFrame:
    """The wanted columns under our names."""
    return rows.select(pl.col(theirs).alias(ours) for ours, theirs in wanted.items())


def read_batches(
    path: Path, kind: str, wanted: Mapping[str, str], tally: Tally, names: Sequence[str] = ()
) -> Iterator[pl.DataFrame]:
    """The wanted columns under our names: a Parquet file whole, of CSV the rows of the right length, some at a time."""
    if kind == "parquet":
        try:
            frame = renamed(pl.scan_parquet(path), wanted).collect(engine="streaming")
        except FAULTS as error:
            raise ValueError(f"{path}: broken Parquet file: {error}") from error
        if frame.height:
            yield frame
        return
    header = list(names) or read_header(path, kind)
    places = [header.index(theirs) for theirs in wanted.values()]
    rows = read_rows(path, separator=find_separator(path), strict=False)
    if not names:
        next(rows)
    batch: list[list[str | None]] = []
    # Text: a value that is not a number is then one bad row instead of the end of the reading.
    types = dict.fromkeys(wanted, pl.String)
    for _, cells in rows:
        if len(cells) == len(header):
            batch.append([cells[place] or None for place in places])
        elif cells:
            tally.bad_rows["too many or too few cells"] += 1
        if len(batch) == _ROWS:
            yield pl.DataFrame(batch, types, orient="row")
            batch = []
    if batch:
        yield pl.DataFrame(batch, types, orient="row")


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
