"""Tables read a batch of rows at a time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rankloop.data.clicks.columns import find_separator
from rankloop.data.clicks.tally import Tally
from rankloop.data.text_files import open_bytes

_ROWS = 1 << 18  # of Parquet in a batch
_BYTES = 1 << 24  # of CSV in a batch


def batches(
    path: Path, kind: str, wanted: Mapping[str, str], tally: Tally, names: Sequence[str] = ()
) -> Iterator[pl.DataFrame]:
    """The wanted columns under our names, a batch of rows at a time."""
    rename = {theirs: ours for ours, theirs in wanted.items()}
    theirs = list(rename)
    for batch in (
        parquet_batches(path, theirs, _ROWS) if kind == "parquet" else _csv(path, theirs, tally, names)
    ):
        frame = pl.from_arrow(batch)
        if isinstance(frame, pl.DataFrame) and frame.height:
            yield frame.rename(rename)


def parquet_batches(path: Path, columns: list[str], size: int) -> Iterator[pa.RecordBatch]:
    """The columns of a Parquet file, at most `size` rows at a time."""
    try:
        # Without pre_buffer=False the whole file would be read ahead, and held.
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=size, columns=columns, use_threads=False)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: {error}") from error


def _csv(path: Path, columns: list[str], tally: Tally, names: Sequence[str]) -> Iterator[pa.Table]:
    def skip(row: pyarrow.csv.InvalidRow) -> str:
        tally.bad_rows["too many or too few cells"] += 1
        return "skip"

    separator = find_separator(path)
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
