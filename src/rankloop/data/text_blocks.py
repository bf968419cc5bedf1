"""A large text file, plain or gzip, as blocks of whole lines."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

SIZE = (
    1 << 21
)  # small enough for a processor's cache, large enough for Python's part of the work not to matter
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"


def blocks(path: Path, *, size: int = SIZE) -> Iterator[bytes]:
    """Consecutive pieces of the file of about `size` bytes, each ending in a newline, also where the file does not.

    Gzip is recognised by its first two bytes, because names can be wrong.
    """
    rest: list[bytes | memoryview] = []
    n_lines = 0
    first = True
    with path.open("rb") as file:
        pieces = _unzipped(file, size) if file.peek(2)[:2] == _GZIP else iter(lambda: file.read(size), b"")
        try:
            for piece in pieces:
                if first:
                    piece = piece.removeprefix(_BYTE_ORDER_MARK)
                    first = False
                cut = piece.rfind(b"\n") + 1
                if cut:
                    block = b"".join((*rest, memoryview(piece)[:cut]))
                    n_lines += block.count(b"\n")
                    yield block
                    rest.clear()
                rest.append(memoryview(piece)[cut:])
        except (EOFError, zlib.error) as error:
            raise ValueError(f"{path}: broken gzip file, after line {n_lines}: {error}") from error
    last = b"".join(rest)
    if last:
        yield last + b"\n"


def _unzipped(file: IO[bytes], size: int) -> Iterator[bytes]:
    # The standard library's reader takes the file in steps of 8 KB, and the interpreter's lock with each.
    unpack = zlib.decompressobj(wbits=31)
    while packed := file.read(size):
        while True:
            if unpack.eof:  # a file may have several members, and zeros to fill up the last block of a tape
                packed = packed.lstrip(b"\0")
                if not packed:
                    break
                unpack = zlib.decompressobj(wbits=31)
            piece = unpack.decompress(packed, size)
            packed = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            if piece:
                yield piece
            elif not packed:
                break
    if not unpack.eof:
        raise EOFError("it ends before its end marker")
