"""Digests that chain the rows of a log, and seal its snapshots, so that no change after the writing goes unseen.

The content of a row is digested by whoever writes it. The link of a row is a digest of the link before it, its number,
its time and its content, and is computed where the number is given: one row changed, cut out or put in breaks the chain
at a row that can be named. The chain begins with the identity of the store and the name of the ranker.
"""

from __future__ import annotations

import hashlib
import struct
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from rankloop.serving.log.records import NUMBER_OF_KIND, Entry, Row

if TYPE_CHECKING:
    from rankloop.serving.stores.contract import Snapshot

SIZE = 16  # bytes of a digest
_LENGTHS = struct.Struct(">Bqqq")
_PLACE = struct.Struct(">qq")


class BadRow(ValueError):
    """A row of the log is not what was written. `seq`: its number."""

    def __init__(self, seq: int, problem: str) -> None:
        super().__init__(f"row {seq} of the log {problem}")
        self.seq = seq


def digest_of(*parts: str | bytes) -> bytes:
    """Equal for deliveries that say the same thing."""
    told = b""
    for part in parts:
        one = part.encode() if isinstance(part, str) else part
        told += len(one).to_bytes(8, "little") + one
    return hashlib.blake2b(told, digest_size=16).digest()


def own_name(ranker: str) -> str:
    """The name that a ranker was made with.

    >>> own_name("unwind"), own_name("unwind~20261115T224000.123")
    ('unwind', 'unwind')
    """
    return ranker.partition("~")[0]


def archived_name(ranker: str, at: int) -> str:
    """The name under which a ranker is archived at `at` milliseconds: one that no ranker can be given.

    >>> archived_name("unwind", 1_790_000_000_123)
    'unwind~20260921T141320.123'
    """
    when = datetime.fromtimestamp(at // 1000, UTC)
    return f"{ranker}~{when:%Y%m%dT%H%M%S}.{at % 1000:03}"


def beginning(timeline: str, ranker: str) -> bytes:
    """The link before the first row of a ranker. One that was archived keeps the chain of the name it had."""
    return hashlib.sha256(f"{timeline}/{own_name(ranker)}".encode()).digest()[:SIZE]


def content(row: Entry | Row) -> bytes:
    """The digest of what a row says, whatever its number and time."""
    event, decision, digest = row.event_id.encode(), row.decision, row.digest
    about = b"" if decision is None else decision.encode()
    lengths = _LENGTHS.pack(
        NUMBER_OF_KIND[row.kind], len(event), -1 if decision is None else len(about), len(digest)
    )
    return hashlib.blake2b(b"".join((lengths, event, about, digest, row.body)), digest_size=SIZE).digest()


def link(before: bytes, seq: int, at: int, digest: bytes) -> bytes:
    """The link of the row with number `seq`, time `at` and content digest `digest`, after the link `before`."""
    return hashlib.sha256(before + _PLACE.pack(seq, at) + digest).digest()[:SIZE]


def link_of(row: Row, before: bytes) -> bytes:
    """The link that `row` must have where the one before it has the link `before`."""
    return link(before, row.seq, row.at, content(row))


def check_row(row: Row) -> None:
    """`BadRow` where the row, or the link before it, is not what was written."""
    if link_of(row, row.before) != row.link:
        raise BadRow(row.seq, "is not what was written: its digest differs")


def seal(ranker: str, snapshot: Snapshot) -> bytes:
    """The digest of a whole snapshot and of the ranker that it belongs to."""
    digest = hashlib.blake2b(digest_size=SIZE)
    texts = (own_name(ranker), snapshot.code_hash, snapshot.config_hash, snapshot.state_hash)
    numbers = (snapshot.seq, snapshot.at, snapshot.epoch)
    for part in (*(one.encode() for one in (*texts, *map(str, numbers))), snapshot.link, snapshot.state):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def sealed(ranker: str, snapshot: Snapshot) -> Snapshot:
    """The snapshot with its seal."""
    return msgspec.structs.replace(snapshot, seal=seal(ranker, snapshot))


def check_seal(ranker: str, snapshot: Snapshot) -> None:
    """ValueError where the snapshot is not what was written."""
    if seal(ranker, snapshot) != snapshot.seal:
        raise ValueError(f"the snapshot at {snapshot.seq} is not what was written: its digest differs")
