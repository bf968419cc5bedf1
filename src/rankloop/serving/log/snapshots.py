"""Snapshots: a fold as bytes, with hashes of its configuration and state, and the fingerprint of what computed it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

import msgspec
import numpy as np

from rankloop.serving import registry
from rankloop.serving.log import records
from rankloop.serving.log.decision_state import RelatedRows
from rankloop.serving.log.digests import BadRow, check_row, check_seal, digest_of
from rankloop.serving.log.fold import Fold, Saved, fold_through, pages, related_rows
from rankloop.serving.log.records import Config, Entry, Row
from rankloop.serving.stores.contract import Snapshot, Store, StoreError

_log = logging.getLogger("rankloop.serving")


def take(fold: Fold, *, epoch: int) -> Snapshot:
    """The fold as it is now."""
    return Snapshot(
        seq=fold.applied,
        at=fold.at,
        epoch=epoch,
        code_hash=registry.fingerprint(fold.config),
        config_hash=registry.config_hash(fold.config),
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
    if (fold.applied, registry.config_hash(fold.config)) != (snapshot.seq, snapshot.config_hash):
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


# Where a fold begins: at the first row, at the row of an upgrade, or at the newest snapshot that can be trusted.


def upgrade_id(config: Config, times: int) -> str:
    """The event ID of a row that brings a ranker to the version and arithmetic of this code, as often before."""
    return f"{registry.version_of(config.algorithm)}-{registry.probe_of(config)}-{times}"


async def upgrades(store: Store, name: str, config: Config) -> list[Row]:
    """The rows that brought a ranker to the version and arithmetic of this code, in order."""
    found: list[Row] = []
    while (row := await store.find(name, "upgrade", upgrade_id(config, len(found)))) is not None:
        found.append(row)
    return found


async def config_row(store: Store, name: str) -> tuple[Row, Config]:
    """The first row of a log, and the configuration in it."""
    rows = await store.read(name, after=0, limit=1)
    if not rows or rows[0].seq != 1:
        raise BadRow(1, "is missing")
    check_row(rows[0])
    config = records.read_body(rows[0])
    if not isinstance(config, Config):
        raise ValueError(f"the log of {name!r} must begin with its configuration, got {rows[0].kind}")
    return rows[0], config


async def config_fold(store: Store, name: str) -> Fold:
    """The fold of the first row alone, whatever version of the algorithm the log is of."""
    row, config = await config_row(store, name)
    try:
        fold = Fold(config)
    except ValueError as error:
        raise ValueError(f"ranker {name!r} cannot be loaded: {error}") from None
    fold.fold(row, RelatedRows())
    return fold


async def first_fold(store: Store, name: str) -> Fold:
    """The first state that this code can go on from: of the first row, or of the row that upgraded to this version."""
    fold = await config_fold(store, name)
    found = await upgrades(store, name, fold.config)
    if found:
        row = found[-1]
        check_row(row)
        fold.applied, fold.link = row.seq - 1, row.before
        fold.fold(row, RelatedRows())
        return fold
    registry.check_same(fold.config)
    return fold


async def newest_fold(
    store: Store,
    name: str,
    check: Callable[[Config], object] = lambda config: None,
    *,
    through: int = 1 << 60,
) -> tuple[Fold, int]:
    """The newest sound snapshot that this code and machine may use, and its number; otherwise the first state, and 0.

    check: is given the configuration before anything is built, and may refuse it.
    through: the last row that a snapshot may include.
    """
    config = (await config_row(store, name))[1]
    check(config)
    await asyncio.to_thread(registry.fingerprint, config)  # which may have to compile, and is remembered
    first = await first_fold(store, name)
    for listed in await _all_snapshots(store, name):
        if first.applied <= listed.seq <= through and registry.readable(listed.code_hash, first.config):
            fold = await _revived(store, name, listed.seq)
            if fold is not None and registry.fingerprint(fold.config) == listed.code_hash:
                return fold, listed.seq
    return first, 0


async def _all_snapshots(store: Store, name: str) -> list[Snapshot]:
    """The snapshots in the store, and those between segments; newest first."""
    found = {one.seq: one for one in await store.snapshots(name)}
    closed = await store.history(name)
    for segment in reversed(closed.segments if closed is not None else []):
        if segment.last not in found:
            with contextlib.suppress(StoreError):
                one = await store.read_snapshot(name, segment.last)
                if one is not None:
                    found[one.seq] = one
                break  # an older one is of no use where this one is good
    return sorted(found.values(), key=lambda one: -one.seq)


async def old_fold(store: Store, name: str) -> Fold | None:
    """The newest sound snapshot that can be loaded, whatever code wrote it: to rank from, and not to learn."""
    for listed in reversed(await store.snapshots(name)):
        fold = await _revived(store, name, listed.seq)
        if fold is not None:
            return fold
    return None


async def _revived(store: Store, name: str, seq: int) -> Fold | None:
    try:
        snapshot = await read_sound(store, name, seq)
        return None if snapshot is None else revive(snapshot)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        _log.warning("ranker %r: %s; it is left out", name, error)
        return None


def warm_up(config: Config) -> None:
    """Have the ranker's code compiled, or found on disk, before a request waits for a list."""
    fold = Fold(config)
    ranker = fold.ranker
    rng = np.random.default_rng(1)
    rows = None if fold.has_items else rng.random((2, ranker.n_features or 1)).astype(np.float32)
    context = ranker.as_request(rows, 1, range(2))
    ranking = ranker.rank(context, rng=rng)
    ranker.learn(ranking, np.zeros(ranker.feedback.length(len(ranking.items))))
    if fold.has_items:
        ranker.current()


# From here on another version: a row of the log that carries the state which this code goes on from.


async def upgrade(store: Store, ranker: str, *, refold: bool = False, at: int | None = None) -> str:
    """Write the row, where it is needed; what was done, as a sentence.

    The state is that of the newest snapshot, and the rows after it are folded by this code.
    """
    try:
        fold, _ = await newest_fold(store, ranker)
        await fold_through(fold, store, ranker, await store.last_seq(ranker))
        return f"{ranker}: up to date"
    except registry.OtherVersion as error:
        why = str(error)
    old = await config_fold(store, ranker) if refold else await old_fold(store, ranker)
    if old is None:
        raise ValueError(
            f"ranker {ranker!r} has no snapshot that this code can go on from ({why}): --refold folds its whole log "
            "with this version, which may come to another state"
        )
    begin = old.applied
    old.config = registry.stamped(old.config)
    await _fold_rest(store, ranker, old)
    made = old.config
    body = records.encode(records.Upgrade(made.version, made.probe, msgspec.msgpack.encode(old.save())))
    event_id = upgrade_id(made, len(await upgrades(store, ranker, made)))
    entry = Entry(ranker, "upgrade", event_id, body, digest_of(body))
    (done,) = await store.append([entry], at=int(time.time() * 1000) if at is None else at)
    return (
        f"{ranker}: from row {done.row.seq} on version {made.version}, arithmetic {made.probe}; the state is that "
        f"of row {begin}, and the rows after it"
    )


async def _fold_rest(store: Store, ranker: str, fold: Fold) -> None:
    async for page in pages(store, ranker, after=fold.applied):
        for row in page:
            check_row(row)
        related = await related_rows(fold, store, ranker, page)
        for row in page:
            if row.kind == "upgrade":  # of another version: what it says is not for this one
                fold.applied, fold.link, fold.at = row.seq, row.link, row.at
                continue
            if row.kind == "reset":
                row = msgspec.structs.replace(
                    row, body=records.encode(registry.stamped(records.read_body(row)))
                )
            fold.fold(row, related)
