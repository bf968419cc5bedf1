"""Tables read a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rankloop.data.clicks.columns import find_separator
from rankloop.data.clicks.tally import Tally
from rankloop.data.text_files import broken_file_named, not_utf8, open_bytes

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
    except (pa.ArrowException, OSError) as error:
        raise ValueError(broken_parquet(path, columns, error)) from error


def broken_parquet(path: Path, columns: list[str], error: Exception) -> str:
    """A sentence that names the file and, if the others can be read, the rows and the column that cannot."""
    start = 0
    try:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                for column in columns:
                    try:
                        file.read_row_group(group, columns=[column], use_threads=False)
                    except (pa.ArrowException, OSError) as inside:
                        place = f"rows {start + 1:,} to {start + rows:,}, column {column!r}"
                        return f"{path}, {place}: broken Parquet file: {inside}"
                start += rows
    except (pa.ArrowException, OSError):
        pass  # the file as a whole
    return f"{path}: broken Parquet file: {error}"


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
    line = 1
    with broken_file_named(path, lambda: line):
        for line, block in _blocks(path, separator.join(names)):
            # Block by block, because pyarrow's own streaming reader leaves a thread behind when it is given up.
            try:
                yield pyarrow.csv.read_csv(
                    pa.BufferReader(block),
                    read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=len(block) + 1),
                    parse_options=pyarrow.csv.ParseOptions(delimiter=separator, invalid_row_handler=skip),
                    convert_options=as_text,
                )
            except pa.ArrowInvalid as error:
                raise ValueError(not_utf8(path) or f"{path}, after line {line}: {error}") from error


def _blocks(path: Path, names: str) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, a block at a time, each under the header, with the number of the line before it."""
    line = 0 if names else 1
    with open_bytes(path) as file:
        header = f"{names}\n".encode() if names else file.readline().removeprefix(b"\xef\xbb\xbf")
        while block := file.read(_BYTES):
            block += file.readline()
            yield line, header + block
            line += block.count(b"\n")
