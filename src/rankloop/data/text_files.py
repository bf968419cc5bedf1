"""Rows of a CSV file, plain or gzip, with their line numbers, so that an error can name the line."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn


def open_text(path: Path) -> IO[str]:
    """Open a text file for reading; gzip is recognised by its first two bytes, because names can be wrong."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    # utf-8-sig: spreadsheets put a byte order mark in front, which would stick to the first cell.
    if zipped:
        return io.TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def malformed(path: Path, line: int, what: str) -> NoReturn:
    """Refuse a line of a file."""
    raise ValueError(f"{path}, line {line}: {what}")


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row's line number (from 1) and cells; an empty line is a row without cells."""
    line = 0
    try:
        with open_text(path) as text:
            reader = csv.reader(text, strict=True)
            for cells in reader:
                line = reader.line_num
                yield line, cells
    except csv.Error as error:
        raise ValueError(f"{path}, line {line + 1}: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text, after line {line}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: broken gzip file, after line {line}: {error}") from error
