"""Rows of a CSV file, plain or packed, with their line numbers, so that an error can name the line."""

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def packing(path: Path) -> str | None:
    """``"gzip"``, ``"zstd"``, or None for a plain file, by its first bytes; names can be wrong."""
    with path.open("rb") as file:
        first = file.read(4)
    return "gzip" if first.startswith(_GZIP) else "zstd" if first.startswith(_ZSTD) else None


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, plain, gzip or zstd."""
    return open_watched(path)[0]


def open_watched(path: Path) -> tuple[IO[bytes], Callable[[], int]]:
    """Open a file for reading, and a function that says how many bytes of it, as it lies on disk, were read so far."""
    packed_by = packing(path)
    if packed_by == "gzip":
        packed = path.open("rb")
        return _Closing(gzip.GzipFile(fileobj=packed), packed.close), packed.tell
    if packed_by == "zstd":
        import pyarrow as pa

        source = pa.OSFile(str(path))
        return _Closing(pa.CompressedInputStream(source, "zstd"), source.close), source.tell
    plain = path.open("rb")
    return plain, plain.tell


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


def read_rows(path: Path, *, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Each row's line number (from 1) and cells; an empty line is a row without cells."""
    line = 0
    try:
        with broken_file_named(path, lambda: line), open_text(path) as text:
            reader = csv.reader(text, strict=True, delimiter=separator)
            for cells in reader:
                line = reader.line_num
                yield line, cells
    except csv.Error as error:
        raise ValueError(f"{path}, line {line + 1}: {error}") from error
