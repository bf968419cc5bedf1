"""From here on another version: a row of the log that carries the state which this code goes on from."""

from __future__ import annotations

import asyncio
import time

import msgspec

from rankloop.serving.admission import digest_of
from rankloop.serving.log import records
from rankloop.serving.log.digests import check_row
from rankloop.serving.log.fingerprint import OtherVersion, stamped
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.records import Entry
from rankloop.serving.log.snapshots import config_fold, old_fold, upgrade_id, upgrades
from rankloop.serving.served_ranker import ServedRanker, related_rows
from rankloop.serving.stores.contract import Store

_PAGE = 1_000


async def upgrade(store: Store, ranker: str, *, refold: bool = False, at: int | None = None) -> str:
    """Write the row, where it is needed; what was done, as a sentence.

    The state is that of the newest snapshot, and the rows after it are folded by this code.
    """
    try:
        why = (await ServedRanker.load(ranker, store)).read_only
        if why is None:
            return f"{ranker}: up to date"
    except OtherVersion as error:
        why = str(error)
    fold = await config_fold(store, ranker) if refold else await old_fold(store, ranker)
    if fold is None:
        raise ValueError(
            f"ranker {ranker!r} has no snapshot that this code can go on from ({why}): --refold folds its whole log "
            "with this version, which may come to another state"
        )
    begin = fold.applied
    fold.config = stamped(fold.config)
    await _fold_rest(store, ranker, fold)
    made = fold.config
    body = records.encode(records.Upgrade(made.version, made.probe, msgspec.msgpack.encode(fold.save())))
    event_id = upgrade_id(made, len(await upgrades(store, ranker, made)))
    entry = Entry(ranker, "upgrade", event_id, body, digest_of(body))
    (done,) = await store.append([entry], at=int(time.time() * 1000) if at is None else at)
    return (
        f"{ranker}: from row {done.row.seq} on version {made.version}, arithmetic {made.probe}; the state is that "
        f"of row {begin}, and the rows after it"
    )


async def _fold_rest(store: Store, ranker: str, fold: Fold) -> None:
    while page := await store.read(ranker, after=fold.applied, limit=_PAGE):
        for row in page:
            check_row(row)
        related = await related_rows(fold, store, ranker, page)
        for row in page:
            if row.kind == "upgrade":  # of another version: what it says is not for this one
                fold.applied, fold.link, fold.at = row.seq, row.link, row.at
                continue
            if row.kind == "reset":
                row = msgspec.structs.replace(row, body=records.encode(stamped(records.read_body(row))))
            fold.fold(row, related)


async def unsigned(served: ServedRanker) -> list[Entry]:
    """What is to be written to a log from before there were probes: what it has been folded with so far."""
    config = served.fold.config
    if config.probe or served.read_only:
        return []
    made = await asyncio.to_thread(stamped, config)
    body = records.encode(records.Upgrade(made.version, made.probe))
    return [Entry(served.name, "upgrade", f"sign-{made.probe}", body, digest_of(body))]
