"""What a store gives back: rows that are there, snapshots, the end of a log, API keys."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from rankloop.serving.log.records import Row


class Appended(NamedTuple):
    """The row that is in the log under the entry's id, and whether this call put it there.

    Parameters
    ----------
    row : Row
        The row.
    new : bool
        Whether this call wrote it.
    """

    row: Row
    new: bool


class Snapshot(msgspec.Struct, frozen=True):
    """The fold of the log up to and with `seq`, and the hashes that tell whether it can be trusted.

    Parameters
    ----------
    seq : int
        The row of the log that it includes last.
    at : int
        When it was taken, in milliseconds.
    epoch : int
        The epoch of the lease that it was taken under.
    code_hash : str
        The hash of the code that computed it.
    config_hash : str
        The hash of the ranker's configuration.
    state_hash : str
        The hash of the state.
    state : bytes, optional
        The state itself; empty in lists of snapshots.
    link : bytes, optional
        The link of row `seq`.
    seal : bytes, optional
        The digest of all this, made by the store when it is written.
    """

    seq: int
    at: int
    epoch: int
    code_hash: str
    config_hash: str
    state_hash: str
    state: bytes = b""
    link: bytes = b""
    seal: bytes = b""


class Head(NamedTuple):
    """The end of a log.

    Parameters
    ----------
    seq : int
        The number of the newest row, 0 where there is none.
    link : bytes
        Its link.
    """

    seq: int
    link: bytes


class StoredKey(msgspec.Struct, frozen=True):
    """An API key as it is kept: never the secret itself.

    Parameters
    ----------
    key_id : str
        The public part of the key.
    role : str
        What the key allows.
    digest : bytes
        The hash of the secret.
    at : int
        When it was made, in milliseconds.
    note : str, optional
        What it is for.
    """

    key_id: str
    role: str
    digest: bytes
    at: int
    note: str = ""
