"""Snapshots: a fold as bytes, with hashes of its configuration, of its state, and of the code that made it."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import msgspec

from rankloop.serving.adapters.registry import config_hash
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.saved_state import Saved
from rankloop.serving.stores.contract import Snapshot

_PACKAGE = Path(__file__).parents[2]
# All that decides what a fold comes to. A snapshot of other code is not used: the log is folded anew.
_DECIDES = (
    "base.py",
    "compiled.py",
    "feedback/**/*.py",
    "kernels/**/*.py",
    "measures/**/*.py",
    "rankers/**/*.py",
    "surrogates/**/*.py",
    "serving/adapters/*.py",
    "serving/log/*.py",
    "serving/series.py",
)


@functools.cache
def code_hash() -> str:
    """Changes when the code that folds, ranks or learns changes."""
    digest = hashlib.sha256()
    for pattern in _DECIDES:
        for path in sorted(_PACKAGE.glob(pattern)):
            if "__pycache__" not in path.parts:  # compiled loops are written there as they are needed
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def take(fold: Fold, *, epoch: int) -> Snapshot:
    """The fold as it is now."""
    return Snapshot(
        seq=fold.applied,
        at=fold.at,
        epoch=epoch,
        code_hash=code_hash(),
        config_hash=config_hash(fold.config),
        state_hash=fold.state_hash(),
        state=msgspec.msgpack.encode(fold.save()),
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
    return fold
