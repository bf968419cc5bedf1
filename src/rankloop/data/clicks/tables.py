"""Tables of impressions or of counts, in CSV or Parquet, read a batch at a time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rankloop.data.clicks.tally import Tally
from rankloop.data.text_files import read_rows

# Names of the columns in the known formats; the first of each is ours.
COLUMNS = {
    "query": ("query", "query_id", "qid", "q"),
    "item": ("item", "item_id", "document", "document_id", "doc", "doc_id"),
    "position": ("position", "rank", "pos"),
    "click": ("click", "clicked"),
    "shown": ("shown", "impressions", "displays", "views"),
    "clicks": ("clicks",),
    "propensity": ("propensity", "propensity_score", "pscore"),
}
_ROWS = 1 << 18  # of Parquet in a batch
_BYTES = 1 << 24  # of CSV in a batch
_MOST_POSITIONS = 100_000  # beyond it, a column was taken for positions that holds something else

Checks = list[tuple[str, pl.Expr]]


def count_table(
    path: Path, tally: Tally, *, kind: str, columns: Mapping[str, str], first_position: int
) -> None:
    """Count the rows of a table."""
    header = _header(path, kind)
    found = _find_columns(path, header, columns)
    counts = "click" not in found
    for needed in ("item", "position", *(("shown", "clicks") if counts else ())):
        if needed not in found:
            known = ", ".join(COLUMNS[needed])
            raise ValueError(
                f"{path}: no column for {needed} (known names: {known}) among {', '.join(header)};"
                f" name it with columns={{{needed!r}: ...}}"
            )
    names = ("query", "item", "position", *(("shown", "clicks") if counts else ("click",)))
    wanted = {ours: found[ours] for ours in names if ours in found}
    for batch in batches(path, kind, wanted, tally):
        _count(batch, tally, counts=counts, first_position=first_position)


def _count(batch: pl.DataFrame, tally: Tally, *, counts: bool, first_position: int) -> None:
    if "query" not in batch.columns:
        batch = batch.with_columns(pl.lit("").alias("query"))
    types = batch.schema
    numbers = {"position": whole_column(types["position"], "position") - first_position}
    if counts:
        numbers |= {name: whole_column(types[name], name) for name in ("shown", "clicks")}
    else:
        numbers["clicks"] = click_column(types["click"])
    batch = batch.with_columns(**numbers)
    checks = row_checks(first_position)
    if counts:
        checks += [
            ("negative counts", (pl.col("shown") < 0) | (pl.col("clicks") < 0)),
            ("more clicks than times shown", pl.col("clicks") > pl.col("shown")),
        ]
    good = drop_bad(batch, tally, checks)
    if counts:
        good = good.filter(pl.col("shown") > 0)
        times = pl.col("shown")
    else:
        times = pl.lit(1, pl.Int64)
    cells = good.select("query", "item", "position", times.alias("shown"), pl.col("clicks").alias("clicked"))
    tally.add(cells, good.select("query", pl.lit(1, pl.Int64).alias("rows")))


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
        good = batch.filter(~bad.fill_null(True))
        if good.height < batch.height:
            tally.bad_rows[reason] += batch.height - good.height
        batch = good
    return batch


def whole_column(dtype: pl.DataType, name: str) -> pl.Expr:
    """A column as whole numbers; null where a value is not one."""
    if dtype.is_float():
        return pl.when(pl.col(name) == pl.col(name).floor()).then(pl.col(name).cast(pl.Int64, strict=False))
    return pl.col(name).cast(pl.Int64, strict=False)


def click_column(dtype: pl.DataType) -> pl.Expr:
    """The column `click` as 0 or 1; null for anything else."""
    if dtype == pl.String:
        text = pl.col("click").str.to_lowercase()
        yes, no = text.is_in(["1", "true", "1.0"]), text.is_in(["0", "false", "0.0"])
    else:
        number = pl.col("click").cast(pl.Float64, strict=False)
        yes, no = number == 1.0, number == 0.0
    return pl.when(yes).then(pl.lit(1, pl.Int64)).when(no).then(pl.lit(0, pl.Int64))


def batches(path: Path, kind: str, wanted: Mapping[str, str], tally: Tally) -> Iterator[pl.DataFrame]:
    """The wanted columns under our names, a batch of rows at a time."""
    rename = {theirs: ours for ours, theirs in wanted.items()}
    stream = _parquet(path, list(rename)) if kind == "parquet" else _csv(path, list(rename), tally)
    for batch in stream:
        frame = pl.from_arrow(batch)
        if isinstance(frame, pl.DataFrame) and frame.height:
            yield frame.rename(rename)


def _header(path: Path, kind: str) -> list[str]:
    if kind == "parquet":
        try:
            return list(pyarrow.parquet.read_schema(path).names)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{path}: {error}") from error
    _, first = next(read_rows(path), (1, []))
    if not first:
        raise ValueError(f"{path}: no header line")
    return first


def find_columns(path: Path, kind: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Which column of a table is which, by our names."""
    return _find_columns(path, _header(path, kind), columns)


def _find_columns(path: Path, header: list[str], columns: Mapping[str, str]) -> dict[str, str]:
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


def _parquet(path: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        # Without pre_buffer=False the whole file would be read ahead, and held.
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=_ROWS, columns=columns)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: {error}") from error


def _csv(path: Path, columns: list[str], tally: Tally) -> Iterator[pa.Table]:
    def skip(row: pyarrow.csv.InvalidRow) -> str:
        tally.bad_rows["too many or too few cells"] += 1
        return "skip"

    # Text first: a value that is not a number is then one bad row instead of the end of the reading.
    as_text = pyarrow.csv.ConvertOptions(
        include_columns=columns,
        column_types=dict.fromkeys(columns, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
    )
    try:
        for block in _blocks(path):
            # Block by block, because pyarrow's own streaming reader leaves a thread behind when it is given up.
            yield pyarrow.csv.read_csv(
                pa.BufferReader(block),
                read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=pyarrow.csv.ParseOptions(invalid_row_handler=skip),
                convert_options=as_text,
            )
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: broken gzip file: {error}") from error


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines of a file, a block at a time, each under the header line."""
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path) if zipped else path.open("rb") as file:
        header = file.readline().removeprefix(b"\xef\xbb\xbf")
        while block := file.read(_BYTES):
            yield header + block + file.readline()
