"""Tables of impressions or of counts, in CSV or Parquet.

Polars groups equal rows in one streaming pass; only what is left, a row for each different one, is checked and read.
A CSV file with rows of different lengths is read again by the block, to count those.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rankloop.data.clicks.tally import Tally
from rankloop.data.text_files import is_compressed, malformed, open_bytes, open_text, read_rows

# Names of the columns in the known formats; the first of each is ours.
COLUMNS = {
    "query": ("query", "query_id", "qid", "q"),
    "item": ("item", "item_id", "document", "document_id", "doc", "doc_id"),
    "position": ("position", "rank", "pos"),
    "click": ("click", "clicked"),
    "shown": ("shown", "impressions", "displays", "views"),
    "clicks": ("clicks",),
    "propensity": ("propensity", "propensity_score", "pscore"),
    "page": ("page", "page_id", "session", "session_id"),
}
_ROWS = 1 << 18  # of Parquet in a batch
_BYTES = 1 << 24  # of CSV in a batch
_MOST_POSITIONS = 100_000  # beyond it, a column was taken for positions that holds something else

PART = 1 << 24  # rows of Parquet that are grouped at once
_KEY = "the cell in one number"
TOO_MANY_CLICKS = "more clicks than times shown"

Checks = list[tuple[str, pl.Expr]]
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
) -> None:
    """Count the rows of a table; `names` are those of a CSV file without a header, `watch` is told the share done."""
    header = list(names) or _header(path, kind)
    found = _find_columns(path, header, columns)
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
    try:
        for part in _streamed(path, kind, wanted, watch, names):
            _count(part, tally, counts=counts, first_position=first_position, clip=clip, path=path)
    except pl.exceptions.ComputeError as error:
        if kind == "parquet":
            raise ValueError(f"{path}: {error}") from error
        tally.become(before)
        for batch in batches(path, kind, wanted, tally, names):
            rows = batch.with_columns(pl.lit(1, pl.Int64).alias("rows"))
            _count(rows, tally, counts=counts, first_position=first_position, clip=clip, path=path)
    except OSError as error:
        raise ValueError(f"{path}: broken file: {error}") from error


def _streamed(
    path: Path, kind: str, wanted: Mapping[str, str], watch: Watch, names: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Different rows of the wanted columns, under our names, and how often each occurs."""
    if kind == "parquet":
        table = pl.scan_parquet(path)
        total = int(pyarrow.parquet.read_metadata(path).num_rows)
        parts = [table.slice(start, PART) for start in range(0, max(total, 1), PART)]
    else:
        # Text: a value that is not a number is then one bad row instead of the end of the reading.
        text = pl.scan_csv(
            path,
            infer_schema=False,
            separator=_separator(path),
            has_header=not names,
            schema=dict.fromkeys(names, pl.String) or None,
        )
        parts = [text]
    for done, part in enumerate(parts, start=1):
        rows = part.select(pl.col(theirs).alias(ours) for ours, theirs in wanted.items())
        times = pl.len().cast(pl.Int64)
        click = rows.collect_schema().get("click", pl.String())
        if click == pl.String:
            grouped = rows.group_by(list(wanted)).agg(times.alias("rows"))
            # All columns are parsed: otherwise a cell too many would go unnoticed.
            flags = pl.QueryOptFlags(projection_pushdown=kind == "parquet")
            yield grouped.collect(engine="streaming", optimizations=flags)
        else:  # numbers: added up at once, which leaves half as many rows
            hit = pl.col("click") if click == pl.Boolean else pl.col("click") == 1
            miss = ~pl.col("click") if click == pl.Boolean else pl.col("click") == 0
            cell = [name for name in wanted if name != "click"]
            limits = _limits(rows, cell)
            if limits:
                rows = rows.select(_packed(limits).alias(_KEY), "click")
            told = rows.group_by([_KEY] if limits else cell).agg(
                times.alias("rows"),
                hit.sum().cast(pl.Int64).alias("hits"),
                miss.sum().cast(pl.Int64).alias("misses"),
            )
            counted = told.collect(engine="streaming")
            yield from _apart(_unpacked(counted, limits) if limits else counted)
        watch(done / len(parts))


def _limits(rows: pl.LazyFrame, cell: list[str]) -> dict[str, tuple[int, int]]:
    """Least and largest value of each column, if one whole number can hold a cell: grouping by one is quicker."""
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


def _packed(limits: dict[str, tuple[int, int]]) -> pl.Expr:
    key = pl.lit(0, pl.Int64)
    for name, (low, high) in limits.items():
        key = key * (high - low + 1) + (pl.col(name).cast(pl.Int64) - low)
    return key


def _unpacked(told: pl.DataFrame, limits: dict[str, tuple[int, int]]) -> pl.DataFrame:
    for name, (low, high) in reversed(limits.items()):
        size = high - low + 1
        told = told.with_columns((pl.col(_KEY) % size + low).alias(name), (pl.col(_KEY) // size).alias(_KEY))
    return told.drop(_KEY)


def _apart(told: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Rows that were clicked or not, and those of which that cannot be said."""
    bad = pl.col("rows") - pl.col("hits") - pl.col("misses")
    yield (
        told.select(pl.all().exclude("rows"), pl.lit(None, pl.Int64).alias("click"), bad.alias("rows"))
        .filter(pl.col("rows") > 0)
        .drop("hits", "misses")
    )
    yield told.with_columns((pl.col("hits") + pl.col("misses")).alias("rows")).filter(pl.col("rows") > 0)


def _count(
    batch: pl.DataFrame, tally: Tally, *, counts: bool, first_position: int | None, clip: bool, path: Path
) -> None:
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
    tally.add(cells, good.select("query", "rows"))


def _ask_where_positions_begin(path: Path, batch: pl.DataFrame) -> None:
    # A few stray zeros among many rows are bad rows; a share of them is a top position.
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


def batches(
    path: Path, kind: str, wanted: Mapping[str, str], tally: Tally, names: Sequence[str] = ()
) -> Iterator[pl.DataFrame]:
    """The wanted columns under our names, a batch of rows at a time."""
    rename = {theirs: ours for ours, theirs in wanted.items()}
    stream = _parquet(path, list(rename)) if kind == "parquet" else _csv(path, list(rename), tally, names)
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
    separator = _separator(path)
    _, first = next(read_rows(path, separator=separator), (1, []))
    if not first:
        raise ValueError(f"{path}: no header line")
    return first


def _separator(path: Path) -> str:
    """What stands between the cells: a comma, a tab or a semicolon, whichever the header has."""
    with open_text(path) as text:
        header = text.readline(1 << 16)
    if header.endswith("\r"):
        raise ValueError(
            f"{path}, line 1: lines end in CR alone, as on very old systems; write them with LF or CR LF"
        )
    return max((",", "\t", ";"), key=header.count)


def refuse_cut(path: Path, header: list[str]) -> None:
    """Refuse a plain file whose last line has no end and too few cells: part of it is missing."""
    with path.open("rb") as file:
        if is_compressed(file.read(4)):
            return  # those are noticed by what unpacks them
        file.seek(0, 2)
        size = file.tell()
        file.seek(max(0, size - (1 << 20)))
        tail = file.read()
    if tail.endswith((b"\n", b"\r")) or b"\n" not in tail:
        return
    last = tail[tail.rindex(b"\n") + 1 :].decode("utf-8", errors="replace")
    cells = next(csv.reader([last], delimiter=_separator(path)), [])
    if len(cells) < len(header):
        with path.open("rb") as file:
            line = 1 + sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 24), b""))
        malformed(
            path,
            line,
            f"the file ends in the middle of a line, {len(cells)} of {len(header)} cells: {last[:80]!r}; copy it again,"
            " or delete that line",
        )


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


def _csv(path: Path, columns: list[str], tally: Tally, names: Sequence[str]) -> Iterator[pa.Table]:
    def skip(row: pyarrow.csv.InvalidRow) -> str:
        tally.bad_rows["too many or too few cells"] += 1
        return "skip"

    separator = _separator(path)
    # Text first: a value that is not a number is then one bad row instead of the end of the reading.
    as_text = pyarrow.csv.ConvertOptions(
        include_columns=columns,
        column_types=dict.fromkeys(columns, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
    )
    try:
        for block in _blocks(path, separator.join(names)):
            # Block by block, because pyarrow's own streaming reader leaves a thread behind when it is given up.
            yield pyarrow.csv.read_csv(
                pa.BufferReader(block),
                read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=pyarrow.csv.ParseOptions(delimiter=separator, invalid_row_handler=skip),
                convert_options=as_text,
            )
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: broken gzip file: {error}") from error


def _blocks(path: Path, names: str) -> Iterator[bytes]:
    """Whole lines of a file, a block at a time, each under the header line."""
    with open_bytes(path) as file:
        header = f"{names}\n".encode() if names else file.readline().removeprefix(b"\xef\xbb\xbf")
        while block := file.read(_BYTES):
            yield header + block + file.readline()
