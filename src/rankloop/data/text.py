"""Text files, plain or packed: rows of CSV and JSON lines with their numbers, and large files as blocks of lines."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

from rankloop.extras import require

BLOCK = 1 << 24  # bytes of lines that are read at once
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def packing(path: Path) -> str | None:
    """``"gzip"``, ``"zstd"``, or None for a plain file, by its first bytes; names can be wrong."""
    with path.open("rb") as file:
        first = file.read(4)
    return "gzip" if first.startswith(_GZIP) else "zstd" if first.startswith(_ZSTD) else None


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, plain, gzip or zstd."""
    packed_by = packing(path)
    if packed_by == "gzip":
        return gzip.open(path)  # type: ignore[return-value]
    if packed_by == "zstd":
        require("pyarrow", extra="arrow", for_=f"reading {path}, which is packed by zstd,")
        import pyarrow as pa

        source = pa.OSFile(str(path))
        return _Closing(pa.CompressedInputStream(source, "zstd"), source.close)
    return path.open("rb")


class _Closing(io.BufferedReader):
    """Closes what it unpacks, too."""

    def __init__(self, unpacked: Any, close_packed: Callable[[], None]) -> None:
        super().__init__(unpacked)
        self._close_packed = close_packed

    def close(self) -> None:
        super().close()
        self._close_packed()


@contextmanager
def broken_file_named(path: Path, line: Callable[[], int]) -> Iterator[None]:
    """Errors of text that is not UTF-8 and of packed files that are cut or broken name the file and the line."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(not_utf8(path) or f"{path}: not UTF-8 text: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: broken gzip file, after line {line()}: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise  # of the system, such as a missing file: says it itself
        raise ValueError(f"{path}: broken packed file, after line {line()}: {error}") from error


def not_utf8(path: Path) -> str:
    """A sentence that names the first byte of a file that is not UTF-8 text; empty if all of it is."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return f"{path}, line {number}, column {error.start + 1}: not UTF-8 text: byte 0x{byte:02x}"
    return ""


def open_text(path: Path) -> IO[str]:
    """Open a text file for reading, plain, gzip or zstd."""
    # utf-8-sig: spreadsheets put a byte order mark in front, which would stick to the first cell.
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def malformed(path: Path, line: int, what: str) -> NoReturn:
    """Refuse a line of a file."""
    raise ValueError(f"{path}, line {line}: {what}")


def read_rows(path: Path, *, separator: str = ",", strict: bool = True) -> Iterator[tuple[int, list[str]]]:
    """Each row's line number (from 1) and cells; an empty line is a row without cells."""
    line = 0
    try:
        with broken_file_named(path, lambda: line), open_text(path) as text:
            reader = csv.reader(text, strict=strict, delimiter=separator)
            for cells in reader:
                line = reader.line_num
                yield line, cells
    except csv.Error as error:
        raise ValueError(f"{path}, line {line + 1}: {error}") from error


def line_blocks(path: Path, *, size: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, a block at a time, each with the number of its first line."""
    line = 1
    with broken_file_named(path, lambda: line - 1), open_bytes(path) as file:
        while block := file.read(size or BLOCK):
            block += file.readline()
            if line == 1:
                block = block.removeprefix(_BYTE_ORDER_MARK)
            yield line, block
            line += block.count(b"\n")


def lines_of(path: Path, number: int, block: bytes) -> Iterator[tuple[int, str]]:
    """The lines of a block that are not empty, with their numbers."""
    last = number - 1
    with broken_file_named(path, lambda: last):
        for line in io.TextIOWrapper(io.BytesIO(block), encoding="utf-8", newline=""):
            last += 1
            if line.strip():
                yield last, line


def json_object(path: Path, number: int, line: str) -> dict[str, Any]:
    """The object of a line of JSON."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}, line {number}, column {error.pos + 1}: not JSON: {error.msg}: {line.strip()[:80]!r}"
        ) from error
    if not isinstance(fields, dict):
        malformed(path, number, f"not a JSON object: {line.strip()[:80]!r}")
    return fields
