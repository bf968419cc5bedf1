"""Snapshots: a fold as bytes, with hashes of its configuration and state, and the fingerprint of what computed it."""

from __future__ import annotations

import msgspec

from rankloop.serving.adapters.registry import config_hash
from rankloop.serving.log.digests import check_seal
from rankloop.serving.log.fingerprint import fingerprint
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.saved_state import Saved
from rankloop.serving.stores.contract import Snapshot, Store, StoreError


def take(fold: Fold, *, epoch: int) -> Snapshot:
    """The fold as it is now."""
    return Snapshot(
        seq=fold.applied,
        at=fold.at,
        epoch=epoch,
        code_hash=fingerprint(fold.config),
        config_hash=config_hash(fold.config),
        state_hash=fold.state_hash(),
        state=msgspec.msgpack.encode(fold.save()),
        link=fold.link,
    )


def revive(snapshot: Snapshot) -> Fold:
    """The fold in a snapshot; ValueError where it is not what its hashes say."""
    try:
        fold = Fold.restore(msgspec.msgpack.decode(snapshot.state, type=Saved))
    except msgspec.DecodeError as error:
        raise ValueError(f"the snapshot at {snapshot.seq} cannot be read: {error}") from None
    if (fold.applied, config_hash(fold.config)) != (snapshot.seq, snapshot.config_hash):
        raise ValueError(f"the snapshot at {snapshot.seq} holds another configuration than it says")
    if fold.state_hash() != snapshot.state_hash:
        raise ValueError(f"the snapshot at {snapshot.seq} holds another state than its hash says")
    fold.link = snapshot.link
    return fold


async def read_sound(store: Store, ranker: str, seq: int) -> Snapshot | None:
    """The snapshot at `seq`; None where there is none."""
    try:
        snapshot = await store.read_snapshot(ranker, seq)
        if snapshot is None:
            return None
        check_seal(ranker, snapshot)
        there = await store.read(ranker, after=seq - 1, limit=1)
    except StoreError as error:
        raise ValueError(f"the snapshot at {seq} cannot be read: {error}") from None
    if not there or (there[0].seq, there[0].link) != (snapshot.seq, snapshot.link):
        raise ValueError(
            f"the snapshot at {seq} is of another log: row {seq} is another one, or is not there"
        )
    return snapshot
