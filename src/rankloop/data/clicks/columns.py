"""Which column of a table is which, and how its values are read."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet

from rankloop.data.text_files import broken_file_named, malformed, open_bytes, packing, read_rows

# Names of the columns in the known formats; the first of each is ours.
COLUMNS = {
    "query": ("query", "query_id", "qid", "q"),
    "item": ("item", "item_id", "document", "document_id", "doc", "doc_id"),
    "position": ("position", "rank", "pos"),
    "click": ("click", "clicked"),
    "shown": ("shown", "impressions", "displays", "views"),
    "clicks": ("clicks",),
    "propensity": ("propensity", "propensity_score", "pscore"),
    "page": ("page", "page_id", "session", "session_id", "decision"),
}


def find_columns(path: Path, kind: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Which column of a table is which, by our names."""
    return match_columns(path, read_header(path, kind), columns)


def match_columns(path: Path, header: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Which of the columns in `header` is which, by our names."""
    for ours, theirs in columns.items():
        if ours not in COLUMNS:
            raise ValueError(f"columns must name any of {', '.join(COLUMNS)}, got {ours!r}")
        if theirs not in header:
            raise ValueError(f"columns: {path} has no column {theirs!r}, only {', '.join(header)}")
    found = dict(columns)
    for ours, known in COLUMNS.items():
        for name in known:
            if name in header:
                found.setdefault(ours, name)
    return found


def read_header(path: Path, kind: str) -> list[str]:
    """The names of the columns of a table."""
    if kind == "parquet":
        try:
            return list(pyarrow.parquet.read_schema(path).names)
        except (pa.ArrowException, EOFError) as error:
            raise ValueError(f"{path}: broken Parquet file: {error}") from error
    separator = find_separator(path)
    _, first = next(read_rows(path, separator=separator), (1, []))
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


def refuse_cut(path: Path, header: list[str]) -> None:
    """Refuse a plain file whose last line has no end and too few cells: part of it is missing."""
    if packing(path):
        return  # those are noticed by what unpacks them
    with path.open("rb") as file:
        file.seek(0, 2)
        size = file.tell()
        file.seek(max(0, size - (1 << 20)))
        tail = file.read()
    if tail.endswith((b"\n", b"\r")) or b"\n" not in tail:
        return
    last = tail[tail.rindex(b"\n") + 1 :].decode("utf-8", errors="replace")
    cells = next(csv.reader([last], delimiter=find_separator(path)), [])
    if len(cells) < len(header):
        with path.open("rb") as file:
            line = 1 + sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 24), b""))
        malformed(
            path,
            line,
            f"the file ends in the middle of a line, {len(cells)} of {len(header)} cells: {last[:80]!r}; copy it again,"
            " or delete that line",
        )


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
