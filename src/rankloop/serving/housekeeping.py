"""What goes on beside the requests: holding the lease, snapshots, expiry, and following other replicas."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from typing import TYPE_CHECKING

from rankloop.serving.alerts import AlertWatch
from rankloop.serving.deadlines import Deadlines
from rankloop.serving.errors import NotFound, Unavailable
from rankloop.serving.failpoints import reach
from rankloop.serving.log import records, snapshots
from rankloop.serving.log.records import Entry, waiting_time
from rankloop.serving.owners.ownership import LEASE_SECONDS, Ownership
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import Fenced, Missing, StoreError
from rankloop.serving.stores.due import OpenList
from rankloop.serving.trimming import Trimming

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine

_log = logging.getLogger("rankloop.serving")
_TICK_SECONDS = 0.5
_NEWS_SECONDS = 0.1  # between two looks at what others wrote
_PAGE = 500
_PAGES_A_TICK = 8


class Housekeeping:
    """Runs beside an engine. Its epoch fences what it writes.

    One process snapshots and expires a ranker: its owner; where rankers have none, the holder of the store's lease.
    """

    def __init__(self, engine: Engine, *, snapshot_every: int, in_background: bool) -> None:
        self.engine = engine
        self.snapshot_every = snapshot_every
        self.ownership = engine.ownership
        if self.ownership is not None:
            engine.store.owns = self.ownership.owns
        self.holder = secrets.token_hex(8)
        self.epoch: int | None = None
        self.changed: set[str] = set()  # rankers that have new rows since the last tick
        self.alerts = AlertWatch()
        self.trimming: Trimming | None = None
        self._deadlines = Deadlines()
        self._began = False
        self._background = in_background
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Take the lease if it is free, and begin."""
        await self.hold_lease()
        if self._background:
            self._tasks.append(asyncio.create_task(self._every_tick()))
            if self.trimming is not None:
                self.trimming.start()
            if self.engine.store.shared:
                self._tasks.append(asyncio.create_task(self._follow()))

    async def stop(self) -> None:
        """Stop, and leave a snapshot for a quick start."""
        if self.trimming is not None:
            await self.trimming.stop()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._background and self.epoch is not None and not self.engine.broken:
            for served in self.engine.rankers.values():
                changed = served.fold.applied > served.snapshot_seq and self.is_mine(served.name)
                if changed and not served.read_only:
                    with contextlib.suppress(StoreError):
                        await self.snapshot(served)
        if self.ownership is not None:
            with contextlib.suppress(StoreError):
                await self.engine.store.withdraw(self.ownership.replica)

    async def hold_lease(self) -> None:
        """Take or renew the lease. A store with one owner needs no renewal: the owner is the holder."""
        store = self.engine.store
        if not store.shared and self.epoch is not None and self.engine.store_trouble is None:
            return
        if self.ownership is not None:
            await self._announce(self.ownership)
            return
        seconds = LEASE_SECONDS if store.shared else 0.0
        self.epoch = await store.take_lease(self.holder, seconds=seconds, now=self.engine.now() / 1000)

    async def _announce(self, ownership: Ownership) -> None:
        """Say that this process is there, and see who else is."""
        roll = await self.engine.store.announce(
            ownership.replica,
            ownership.address,
            seconds=ownership.seconds,
            now=self.engine.now() / 1000,
        )
        ownership.look()
        self.epoch = roll.epoch
        if ownership.see(roll):
            _log.info("replicas: %s", ", ".join(one.address for one in roll.members))
            self.changed |= set(self.engine.rankers)  # this process may own more of them now

    def is_mine(self, name: str) -> bool:
        """Whether this process looks after a ranker."""
        return self.ownership is None or self.ownership.owns(name)

    async def _every_tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            try:
                await self.tick()
            except (StoreError, Unavailable) as error:
                if self.engine.store_trouble is None:
                    _log.warning("the store cannot be written to: %s", error)
                self.engine.store_trouble = str(error)
            except Exception:
                _log.exception("housekeeping failed; it goes on with the next tick")

    async def tick(self) -> None:
        """Everything that is due. Rankers to which nothing happens cost nothing."""
        self.alerts.tick(self.engine)
        if self.engine.broken:
            return
        await self.engine.store.look()
        before = self.epoch
        await self.hold_lease()  # a write where others share the store, or where the last one failed
        if self.engine.store_trouble is not None:
            _log.warning("the store can be written to again")
            self.engine.store_trouble = None
        await self.engine.degraded.log(self.engine.append)
        if self.epoch is None:
            return
        reach("lease-held")
        if self.epoch != before or not self._began:
            self._began = True
            self._deadlines.clear()
            self.changed |= set(self.engine.rankers)
        try:
            await self._look_after_changed()
            await self._expire_due()
        except Fenced:
            self.epoch = None
            _log.warning("another process took over; nothing was written")

    async def _look_after_changed(self) -> None:
        changed, self.changed = self.changed, set()
        if self.trimming is not None:
            self.trimming.changed |= changed
        for name in changed:
            served = self.engine.rankers.get(name)
            if served is None or served.read_only or not self.is_mine(name):
                continue
            if name not in self._deadlines:
                self._deadlines.put(name, self.engine.now())
            if served.fold.applied - served.snapshot_seq >= self.snapshot_every:
                with contextlib.suppress(Missing):  # archived meanwhile, or half way to another database
                    await self.snapshot(served)

    async def _expire_due(self) -> None:
        for name in self._deadlines.due(self.engine.now()):
            served = self.engine.rankers.get(name)
            if served is None or served.read_only or not self.is_mine(name):
                continue
            try:
                await self.expire(served)
            except NotFound:
                self.changed.add(name)
            except BaseException:
                self.changed.add(name)  # it is tried again with the next tick
                raise

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
            allowed, answers_close = waiting_time(fold.policies.after(fold.expire_cursor))
            # The log's own clock decides, not this machine's.
            now = await engine.store.time(served.name, at=engine.now())
            found = await engine.store.due(
                served.name,
                after=fold.expire_cursor,
                before=now - allowed,
                allowed=allowed if answers_close else -1,
                limit=_PAGE,
            )
            entries = [
                Entry(served.name, "expire", decision, records.encode(records.Expire(seq)), b"\0", decision)
                for seq, decision, _ in await self._unanswered(served, found.open)
            ]
            if entries:
                await engine.append(entries, epoch=self.epoch)
                written += len(entries)
            # All up to here are answered or expired: a hint for the next start, and no part of what was learnt.
            reached = found.through == fold.expire_cursor
            fold.expire_cursor = max(fold.expire_cursor, found.through)
            if found.next_at is not None:
                self._deadlines.put(served.name, engine.now() + found.next_at + allowed + 1 - now)
                return written
            if reached:
                return written
        self._deadlines.put(served.name, engine.now())
        return written

    async def _unanswered(self, served: ServedRanker, lists: list[OpenList]) -> list[OpenList]:
        """Those without an answer: feedback that came before its list, and late feedback that was learnt, are one."""
        left = []
        for one in lists:
            state = await served.decision_state(one.decision) if one.has_feedback else None
            if state is None or (state.answer is None and not state.expired):
                left.append(one)
        return left

    async def take_in_news(self, told: set[str] | None = None) -> None:
        """Fold what other processes wrote: to the rankers that are told of, or to any."""
        roster = self.engine.roster
        if told is not None:
            told &= roster.rankers.keys()
            if not told:
                return
        heads = await self.engine.store.heads(told)
        if told is None:
            for name in {*roster.rankers, *roster.absent}.difference(
                heads
            ):  # another process archived or moved it
                roster.forget(name)
                self.engine.degraded.forget(name)
        for name, head in heads.items():
            known = name in roster.rankers
            await roster.follow(name, head)
            if not known and name in roster.rankers:  # it may have lists whose deadline passes here
                self.changed.add(name)
        self.engine.changed.set()

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while True:
            try:
                told = await self.engine.store.wait_for_news(seconds=1.0)
                if told is None or loop.time() - looked >= 1.0:
                    told, looked = None, loop.time()
                elif self.ownership is not None:  # as a standby it reads in larger pieces, once a second
                    told = {name for name in told if self.ownership.owns(name)}
                await self.take_in_news(told)
                await asyncio.sleep(_NEWS_SECONDS)
            except StoreError:  # the tick says so
                await asyncio.sleep(0.2)
            except Exception:
                _log.exception("following other replicas failed; it is tried again")
                await asyncio.sleep(0.2)
