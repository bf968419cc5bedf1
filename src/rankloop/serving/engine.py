"""The service without its skin: every call that changes something returns once it is durable and folded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable

import msgspec

from rankloop.serving.adapters.registry import config_hash
from rankloop.serving.administration import Administration
from rankloop.serving.admission import (
    Limits,
    check_entry,
    check_names,
    check_policy,
    check_portable,
    check_size,
    check_value,
    digest_of,
    refuse,
)
from rankloop.serving.api import (
    ActivateRequest,
    CreateRequest,
    EventAnswer,
    FeedbackRequest,
    RankAnswer,
    RankRequest,
)
from rankloop.serving.clock import LogClock, new_id, since_boot
from rankloop.serving.degraded import DegradedLists
from rankloop.serving.errors import Busy, Conflict, NotFound, RequestError, Unavailable
from rankloop.serving.group_commit import GroupCommit, Written
from rankloop.serving.housekeeping import Housekeeping
from rankloop.serving.log import records
from rankloop.serving.log.fingerprint import stamped
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.randomness import Draws
from rankloop.serving.log.records import Config, Entry, Row
from rankloop.serving.log.upgrade import unsigned
from rankloop.serving.outcomes import conflict, event_answer, rank_answer, unlogged_answer
from rankloop.serving.request_features import packed_matrix
from rankloop.serving.roster import Roster
from rankloop.serving.sealing import Sealing
from rankloop.serving.served_ranker import ServedRanker, check_digest
from rankloop.serving.stores.contract import (
    Broken,
    Diverged,
    Fenced,
    Full,
    Missing,
    Stale,
    Store,
    StoreError,
)
from rankloop.serving.taking_in import take_in

_log = logging.getLogger("rankloop.serving")
_DRAWS = 4  # of one list, where the ranker is changed meanwhile


class Engine(Administration):
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
        self.roster = Roster(store, self.limits, self.now)
        self.rankers = self.roster.rankers
        self.broken: str | None = None  # why nothing can be written any more
        self.store_trouble: str | None = None  # why nothing could be written just now
        self.degraded = DegradedLists(self.limits.degraded)
        self.sealing = Sealing(store, now=self.now, limits=self.limits)
        self.ready = False
        self.commit = GroupCommit(
            self.append, most_waiting=self.limits.waiting, seconds=self.limits.store_seconds
        )
        self.changed = asyncio.Event()  # something was folded: for those who watch
        self._draws = Draws()
        self._writing = asyncio.Lock()
        self._creating: list[str] = []  # rankers that are being made, and count already
        self.opened = False
        self._folding: asyncio.Task[None] | None = None
        self.housekeeping = Housekeeping(self, snapshot_every=snapshot_every, in_background=housekeeping)

    async def open(self, *, wait: bool = True) -> None:
        """Take over what is in the store; nothing to do where it is open already."""
        if self.opened:
            return
        await self.store.open()
        self.opened = True
        self.commit.start()
        if not wait:
            self._folding = asyncio.create_task(self._fold_all_in_background())
            return
        try:
            await self._fold_all()
        except BaseException:
            await self.commit.stop()
            await self.store.close()
            self.opened = False
            raise

    async def _fold_all(self) -> None:
        if not self.store.shared:  # else it folds what it is asked for
            await self.roster.load_all()
            for served in list(self.rankers.values()):
                await self._sign(served)
        await self.housekeeping.start()
        self.ready = True

    async def _sign(self, served: ServedRanker) -> None:
        if entries := await unsigned(served):
            with contextlib.suppress(NotFound):
                await self.append(entries)

    async def _fold_all_in_background(self) -> None:
        while True:
            try:
                return await self._fold_all()
            except (StoreError, Unavailable) as error:
                _log.warning("the store cannot be read, which is tried again: %s", error)
                await asyncio.sleep(1.0)

    async def folded(self) -> None:
        """Return when every log has been folded."""
        if self._folding is not None:
            await asyncio.shield(self._folding)

    async def close(self) -> None:
        """Write what is waiting, leave a snapshot, and let go; nothing to do where it is closed."""
        if not self.opened:
            return
        self.ready = self.opened = False
        if self._folding is not None:
            self._folding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._folding
            self._folding = None
        await self.commit.stop()
        self.roster.close()
        await self.housekeeping.stop()
        await self.store.close()

    @property
    def trouble(self) -> str | None:
        """Why it is not ready, in words; None where it is."""
        if self.broken:
            return self.broken
        if not self.ready:
            return self.roster.progress() if self.opened else "starting or stopping"
        if self.commit.overdue:
            return "the store does not answer"
        return self.store_trouble or self.store.complaint()

    def now(self) -> int:
        """Milliseconds since 1970, by a clock that does not jump."""
        return self.clock.now()

    async def find(self, name: str) -> ServedRanker:
        """The ranker of this name, as it is now, whichever replica made or changed it."""
        if self.store.shared and not (name in self.rankers and self.without_store):
            is_new = name not in self.rankers
            try:
                await self.roster.ask(name)
                if is_new and name in self.rankers:
                    await self._sign(self.rankers[name])
            except StoreError as error:
                self.store_trouble = str(error)
                if name not in self.rankers:
                    raise Unavailable(str(error)) from error
        served = self.roster.find(name)
        served.asked_at = self.now()
        return served

    async def at_hand(self, name: str) -> ServedRanker:
        """The ranker of this name, as this process knows it: at most a moment behind where others write to it."""
        if not self.is_at_hand(name):
            return await self.find(name)
        served = self.rankers[name]
        if self.store.shared:
            served.asked_at = self.now()
        return served

    def is_at_hand(self, name: str) -> bool:
        """Whether the store need not be asked first."""
        served = self.rankers.get(name)
        return served is not None and self.roster.is_current(served)

    async def find_all(self) -> list[ServedRanker]:
        """All rankers, as far as they can be had in the time that a request may take."""
        names = list(self.rankers)
        if self.store.shared and not self.without_store:
            with contextlib.suppress(TimeoutError, StoreError):
                names = await asyncio.wait_for(self.roster.ask_for_all(), self.limits.store_seconds)
        return [self.rankers[name] for name in names if name in self.rankers]

    async def names(self) -> list[str]:
        """The names of all rankers, also of those that are not here."""
        return await self.store.rankers() if self.store.shared else list(self.rankers)

    async def find_to_write(self, name: str) -> ServedRanker:
        """The ranker of this name, as it is now; `Unavailable` where it is read-only."""
        return _writable(await self.find(name))

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
                self.store_trouble = str(error)
                raise Unavailable(f"{error}; nothing was written") from error
            except Broken as error:
                # After a failed fsync the content of the disk is unknown: trying again could seem to succeed.
                self.broken = str(error)
                raise Unavailable(f"read-only from now on: {error}") from error
            except Fenced:
                raise
            except Stale:
                drawn = [self.rankers[name] for name in {one.ranker for one in entries} & self.rankers.keys()]
                for served in drawn:
                    await self.roster.fold_new(served)
                raise
            except Diverged as error:
                await self.roster.refold_drawn(entries)
                raise Unavailable(f"{error}; its state is folded anew, try again") from error
            except Missing as error:
                raise NotFound(str(error)) from error
            except StoreError as error:
                self.store_trouble = str(error)
                raise Unavailable(str(error)) from error
            self.store_trouble = None
            try:
                written = await take_in(self, entries, appended)
            except StoreError as error:  # written, and folded later: who asks again gets the same answer
                raise Unavailable(str(error)) from error
        self.changed.set()
        return written

    async def write(self, entry: Entry) -> Written:
        """Write one entry with whatever else is waiting. The same id with another body is kept as a conflict."""
        if self.broken:
            raise Unavailable(f"read-only: {self.broken}")
        check_entry(entry, self.limits)
        (written,) = await self.commit.submit([entry])
        if written.failed:
            raise self._folded_anew(entry.ranker)
        if not written.new:
            await self._check_same(entry, written.row)
        return written

    async def _submit(self, entries: list[Entry]) -> list[Written]:
        """Write entries that can be read again; 503 where they were written and could not be folded."""
        for entry in entries:
            check_entry(entry, self.limits)
        written = await self.commit.submit(entries)
        for one in written:
            if one.failed:
                raise self._folded_anew(entries[0].ranker)
        return written

    def _folded_anew(self, name: str) -> Unavailable:
        self.roster.find(name)
        return Unavailable(f"ranker {name!r} was folded anew: ask again")

    async def _check_same(self, entry: Entry, row: Row) -> None:
        try:
            check_digest(entry, row)
        except Conflict:
            await self._submit([conflict(entry)])
            raise

    async def create(
        self, request: CreateRequest, *, permit: Callable[[str, set[str]], object] = lambda name, there: None
    ) -> tuple[ServedRanker, bool]:
        """A new ranker, and whether it was there already, just so.

        permit: is asked first, and told of all rankers, also of those that others are making just now.
        """
        if not self.ready:
            raise Unavailable(self.trouble or "starting or stopping")
        there = {*self._creating}  # also before: one that is done meanwhile may not be among the names yet
        there |= {*await self.names(), *self._creating}
        permit(request.name, there)
        if len(there) >= self.limits.rankers and request.name not in there:
            raise Busy(f"limit reached: {self.limits.rankers:,} rankers")
        self._creating.append(request.name)
        try:
            return await self._create(request)
        finally:
            self._creating.remove(request.name)

    async def _create(self, request: CreateRequest) -> tuple[ServedRanker, bool]:
        check_names(request.items, self.limits, field="items")
        seed = secrets.randbits(63) if request.seed is None else request.seed
        config = Config(
            request.algorithm,
            seed,
            request.items,
            request.parameters,
            records.Policy(**records.given(request.policy)),
            defaults=records.DEFAULTS,
            features=packed_matrix(request.features, self.limits),
            feature_names=request.feature_names or [],
        )
        check_value(request.parameters, field="parameters")
        check_policy(config)
        check_size(config, self.limits, n_items=len(request.items or ()))
        check_portable(config, shared=self.store.shared)
        refuse(lambda: Fold(config), field="parameters")
        made = await asyncio.to_thread(stamped, config)
        # Without a seed in the request, the seed is ours, and not part of what makes two requests the same; nor are
        # the defaults: a ranker that is there already keeps those that it was created with.
        asked = msgspec.structs.replace(config, seed=request.seed or 0, defaults=1)
        entry = Entry(
            request.name,
            "config",
            request.name,
            records.encode(made),
            bytes.fromhex(config_hash(asked))[:16],
        )
        (written,) = await self._submit([entry])
        if not written.new:
            await self._check_same(entry, written.row)
        await self.roster.load(request.name)
        return self.roster.find(request.name), not written.new

    async def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """A list to show; the decision is in the log."""
        served = await self.at_hand(name)
        decision_id = request.decision_id or new_id()
        if request.subject is not None:
            request = await self.sealing.sealed(name, request, decision_id)
        for _ in range(_DRAWS):
            # Where another replica changed the ranker meanwhile: a list of the ranker as it is now.
            with contextlib.suppress(Stale):
                return await self._rank(served, request, decision_id)
            served = await self.at_hand(name)
        raise Unavailable(f"ranker {name!r} is being changed: try again")

    async def _rank(self, served: ServedRanker, request: RankRequest, decision_id: str) -> RankAnswer:
        try:
            entry, decision = served.draw(request, decision_id, draws=self._draws, limits=self.limits)
        except ValueError as error:
            raise RequestError(str(error)) from None
        if served.read_only:
            return unlogged_answer(served, decision, decision_id)
        may_degrade = served.fold.config.policy.degraded is True
        try:
            if may_degrade and self.without_store:
                raise Unavailable("the store is away")
            written = await self.write(entry)
        except Unavailable:
            if not may_degrade or self.broken:
                raise
            self.degraded.add(entry)
            return unlogged_answer(served, decision, decision_id)
        if not written.new:
            decision = records.read_decision(written.row.body)
        return rank_answer(served, decision, written)

    @property
    def without_store(self) -> bool:
        """Whether the store could not be written to just now; it is tried again all the time."""
        return self.ready and (self.store_trouble is not None or self.commit.overdue)

    async def activate(self, name: str, request: ActivateRequest) -> EventAnswer:
        """The list was shown."""
        served = _writable(await self.at_hand(name))
        if await served.decision_state(request.decision_id) is None:
            raise NotFound(f"there is no decision {request.decision_id!r}", field="decision_id")
        event_id = request.event_id or request.decision_id
        digest = digest_of(request.decision_id)
        written = await self.write(Entry(name, "activate", event_id, b"", digest, request.decision_id))
        return event_answer(written)

    async def feedback(self, name: str, requests: list[FeedbackRequest]) -> list[EventAnswer]:
        """Feedback on one list or many; all of it is checked before any is written."""
        served = _writable(await self.at_hand(name))
        if len(requests) > self.limits.batch:
            raise RequestError(
                f"limit reached: {self.limits.batch:,} feedback events in one request, got {len(requests):,}"
            )
        entries = await served.feedback_entries(requests, self.roster.fold_new, self.limits)
        if self.rankers.get(name) is not _writable(served):
            raise self._folded_anew(name)
        full = len(served.fold.parked) >= self.limits.parked and await served.crowded(now=self.now())
        if not full:
            return await self._feedback_answers([entry for entry, _ in entries])
        known = [is_known for _, is_known in entries]
        if known == [False]:
            raise Busy(f"limit reached: {self.limits.parked:,} feedback events that wait for their decision")
        told = iter(await self._feedback_answers([entry for entry, is_known in entries if is_known]))
        return [next(told) if is_known else EventAnswer("busy", 0) for is_known in known]

    async def _feedback_answers(self, entries: list[Entry]) -> list[EventAnswer]:
        if not entries:
            return []
        if self.broken:
            raise Unavailable(f"read-only: {self.broken}")
        answers = []
        for entry, written in zip(entries, await self._submit(entries), strict=True):
            answers.append(event_answer(written))
            if not written.new and entry.digest != written.row.digest:
                await self._submit([conflict(entry)])
                answers[-1] = EventAnswer("conflict", written.row.seq)
        return answers


def _writable(served: ServedRanker) -> ServedRanker:
    if served.read_only:
        raise Unavailable(f"ranker {served.name!r} is read-only: {served.read_only}")
    return served
