"""Rows of a CSV file, plain or packed, with their line numbers, so that an error can name the line."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def is_compressed(first: bytes) -> bool:
    """Whether these are the first bytes of a gzip or zstd file; names can be wrong."""
    return first.startswith((_GZIP, _ZSTD))


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, plain, gzip or zstd."""
    with path.open("rb") as file:
        first = file.read(4)
    if first.startswith(_GZIP):
        return io.BufferedReader(gzip.open(path, "rb"))
    if first.startswith(_ZSTD):
        import pyarrow as pa

        unpacked: IO[bytes] = io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
        return unpacked
    return path.open("rb")


def open_text(path: Path) -> IO[str]:
    """Open a text file for reading, plain, gzip or zstd."""
    # utf-8-sig: spreadsheets put a byte order mark in front, which would stick to the first cell.
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def malformed(path: Path, line: int, what: str) -> NoReturn:
    """Refuse a line of a file."""
    raise ValueError(f"{path}, line {line}: {what}")


def read_rows(path: Path, *, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Each row's line number (from 1) and cells; an empty line is a row without cells."""
    line = 0
    try:
        with open_text(path) as text:
            reader = csv.reader(text, strict=True, delimiter=separator)
            for cells in reader:
                line = reader.line_num
                yield line, cells
    except csv.Error as error:
        raise ValueError(f"{path}, line {line + 1}: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text, after line {line}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: broken gzip file, after line {line}: {error}") from error
