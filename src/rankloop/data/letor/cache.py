"""Datasets that were read before, in binary, in a folder of the user's, because reading text is much slower.

One file per dataset: a header that says what lies where and from which sources it came, then the arrays, which are
mapped into memory rather than read. A file that fails its check is ignored.
"""

import hashlib
import json
import mmap
import os
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.data.dataset import Dataset

VARIABLE = "RANKLOOP_CACHE"
VERSION = 1  # to be raised whenever the layout, or what the reader makes of a text, changes
_MAGIC = b"rankloop letor\n\0"
_PREFIX = struct.Struct("<16sQQ")  # magic, length and checksum of the header
_ALIGNMENT = 64
# A file changed this shortly ago may change again and keep both its size and its time, which some systems count in
# steps of two seconds.
_SETTLED = 2.0


def folder() -> Path:
    """Where the cache lies: ``RANKLOOP_CACHE``, or the folder that the system has for such things."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        start = os.environ.get("LOCALAPPDATA", "") or "~/AppData/Local"
    elif sys.platform == "darwin":
        start = "~/Library/Caches"
    else:
        start = os.environ.get("XDG_CACHE_HOME", "") or "~/.cache"
    return Path(start).expanduser().absolute() / "rankloop"


def state(paths: Sequence[Path]) -> list[list[int]]:
    """Size and time of each file: while these stay, so does what was read from them."""
    return [[status.st_size, status.st_mtime_ns] for status in map(os.stat, paths)]


def place(paths: Sequence[Path], options: object) -> Path:
    """The file for what `options` make of `paths`; changed sources overwrite it, so that none pile up."""
    said = json.dumps([VERSION, sys.byteorder, [str(path.resolve()) for path in paths], options])
    return folder() / f"letor-{hashlib.sha256(said.encode()).hexdigest()[:32]}.bin"


def load(path: Path, sources: list[list[int]]) -> Dataset | None:
    """The dataset kept at `path`, or None when there is none, it is damaged, or the sources have changed since."""
    try:
        with path.open("rb") as file:
            kept = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        magic, length, checksum = _PREFIX.unpack(kept[: _PREFIX.size])
        said, body = kept[_PREFIX.size :][:length], kept[_PREFIX.size + length :]
        if magic != _MAGIC or zlib.crc32(said) != checksum:
            return None
        header = json.loads(bytes(said))
        if (
            header["sources"] != sources
            or len(body) != header["size"]
            or zlib.crc32(body) != header["checksum"]
        ):
            return None
        parts = {
            name: np.frombuffer(body[begin : begin + n_bytes], dtype).reshape(shape)
            for name, (dtype, shape, begin, n_bytes) in header["parts"].items()
        }
        return Dataset(
            features=parts["features"],
            relevance=parts["relevance"],
            offsets=parts["offsets"],
            query_ids=_split(parts["query_ids"]),
            name=header["name"],
            max_grade=header["max_grade"],
            comments=_split(parts["comments"]) if "comments" in parts else None,
        )
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None


def save(path: Path, dataset: Dataset, sources: list[list[int]]) -> bool:
    """Store a dataset, entirely or not at all, and return whether it was; a full or read-only disk does not raise."""
    if time.time() - max(changed for _, changed in sources) / 1e9 < _SETTLED:
        return False
    parts: dict[str, NDArray[Any]] = {
        "features": dataset.features,
        "relevance": dataset.relevance,
        "offsets": dataset.offsets,
        "query_ids": _joined(dataset.query_ids),
    }
    if dataset.comments is not None:
        parts["comments"] = _joined(dataset.comments)
    where: dict[str, list[object]] = {}
    pieces: list[memoryview] = []
    size = checksum = 0
    for name, part in parts.items():
        where[name] = [part.dtype.str, part.shape, size, part.nbytes]
        for piece in (part.data.cast("B"), memoryview(bytes(-part.nbytes % _ALIGNMENT))):
            pieces.append(piece)
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
    said = json.dumps(
        {
            "sources": sources,
            "name": dataset.name,
            "max_grade": dataset.max_grade,
            "parts": where,
            "size": size,
            "checksum": checksum,
        }
    ).encode()
    said += b" " * (-(_PREFIX.size + len(said)) % _ALIGNMENT)
    return _written(path, [_PREFIX.pack(_MAGIC, len(said), zlib.crc32(said)), said, *pieces])


def _written(path: Path, pieces: Sequence[bytes | memoryview]) -> bool:
    # Written beside and moved there in one step: a reader sees the old file or the new one, never half of one.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="new-", delete=False) as file:
            try:
                file.writelines(pieces)
                file.close()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError:
        return False
    return True


def _joined(texts: Sequence[str]) -> NDArray[np.uint8]:
    return np.frombuffer(
        "\n".join(texts).encode(), np.uint8
    )  # none of them has a newline: they came from lines


def _split(joined: NDArray[np.uint8]) -> tuple[str, ...]:
    return tuple(joined.tobytes().decode().split("\n"))
