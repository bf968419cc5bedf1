"""What goes on beside the requests: holding the lease, snapshots, expiry, and following other replicas."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from typing import TYPE_CHECKING

from rankloop.serving.errors import Unavailable
from rankloop.serving.failpoints import reach
from rankloop.serving.log import records, snapshots
from rankloop.serving.log.decision_state import replay_decision
from rankloop.serving.log.records import Entry
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import Fenced, StoreError

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine

_log = logging.getLogger("rankloop.serving")
_LEASE_SECONDS = 5.0
_TICK_SECONDS = 0.5
_PAGE = 500
_PAGES_A_TICK = 8


class Housekeeping:
    """Runs beside an engine. Only the holder of the lease snapshots and expires; its epoch fences what it writes."""

    def __init__(self, engine: Engine, *, snapshot_every: int, in_background: bool) -> None:
        self.engine = engine
        self.snapshot_every = snapshot_every
        self.holder = secrets.token_hex(8)
        self.epoch: int | None = None
        self._background = in_background
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Take the lease if it is free, and begin."""
        await self.hold_lease()
        if self._background:
            self._tasks.append(asyncio.create_task(self._every_tick()))
            if self.engine.store.shared:
                self._tasks.append(asyncio.create_task(self._follow()))

    async def stop(self) -> None:
        """Stop, and leave a snapshot for a quick start."""
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._background and self.epoch is not None and not self.engine.broken:
            for served in self.engine.rankers.values():
                if served.fold.applied > served.snapshot_seq:
                    with contextlib.suppress(StoreError):
                        await self.snapshot(served)

    async def hold_lease(self) -> None:
        """Take or renew the lease. A store with one owner needs no renewal: the owner is the holder."""
        store = self.engine.store
        if not store.shared and self.epoch is not None:
            return
        seconds = _LEASE_SECONDS if store.shared else 0.0
        self.epoch = await store.take_lease(self.holder, seconds=seconds, now=self.engine.clock())

    async def _every_tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            try:
                await self.tick()
            except (StoreError, Unavailable) as error:
                _log.warning("housekeeping: %s", error)
            except Exception:
                _log.exception("housekeeping failed; it goes on with the next tick")

    async def tick(self) -> None:
        """Everything that is due."""
        if self.engine.broken:
            return
        await self.hold_lease()
        if self.epoch is None:
            return
        reach("lease-held")
        for served in list(self.engine.rankers.values()):
            try:
                await self.expire(served)
                if served.fold.applied - served.snapshot_seq >= self.snapshot_every:
                    await self.snapshot(served)
            except Fenced:
                self.epoch = None
                _log.warning("another process took over; nothing was written")
                return

    async def snapshot(self, served: ServedRanker) -> None:
        """Write one now."""
        if self.epoch is None:
            raise Unavailable("another process holds the lease, and takes the snapshots")
        taken = snapshots.take(served.fold, epoch=self.epoch)
        await self.engine.store.write_snapshot(served.name, taken, keep=self.engine.keep_snapshots)
        served.snapshot_seq = taken.seq

    async def expire(self, served: ServedRanker) -> int:
        """Write `expire` for lists whose deadline has passed without an answer; how many. A long log takes turns."""
        engine, fold, written = self.engine, served.fold, 0
        for _ in range(_PAGES_A_TICK):
            await asyncio.sleep(0)
            served.scanned = max(served.scanned, fold.expire_cursor)
            page = await engine.store.read(served.name, after=served.scanned, limit=_PAGE)
            due, through = [], served.scanned
            for row in page:
                if row.kind == "decision":
                    if records.read_decision(row.body).deadline >= engine.now():
                        break
                    due.append(row)
                through = row.seq
            stories = await engine.store.stories(served.name, [row.event_id for row in due]) if due else {}
            entries = []
            for row in due:
                state = replay_decision(
                    stories[row.event_id],
                    through=1 << 60,
                    policy=fold.config.policy,
                    silence_counts=fold.silence_counts,
                )
                if state is not None and state.answer is None and not state.expired:
                    body = records.encode(records.Expire(row.seq))
                    entries.append(Entry(served.name, "expire", row.event_id, body, b"\0", row.event_id))
            if entries:
                await engine.append(entries, epoch=self.epoch)
                written += len(entries)
            if through == served.scanned:
                break
            # All up to here are answered or expired: a hint for the next start, and no part of what was learnt.
            served.scanned = fold.expire_cursor = through
        return written

    async def _follow(self) -> None:
        while True:
            await self.engine.store.wait_for_news(seconds=1.0)
            try:
                for name in await self.engine.store.rankers():
                    served = await self.engine.find(name)
                    await served.catch_up()
                self.engine.changed.set()
            except Exception:
                _log.exception("following other replicas failed; it is tried again")
                await asyncio.sleep(0.2)
