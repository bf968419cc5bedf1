"""The manifest of a ranker's segments: which rows are in which file, chained by digests as the rows are.

It is kept twice: in the store, where it says which rows the live log may lack, and as a file beside the segments, so
that the folder explains itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from rankloop.extras import write_whole
from rankloop.serving.log.digests import own_name
from rankloop.serving.stores.errors import Damaged

FILE = "manifest.json"


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a ranker's log in a file of its own."""

    ranker: str
    first: int
    last: int
    rows: int
    first_at: int
    last_at: int
    before: str
    link: str
    file: str
    digest: str
    snapshot: str
    snapshot_digest: str
    state_hash: str
    chain: str = ""


def chained(segment: Segment, before: Segment | None) -> Segment:
    """The segment with its chain, after the one before it."""
    plain = msgspec.structs.replace(segment, chain="" if before is None else before.chain)
    return msgspec.structs.replace(segment, chain=hashlib.sha256(msgspec.json.encode(plain)).hexdigest())


def faults(segments: list[Segment], *, ranker: str, beginning: bytes) -> list[str]:
    """What is wrong with a manifest, a sentence each: numbers, links and chain."""
    found: list[str] = []
    before: Segment | None = None
    for one in segments:
        first, link = (1, beginning.hex()) if before is None else (before.last + 1, before.link)
        if one.ranker != ranker:
            found.append(f"segment {one.file} is of the ranker {one.ranker!r}")
        if (one.first, one.before) != (first, link) or one.rows != one.last - one.first + 1:
            found.append(f"segment {one.file} does not begin where the one before it ends, with row {first}")
        if chained(one, before) != one:
            found.append(f"the entry of segment {one.file} is not what was written: its digest differs")
        before = one
    return found


def folder_name(ranker: str, link: bytes) -> str:
    """The name of the folder of a ranker's segments: the same wherever its log is, and another one for each log.

    Examples
    --------
    >>> folder_name("unwind~20261115T224000.123", bytes(16))
    'unwind-00000000'
    """
    return f"{own_name(ranker)}-{link.hex()[:8]}"


def write_manifest(folder: Path, segments: list[Segment]) -> None:
    """Write the manifest beside the segments; it is on the disk when this returns."""
    told = msgspec.json.format(msgspec.json.encode(segments), indent=1)
    write_durable(folder / FILE, lambda part: part.write_bytes(told))


def read_manifest(folder: Path) -> list[Segment]:
    """The manifest beside the segments."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=list[Segment])
    except OSError as error:
        raise Damaged(f"the manifest {folder / FILE} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"the manifest {folder / FILE} is damaged: {error}") from None


def write_durable(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole, and wait until it and its name are on the disk."""

    def fill(part: Path) -> None:
        write(part)
        sync(part)

    write_whole(path, fill)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
