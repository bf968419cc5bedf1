"""The service without its skin: every call that changes something returns once it is durable and folded."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from rankloop.serving.adapters.registry import config_hash
from rankloop.serving.admission import (
    check_names,
    check_policy,
    check_portable,
    check_size,
    digest_of,
    refuse,
)
from rankloop.serving.errors import Busy, Conflict, NotFound, RequestError, Unavailable
from rankloop.serving.group_commit import GroupCommit, Written
from rankloop.serving.housekeeping import Housekeeping
from rankloop.serving.ids import new_id
from rankloop.serving.limits import Limits
from rankloop.serving.log import records, snapshots
from rankloop.serving.log.decision_state import Outcome
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.randomness import Draws
from rankloop.serving.log.records import Config, Entry, Row
from rankloop.serving.log_clock import LogClock, since_boot
from rankloop.serving.schemas import (
    ActivateRequest,
    CreateRequest,
    EventAnswer,
    FeedbackRequest,
    FreezeRequest,
    ItemsRequest,
    RankAnswer,
    RankRequest,
    ResetRequest,
    RollbackRequest,
)
from rankloop.serving.served_ranker import ServedRanker, check_digest
from rankloop.serving.stores.contract import Appended, Broken, Fenced, Full, Store, StoreError


class Engine:
    """Rankers on a store.

    clock: seconds since 1970. steady: seconds that only ever pass. Tests bring their own; one clock is then both.
    housekeeping: whether to snapshot, to expire and to follow other replicas in the background.
    """

    def __init__(
        self,
        store: Store,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] | None = None,
        steady: Callable[[], float] | None = None,
        snapshot_every: int = 20_000,
        keep_snapshots: int = 8,
        housekeeping: bool = True,
    ) -> None:
        self.store = store
        self.limits = limits or Limits()
        self.clock = LogClock(clock or time.time, steady or clock or since_boot)
        self.keep_snapshots = keep_snapshots
        self.rankers: dict[str, ServedRanker] = {}
        self.broken: str | None = None  # why nothing can be written any more
        self.ready = False
        self.commit = GroupCommit(self.append, most_waiting=self.limits.waiting)
        self.changed = asyncio.Event()  # something was folded: for those who watch
        self._draws = Draws()
        self._writing = asyncio.Lock()
        self._loading = asyncio.Lock()
        self.housekeeping = Housekeeping(self, snapshot_every=snapshot_every, in_background=housekeeping)

    async def open(self) -> None:
        """Take over what is in the store; nothing to do where it is open already."""
        if self.ready:
            return
        await self.store.open()
        try:
            for name in await self.store.rankers():
                self.rankers[name] = await ServedRanker.load(name, self.store)
        except BaseException:
            await self.store.close()
            raise
        self.commit.start()
        await self.housekeeping.start()
        self.ready = True

    async def close(self) -> None:
        """Write what is waiting, leave a snapshot, and let go."""
        self.ready = False
        await self.commit.stop()
        await self.housekeeping.stop()
        await self.store.close()

    def now(self) -> int:
        """Milliseconds since 1970, by a clock that does not jump."""
        return self.clock.now()

    async def find(self, name: str) -> ServedRanker:
        """The ranker of this name; another replica may have made it."""
        found = self.rankers.get(name)
        if found is None and self.store.shared:
            async with self._loading:
                if name not in self.rankers and name in await self.store.rankers():
                    self.rankers[name] = await ServedRanker.load(name, self.store)
            found = self.rankers.get(name)
        if found is None:
            raise NotFound(f"there is no ranker {name!r}")
        return found

    async def append(self, entries: list[Entry], epoch: int | None = None) -> list[Written]:
        """Write entries at once, and fold them; with `epoch`, `Fenced` unless the lease still has it.

        Group commit and housekeeping call it; requests go through `write`.
        """
        if self.broken:
            raise Unavailable(f"read-only: {self.broken}")
        async with self._writing:
            try:
                appended = await self.store.append(entries, at=self.now(), epoch=epoch)
            except Full as error:
                raise Unavailable(f"{error}; nothing was written") from error
            except Broken as error:
                # After a failed fsync the content of the disk is unknown: trying again could seem to succeed.
                self.broken = str(error)
                raise Unavailable(f"read-only from now on: {error}") from error
            except Fenced:
                raise
            except StoreError as error:
                raise Unavailable(str(error)) from error
            try:
                written = await self._take_in(entries, appended)
            except StoreError as error:  # written, and folded later: who asks again gets the same answer
                raise Unavailable(str(error)) from error
        self.changed.set()
        return written

    async def _take_in(self, entries: list[Entry], appended: list[Appended]) -> list[Written]:
        rows_of: dict[str, list[Row]] = {}
        for entry, one in zip(entries, appended, strict=True):
            # Where others write as well, a row that was there already may not be folded here yet.
            if entry.ranker in self.rankers and (one.new or self.store.shared):
                rows_of.setdefault(entry.ranker, []).append(one.row)
        outcomes: dict[tuple[str, int], Outcome] = {}
        for name, rows in rows_of.items():
            for row, outcome in zip(rows, await self.rankers[name].take_in(rows), strict=True):
                outcomes[name, row.seq] = outcome
            self.housekeeping.changed.add(name)
        return [
            Written(one.row, one.new, outcomes.get((entry.ranker, one.row.seq)) if one.new else None)
            for entry, one in zip(entries, appended, strict=True)
        ]

    async def write(self, entry: Entry) -> Written:
        """Write one entry with whatever else is waiting. The same id with another body is kept as a conflict."""
        if self.broken:
            raise Unavailable(f"read-only: {self.broken}")
        (written,) = await self.commit.submit([entry])
        if not written.new:
            await self._check_same(entry, written.row)
        return written

    async def _check_same(self, entry: Entry, row: Row) -> None:
        try:
            check_digest(entry, row)
        except Conflict:
            await self.commit.submit([_conflict(entry)])
            raise

    async def create(self, request: CreateRequest) -> tuple[ServedRanker, bool]:
        """A new ranker, and whether it was there already, just so."""
        if len(self.rankers) >= self.limits.rankers and request.name not in self.rankers:
            raise Busy(f"limit reached: {self.limits.rankers:,} rankers")
        check_names(request.items, self.limits, field="items")
        seed = secrets.randbits(63) if request.seed is None else request.seed
        config = Config(request.algorithm, seed, request.items, request.parameters, request.policy)
        check_policy(config)
        check_size(config, self.limits, n_items=len(request.items or ()))
        check_portable(config, shared=self.store.shared)
        refuse(lambda: Fold(config), field="parameters")
        # Without a seed in the request, the seed is ours, and not part of what makes two requests the same.
        asked = msgspec.structs.replace(config, seed=request.seed or 0)
        entry = Entry(
            request.name,
            "config",
            request.name,
            records.encode(config),
            bytes.fromhex(config_hash(asked))[:16],
        )
        (written,) = await self.commit.submit([entry])
        if not written.new:
            await self._check_same(entry, written.row)
        async with self._loading:
            if request.name not in self.rankers:
                self.rankers[request.name] = await ServedRanker.load(request.name, self.store)
        return self.rankers[request.name], not written.new

    async def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """A list to show; the decision is in the log."""
        served = self.rankers.get(name) or await self.find(name)
        decision_id = request.decision_id or new_id()
        try:
            entry, decision = served.draw(request, decision_id, draws=self._draws, limits=self.limits)
        except RequestError:
            raise
        except ValueError as error:
            raise RequestError(str(error)) from None
        written = await self.write(entry)
        if not written.new:
            decision = records.read_decision(written.row.body)
        return _rank_answer(served, decision, written)

    async def activate(self, name: str, request: ActivateRequest) -> EventAnswer:
        """The list was shown."""
        served = await self.find(name)
        if await served.decision_state(request.decision_id) is None:
            raise NotFound(f"there is no decision {request.decision_id!r}", field="decision_id")
        event_id = request.event_id or request.decision_id
        digest = digest_of(request.decision_id)
        written = await self.write(Entry(name, "activate", event_id, b"", digest, request.decision_id))
        return _event_answer(written)

    async def feedback(self, name: str, requests: list[FeedbackRequest]) -> list[EventAnswer]:
        """Feedback on one list or many; all of it is checked before any is written."""
        served = await self.find(name)
        if len(requests) > self.limits.batch:
            raise RequestError(
                f"limit reached: {self.limits.batch:,} feedback events in one request, got {len(requests):,}"
            )
        if len(served.fold.parked) + len(requests) > self.limits.parked:
            raise Busy(f"limit reached: {self.limits.parked:,} feedback events that wait for their decision")
        entries = [await served.feedback_entry(request) for request in requests]
        if not entries:
            return []
        if self.broken:
            raise Unavailable(f"read-only: {self.broken}")
        answers = []
        for entry, written in zip(entries, await self.commit.submit(entries), strict=True):
            answer = _event_answer(written)
            if not written.new and entry.digest != written.row.digest:
                await self.commit.submit([_conflict(entry)])
                answer = EventAnswer("conflict", written.row.seq)
            answers.append(answer)
        return answers

    async def change_items(self, name: str, request: ItemsRequest) -> EventAnswer:
        """Items come and go."""
        served = await self.find(name)
        if not served.fold.has_items:
            raise RequestError(
                f"{served.fold.config.algorithm} takes its items with each request", field="add"
            )
        check_names([*request.add, *request.retire], self.limits, field="add")
        body = records.encode(records.Items(request.add, request.retire))
        event_id = request.event_id or new_id()
        there = await self.store.find(name, "items", event_id)
        if there is None:
            n_items = len(served.fold.items) + len(request.add)
            if n_items > self.limits.items:
                raise RequestError(f"limit reached: {self.limits.items:,} items", field="add")
            check_size(served.fold.config, self.limits, n_items=n_items)
            refuse(lambda: served.fold.check_items(request.add, request.retire), field="add")
        return _event_answer(await self.write(Entry(name, "items", event_id, body, digest_of(body))))

    async def freeze(self, name: str, request: FreezeRequest) -> EventAnswer:
        """Stop learning, or go on."""
        await self.find(name)
        body = records.encode(records.Freeze(request.frozen))
        event_id = request.event_id or new_id()
        return _event_answer(await self.write(Entry(name, "freeze", event_id, body, digest_of(body))))

    async def reset(self, name: str, request: ResetRequest) -> EventAnswer:
        """Begin anew; the log, and with it all history, stays."""
        served = await self.find(name)
        old = served.fold.config
        items = (
            (served.fold.items if served.fold.has_items else None) if request.items is None else request.items
        )
        check_names(items, self.limits, field="items")
        parameters = old.parameters if request.parameters is None else request.parameters
        config = msgspec.structs.replace(old, items=items, parameters=parameters)
        check_size(config, self.limits, n_items=len(items or ()))
        refuse(lambda: Fold(config), field="parameters")
        body = records.encode(config)
        event_id = request.event_id or new_id()
        return _event_answer(await self.write(Entry(name, "reset", event_id, body, digest_of(body))))

    async def rollback(self, name: str, request: RollbackRequest) -> EventAnswer:
        """Back to what was known at a snapshot."""
        served = await self.find(name)
        event_id = request.event_id or new_id()
        digest = digest_of(str(request.to_seq))
        there = await self.store.find(name, "rollback", event_id)
        body = b""
        if there is None:
            snapshot = await self.store.read_snapshot(name, request.to_seq)
            if snapshot is None:
                raise NotFound(f"there is no snapshot at {request.to_seq}", field="to_seq")
            then = snapshots.revive(snapshot)
            if config_hash(then.config) != config_hash(served.fold.config):
                raise Conflict(
                    "that snapshot is of another configuration, from before a reset", field="to_seq"
                )
            learnt = msgspec.msgpack.encode(then.learnt())
            body = records.encode(records.Rollback(request.to_seq, snapshot.state_hash, learnt))
        return _event_answer(await self.write(Entry(name, "rollback", event_id, body, digest)))

    async def snapshot(self, name: str) -> int:
        """Write a snapshot now; its seq."""
        served = await self.find(name)
        try:
            await self.housekeeping.snapshot(served)
        except Fenced as error:
            self.housekeeping.epoch = None
            raise Unavailable("another process holds the lease, and takes the snapshots") from error
        return served.snapshot_seq


def _rank_answer(served: ServedRanker, decision: records.Decision, written: Written) -> RankAnswer:
    chances = decision.propensities
    return RankAnswer(
        written.row.event_id,
        served.fold.names(decision),
        None if chances is None else np.frombuffer(chances, "<f8").tolist(),
        decision.model_seq,
        not written.new,
    )


def _event_answer(written: Written) -> EventAnswer:
    if not written.new or written.outcome is None:
        return EventAnswer("duplicate", written.row.seq, duplicate=True)
    status: Any = written.outcome.status
    return EventAnswer(status, written.row.seq, status == "duplicate", written.outcome.learns)


def _conflict(entry: Entry) -> Entry:
    body = records.encode(records.Conflict(entry.kind, entry.event_id, entry.body))
    event_id = digest_of(entry.kind, entry.event_id, entry.digest).hex()
    return Entry(entry.ranker, "conflict", event_id, body, entry.digest, entry.decision)
