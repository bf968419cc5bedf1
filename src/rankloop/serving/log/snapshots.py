"""Snapshots: a fold as bytes, with hashes of its configuration, of its state, and of the code that made it."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Iterable
from pathlib import Path

import msgspec

from rankloop.base import Ranker
from rankloop.serving.adapters.registry import config_hash, find
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.saved_state import Saved
from rankloop.serving.stores.contract import Snapshot

_PACKAGE = Path(__file__).parents[2]
# All that decides what a fold comes to. A snapshot of other code is not used: the log is folded anew.
_DECIDES = (
    "arguments.py",
    "base.py",
    "calls.py",
    "compiled.py",
    "constructor.py",
    "ranking.py",
    "servable.py",
    "state_file.py",
    "feedback/**/*.py",
    "kernels/**/*.py",
    "measures/**/*.py",
    "rankers/**/*.py",
    "surrogates/**/*.py",
    "serving/adapters/*.py",
    "serving/log/*.py",
    "serving/series.py",
)


def code_hash(algorithm: str) -> str:
    """Changes when the code that folds, ranks or learns changes.

    Parameters
    ----------
    algorithm : str
        Name of the ranker. Where it is not of this package, the source files of its class and of the classes
        that it is made from count as well.

    Returns
    -------
    str
        A SHA-256 in hexadecimal.
    """
    return hashlib.sha256(_package_hash() + _own_hash(find(algorithm))).hexdigest()


# Both are read once: a file that changes under a running process is not the code that runs.
@functools.cache
def _package_hash() -> bytes:
    return _hash_of(path for pattern in _DECIDES for path in sorted(_PACKAGE.glob(pattern)))


@functools.cache
def _own_hash(kind: type[Ranker]) -> bytes:
    return _hash_of(own_sources(kind))


def _hash_of(paths: Iterable[Path]) -> bytes:
    digest = hashlib.sha256()
    for path in paths:
        if "__pycache__" not in path.parts:  # compiled loops are written there as they are needed
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


def own_sources(kind: type[Ranker]) -> list[Path]:
    """The files outside this package that a ranker is written in; none for a packaged one."""
    found: dict[Path, None] = {}
    for one in kind.__mro__:
        if one.__module__.partition(".")[0] in ("rankloop", "builtins", "abc", "typing"):
            continue
        try:
            file = inspect.getsourcefile(one)
        except TypeError:  # made where there is no file, such as a console
            continue
        if file is not None and Path(file).is_file():
            found[Path(file)] = None
    return list(found)


def take(fold: Fold, *, epoch: int) -> Snapshot:
    """The fold as it is now."""
    return Snapshot(
        seq=fold.applied,
        at=fold.at,
        epoch=epoch,
        code_hash=code_hash(fold.config.algorithm),
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
