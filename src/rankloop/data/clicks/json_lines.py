"""JSON lines, a block at a time: parsed at once where every line has the types of the first, else line by line.

pyarrow refuses a block in which a type changes, so that what it accepts is what Python would have read; what it refuses
is read by Python, which counts bad lines by their reason and names the line of a mistake.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.json

from rankloop.data.text_files import broken_file_named, malformed, open_watched

_BYTES = 1 << 24  # in a block


def line_blocks(path: Path, watch: Callable[[float], None] = lambda _: None) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, a block at a time, each with the number of its first line; `watch` is told the share."""
    line, size = 1, max(path.stat().st_size, 1)
    with broken_file_named(path, lambda: line - 1):
        file, read = open_watched(path)
        with file:
            while block := file.read(_BYTES):
                block += file.readline()
                if line == 1:
                    block = block.removeprefix(b"\xef\xbb\xbf")
                yield line, block
                line += block.count(b"\n")
                watch(min(read() / size, 1.0))


def lines(path: Path, number: int, block: bytes) -> Iterator[tuple[int, str]]:
    """The lines of a block that are not empty, with their numbers."""
    last = number - 1
    with broken_file_named(path, lambda: last):
        for line in io.TextIOWrapper(io.BytesIO(block), encoding="utf-8", newline=""):
            last += 1
            if line.strip():
                yield last, line


def parse(path: Path, number: int, line: str) -> dict[str, Any]:
    """The object of a line."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}, line {number}, column {error.pos + 1}: not JSON: {error.msg}: {line.strip()[:80]!r}"
        ) from error
    if not isinstance(fields, dict):
        malformed(path, number, f"not a JSON object: {line.strip()[:80]!r}")
    return fields


def parse_block(block: bytes, types: Mapping[str, pa.DataType]) -> pl.DataFrame | None:
    """These fields of every line; None unless each line is an object whose fields have these types or are missing."""
    options = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="ignore"
    )
    reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    try:
        block.decode("utf-8")
        table = pyarrow.json.read_json(pa.BufferReader(block), read_options=reading, parse_options=options)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != block.count(b"\n") and table.num_rows != sum(
        bool(line.strip()) for line in block.split(b"\n")
    ):
        return None  # several objects on a line, or one on several
    frame = pl.from_arrow(table.select(list(types)))
    return frame if isinstance(frame, pl.DataFrame) else None


def type_of(value: Any) -> pa.DataType:
    """The type of an id, of a list of them, or of a number or truth value; null for anything else."""
    if isinstance(value, list):
        inside = {type(one) for one in value}
        return pa.list_(pa.int64() if inside == {int} else pa.string())
    known = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}
    return known.get(type(value), pa.null())
