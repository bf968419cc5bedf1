"""The service without HTTP: every call that changes something returns once it is durable and part of the state."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import numpy as np

from rankloop.serving import admission, api
from rankloop.serving.clock import LogClock, new_id, since_boot
from rankloop.serving.group_commit import GroupCommit, Written
from rankloop.serving.housekeeping import Housekeeping
from rankloop.serving.loaded_rankers import LoadedRankers
from rankloop.serving.log import records, snapshots
from rankloop.serving.log.comparison import comparison_of
from rankloop.serving.log.decision_state import Outcome
from rankloop.serving.log.digests import digest_of
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.guard_rails import check_rails
from rankloop.serving.log.randomness import Draws
from rankloop.serving.log.records import Config, Decision, Entry, Freeze, Kind, Promote, check_answers
from rankloop.serving.privacy import Sealing
from rankloop.serving.rank_request import packed_matrix
from rankloop.serving.registry import config_hash, stamped
from rankloop.serving.served_ranker import ServedRanker, check_digest
from rankloop.serving.stores import contract
from rankloop.serving.stores.contract import Store
from rankloop.serving.verdicts import asked_digest, check_compared, with_orders

_log = logging.getLogger("rankloop.serving")
_LOGGED_TOGETHER = 500  # lists that were shown while the store was away
_TOLD = 20  # rankers with which something is wrong that are spelled out
_DRAWS = 4  # of one list, where the ranker is changed meanwhile


class Engine:
    """Rankers on a store.

    clock: seconds since 1970. steady: seconds that only ever pass. Tests bring their own; one clock is then both.
    housekeeping: whether to snapshot, to expire and to follow other replicas in the background.
    """

    def __init__(
        self,
        store: Store,
        *,
        limits: admission.Limits | None = None,
        clock: Callable[[], float] | None = None,
        steady: Callable[[], float] | None = None,
        snapshot_every: int = 20_000,
        keep_snapshots: int = 8,
        housekeeping: bool = True,
    ) -> None:
        self.store = store
        self.limits = limits or admission.Limits()
        self.clock = LogClock(clock or time.time, steady or clock or since_boot)
        self.keep_snapshots = keep_snapshots
        self.loaded = LoadedRankers(store, self.limits, self.now)
        self.rankers = self.loaded.rankers
        self.broken: str | None = None  # why nothing can be written any more
        self.store_trouble: str | None = None  # why nothing could be written just now
        self.degraded = DegradedLists(self.limits.degraded)
        self.sealing = Sealing(store, now=self.now, limits=self.limits)
        self.ready = False
        self.extractor: Callable[[str, str, list[Any]], Any] | None = None  # see `rankloop.serving.rerank`
        self.commit = GroupCommit(
            self.append, most_waiting=self.limits.waiting, seconds=self.limits.store_seconds
        )
        self.changed = asyncio.Event()  # something was folded: for those who watch
        self.draws = Draws()
        self._writing = asyncio.Lock()
        self._creating = asyncio.Lock()
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
            await self.loaded.load_all()
        await self.housekeeping.start()
        self.ready = True

    async def _fold_all_in_background(self) -> None:
        while True:
            try:
                return await self._fold_all()
            except (contract.StoreError, admission.Unavailable) as error:
                _log.warning("the store cannot be read, which is tried again: %s", error)
                await asyncio.sleep(1.0)

    async def folded(self) -> None:
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
        self.loaded.close()
        await self.housekeeping.stop()
        await self.store.close()

    @property
    def trouble(self) -> str | None:
        """Why it is not ready, as a sentence; None where it is."""
        if self.broken:
            return self.broken
        if not self.ready:
            return self.loaded.progress() if self.opened else "starting or stopping"
        if self.commit.overdue:
            return "the store does not answer"
        return self.store_trouble or self.store.complaint()

    def notices(self) -> list[str]:
        """What is wrong with single rankers: those that cannot be served, and alerts."""
        return [*self.loaded.notices(), *self.housekeeping.alerts.sentences()]

    def remarks(self) -> list[str]:
        """What is not as usual, although it can rank and write or waits until it can."""
        found = self.notices()
        if len(found) > _TOLD:
            found = [*found[:_TOLD], f"and {len(found) - _TOLD:,} more"]
        if self.clock.jumps:
            found.append(
                f"the clock of this machine jumped {self.clock.jumps} times; "
                f"it is {self.clock.offset:+.1f} s from the log's"
            )
        found += self.store.remarks()
        if self.degraded:
            found.append(f"{len(self.degraded):,} lists were shown without the store and wait to be logged")
        return found

    def now(self) -> int:
        return self.clock.now()

    async def find(self, name: str) -> ServedRanker:
        """The ranker of this name, as it is now, whichever replica made or changed it."""
        if self.store.shared and not (name in self.rankers and self.without_store):
            try:
                await self.loaded.ask(name)
            except contract.StoreError as error:
                self.store_trouble = str(error)
                if name not in self.rankers:
                    raise admission.Unavailable(str(error)) from error
        served = self.loaded.find(name)
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
        return served is not None and self.loaded.is_current(served)

    async def find_all(self) -> list[ServedRanker]:
        """All rankers, as far as they can be had in the time that a request may take."""
        names = list(self.rankers)
        if self.store.shared and not self.without_store:
            with contextlib.suppress(TimeoutError, contract.StoreError):
                names = await asyncio.wait_for(self.loaded.ask_for_all(), self.limits.store_seconds)
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
            raise admission.Unavailable(f"read-only: {self.broken}")
        async with self._writing:
            try:
                appended = await self.store.append(entries, at=self.now(), epoch=epoch)
            except contract.Full as error:
                self.store_trouble = str(error)
                raise admission.Unavailable(f"{error}; nothing was written") from error
            except contract.Broken as error:
                # After a failed fsync the content of the disk is unknown: trying again could seem to succeed.
                self.broken = str(error)
                raise admission.Unavailable(f"read-only from now on: {error}") from error
            except contract.Fenced:
                raise
            except contract.Stale:
                drawn = [self.rankers[name] for name in {one.ranker for one in entries} & self.rankers.keys()]
                for served in drawn:
                    await self.loaded.fold_new(served)
                raise
            except contract.Diverged as error:
                await self.loaded.refold_drawn(entries)
                raise admission.Unavailable(f"{error}; its state is folded anew, try again") from error
            except contract.Missing as error:
                raise admission.NotFound(str(error)) from error
            except contract.StoreError as error:
                self.store_trouble = str(error)
                raise admission.Unavailable(str(error)) from error
            self.store_trouble = None
            try:
                written = await self._take_in(entries, appended)
            except (
                contract.StoreError
            ) as error:  # written, and folded later: who asks again gets the same answer
                raise admission.Unavailable(str(error)) from error
        self.changed.set()
        return written

    async def _take_in(self, entries: list[Entry], appended: list[contract.Appended]) -> list[Written]:
        """Fold rows that are durable now, each by its ranker."""
        places: dict[str, list[int]] = {}  # of the rows of each ranker
        for i, (entry, one) in enumerate(zip(entries, appended, strict=True)):
            # Where others write as well, a row that was there already may not be folded here yet.
            if entry.ranker in self.rankers and (one.new or self.store.shared):
                places.setdefault(entry.ranker, []).append(i)
        outcomes: list[Outcome | None] = [None] * len(entries)
        failed: set[str] = set()
        for name, its in places.items():
            served = self.rankers[name]
            try:
                contents = {appended[i].row.seq: entries[i].content for i in its if appended[i].new}
                found = await served.take_in([appended[i].row for i in its], contents)
                if self.store.shared:
                    self.loaded.wrote(served)
                for i, outcome in zip(its, found, strict=True):
                    outcomes[i] = outcome if appended[i].new else None
            except BaseException as error:
                await self.loaded.recover(name, error)
                failed.add(name)
            self.housekeeping.changed.add(name)

        def is_left(entry: Entry) -> bool:
            """Whether it was written to a ranker that was let go of meanwhile: nobody here folds it."""
            return self.store.shared and entry.kind != "config" and entry.ranker not in self.rankers

        return [
            Written(one.row, one.new, outcome, entry.ranker in failed or (one.new and is_left(entry)))
            for entry, one, outcome in zip(entries, appended, outcomes, strict=True)
        ]

    async def write(self, entry: Entry) -> Written:
        """Write one entry with whatever else is waiting. The same id with another body is kept as a conflict."""
        (written,) = await self._submit([entry])
        if not written.new:
            try:
                check_digest(entry, written.row)
            except admission.Conflict:
                await self._submit([_conflict(entry)])
                raise
        return written

    async def _submit(self, entries: list[Entry]) -> list[Written]:
        """Write entries that can be read again; 503 where they were written and could not be folded."""
        if self.broken:
            raise admission.Unavailable(f"read-only: {self.broken}")
        for entry in entries:
            admission.check_entry(entry, self.limits)
        written = await self.commit.submit(entries)
        for one in written:
            if one.failed:
                raise self._folded_anew(entries[0].ranker)
        return written

    def _folded_anew(self, name: str) -> admission.Unavailable:
        self.loaded.find(name)
        return admission.Unavailable(f"ranker {name!r} was folded anew: ask again")

    async def create(
        self,
        request: api.CreateRequest,
        *,
        permit: Callable[[str, set[str]], object] = lambda name, there: None,
    ) -> tuple[ServedRanker, bool]:
        """A new ranker, and whether it was there already, just so.

        permit: is asked first, and told of all rankers.
        """
        if not self.ready:
            raise admission.Unavailable(self.trouble or "starting or stopping")
        async with contextlib.AsyncExitStack() as alone:
            async with asyncio.timeout(self.limits.store_seconds):
                await alone.enter_async_context(self._creating)
                await alone.enter_async_context(self.store.creating())
            there = set(await self.names())
            permit(request.name, there)
            if len(there) >= self.limits.rankers and request.name not in there:
                raise admission.Busy(f"limit reached: {self.limits.rankers:,} rankers")
            return await self._create(request)

    async def _create(self, request: api.CreateRequest) -> tuple[ServedRanker, bool]:
        admission.check_names(request.items, self.limits, field="items")
        seed = secrets.randbits(63) if request.seed is None else request.seed
        config = Config(
            algorithm=request.algorithm,
            seed=seed,
            items=request.items,
            parameters=request.parameters,
            policy=records.Policy(**records.given(request.policy)),
            defaults=records.DEFAULTS,
            features=packed_matrix(request.features, self.limits),
            feature_names=request.feature_names or [],
        )
        admission.check_value(request.parameters, field="parameters")
        admission.check_policy(config.policy)
        admission.check_size(config, self.limits, n_items=len(request.items or ()))
        admission.check_portable(config, shared=self.store.shared)
        admission.refuse(lambda: Fold(config), field="parameters")
        made = await asyncio.to_thread(stamped, config)
        # Without a seed in the request, the seed is ours, and not part of what makes two requests the same; nor are
        # the defaults: a ranker that is there already keeps those that it was created with.
        asked = msgspec.structs.replace(config, seed=request.seed or 0, defaults=1)
        digest = bytes.fromhex(config_hash(asked))[:16]
        entry = Entry(request.name, "config", request.name, records.encode(made), digest)
        written = await self.write(entry)
        await self.loaded.load(request.name)
        return self.loaded.find(request.name), not written.new

    async def rank(self, name: str, request: api.RankRequest) -> api.RankAnswer:
        served = await self.at_hand(name)
        decision_id = request.decision_id or new_id()
        if request.subject is not None:
            request = await self.sealing.sealed(name, request, decision_id)
        for _ in range(_DRAWS):
            # Where another replica changed the ranker meanwhile: a list of the ranker as it is now.
            with contextlib.suppress(contract.Stale):
                return await self._rank(served, request, decision_id)
            served = await self.at_hand(name)
        raise admission.Unavailable(f"ranker {name!r} is being changed: try again")

    async def _rank(self, served: ServedRanker, request: api.RankRequest, decision_id: str) -> api.RankAnswer:
        entry, decision = await self._drawn(served, request, decision_id)
        if served.read_only:
            return _rank_answer(served, decision, decision_id, degraded=True)
        may_degrade = served.fold.config.policy.degraded is True
        try:
            if may_degrade and self.without_store:
                raise admission.Unavailable("the store is away")
            written = await self.write(entry)
        except admission.Unavailable:
            if not may_degrade or self.broken:
                raise
            self.degraded.add(entry)
            return _rank_answer(served, decision, decision_id, degraded=True)
        if not written.new:
            decision = records.read_decision(written.row.body)
        return _rank_answer(served, decision, written.row.event_id, duplicate=not written.new)

    async def _drawn(
        self, served: ServedRanker, request: api.RankRequest, decision_id: str
    ) -> tuple[Entry, Decision]:
        comparison, digest = comparison_of(served.fold), None
        if comparison is None:
            check_compared(served.fold, request)
        elif comparison.named:
            digest = asked_digest(request)
            request = await with_orders(self, comparison, request, decision_id)
        try:
            entry, decision = served.draw(request, decision_id, draws=self.draws, limits=self.limits)
        except ValueError as error:
            raise admission.RequestError(str(error)) from None
        return entry if digest is None else msgspec.structs.replace(entry, digest=digest), decision

    async def rank_many(self, name: str, requests: list[api.RankRequest]) -> list[api.RankOutcome]:
        """A list for each request, in order; what is wrong with one of them is told in its place.

        All are drawn before the first is written, from one state, and wait for the disk together.
        """
        if len(requests) > self.limits.batch:
            raise admission.RequestError(
                f"limit reached: {self.limits.batch:,} lists in one request, got {len(requests):,}"
            )
        await self.find(name)
        tasks = [asyncio.create_task(self.rank(name, one)) for one in requests]
        await asyncio.gather(*tasks, return_exceptions=True)
        return [_rank_outcome(task) for task in tasks]

    @property
    def without_store(self) -> bool:
        """Whether the store could not be written to just now; it is tried again all the time."""
        return self.ready and (self.store_trouble is not None or self.commit.overdue)

    async def activate(self, name: str, request: api.ActivateRequest) -> api.EventAnswer:
        served = _writable(await self.at_hand(name))
        if await served.decision_state(request.decision_id) is None:
            raise admission.NotFound(f"there is no decision {request.decision_id!r}", field="decision_id")
        event_id = request.event_id or request.decision_id
        digest = digest_of(request.decision_id)
        written = await self.write(Entry(name, "activate", event_id, b"", digest, request.decision_id))
        return _event_answer(written)

    async def feedback(self, name: str, requests: list[api.FeedbackRequest]) -> list[api.EventAnswer]:
        """Feedback on one list or many; all of it is checked before any is written."""
        served = _writable(await self.at_hand(name))
        if len(requests) > self.limits.batch:
            raise admission.RequestError(
                f"limit reached: {self.limits.batch:,} feedback events in one request, got {len(requests):,}"
            )
        entries = await served.feedback_entries(requests, self.loaded.fold_new, self.limits)
        if self.rankers.get(name) is not _writable(served):
            raise self._folded_anew(name)
        full = len(served.fold.parked) >= self.limits.parked and await served.crowded(now=self.now())
        if not full:
            return await self._feedback_answers([entry for entry, _ in entries])
        known = [is_known for _, is_known in entries]
        if known == [False]:
            raise admission.Busy(
                f"limit reached: {self.limits.parked:,} feedback events that wait for their decision"
            )
        answers = iter(await self._feedback_answers([entry for entry, is_known in entries if is_known]))
        return [next(answers) if is_known else api.EventAnswer("busy", 0) for is_known in known]

    async def _feedback_answers(self, entries: list[Entry]) -> list[api.EventAnswer]:
        if not entries:
            return []
        answers = []
        for entry, written in zip(entries, await self._submit(entries), strict=True):
            answers.append(_event_answer(written))
            if not written.new and entry.digest != written.row.digest:
                await self._submit([_conflict(entry)])
                answers[-1] = api.EventAnswer("conflict", written.row.seq)
        return answers

    # Calls that change a ranker itself. Each is a row of its log.

    async def change_items(self, name: str, request: api.ItemsRequest) -> api.EventAnswer:
        served = await self.find_to_write(name)
        fold = served.fold
        if fold.has_items and (request.update or request.features or request.feature_names):
            raise admission.RequestError(f"{fold.config.algorithm} takes no features", field="features")
        admission.check_names([*request.add, *request.retire, *request.update], self.limits, field="add")
        features = packed_matrix(request.features, self.limits)
        change = records.Items(request.add, request.retire, request.update, features, request.feature_names)
        body = records.encode(change)
        event_id = request.event_id or new_id()
        there = await self.store.find(name, "items", event_id)
        if there is None:
            n_items = len(fold.items if fold.has_items else fold.stored.present) + len(request.add)
            if n_items > self.limits.items:
                raise admission.RequestError(f"limit reached: {self.limits.items:,} items", field="add")
            admission.check_size(fold.config, self.limits, n_items=n_items)
            named = "add" if request.add else "retire"
            admission.refuse(lambda: fold.check_items(change), field=named if fold.has_items else "features")
        return await self._change(name, "items", event_id, body)

    async def freeze(self, name: str, request: api.FreezeRequest) -> api.EventAnswer:
        await self.find_to_write(name)
        return await self._change(name, "freeze", request.event_id, records.encode(Freeze(request.frozen)))

    async def promote(self, name: str, request: api.PromoteRequest) -> api.EventAnswer:
        comparison = comparison_of((await self.find_to_write(name)).fold)
        names = [] if comparison is None else comparison.rankings
        if request.ranking is None and comparison is None:
            body = Promote(request.share)
        elif request.ranking in names and request.share == 1.0:
            body = Promote(1.0, request.ranking)
        else:
            wanted = (
                f"one of {', '.join(names)}, for all requests" if names else "left out: this is no comparison"
            )
            raise admission.RequestError(
                f"ranking must be {wanted}, got {request.ranking!r}", field="ranking"
            )
        return await self._change(name, "promote", request.event_id, records.encode(body))

    async def stop(self, name: str, request: api.StopRequest) -> api.EventAnswer:
        """End a comparison: from here on requests get the order of its first ranking."""
        comparison = comparison_of((await self.find_to_write(name)).fold)
        if comparison is None:
            raise admission.RequestError(f"{name!r} is no comparison", field="name")
        event_id = request.event_id or new_id()
        if comparison.shown is not None and await self.store.find(name, "promote", event_id) is None:
            raise admission.Conflict(f"{name!r} was stopped already, and shows {comparison.shown!r}")
        return await self._change(
            name, "promote", event_id, records.encode(Promote(0.0, comparison.rankings[0]))
        )

    async def reset(self, name: str, request: api.ResetRequest) -> api.EventAnswer:
        """Begin anew; the log, and with it all history, stays."""
        served = await self.find_to_write(name)
        old = served.fold.config
        items = (
            (served.fold.items if served.fold.has_items else None) if request.items is None else request.items
        )
        admission.check_names(items, self.limits, field="items")
        parameters = old.parameters if request.parameters is None else request.parameters
        admission.check_value(parameters, field="parameters")
        config = msgspec.structs.replace(old, items=items, parameters=parameters)
        admission.check_size(config, self.limits, n_items=len(items or ()))
        admission.refuse(lambda: Fold(config), field="parameters")
        n_stored = served.fold.stored.n_columns
        if n_stored > config.parameters.get("n_features", n_stored):
            raise admission.RequestError(
                f"n_features must be at least {n_stored}, as many as are stored for each item, "
                f"got {config.parameters['n_features']}",
                field="parameters",
            )
        body = records.encode(await asyncio.to_thread(stamped, config))
        return await self._change(name, "reset", request.event_id, body)

    async def rollback(self, name: str, request: api.RollbackRequest) -> api.EventAnswer:
        served = await self.find_to_write(name)
        event_id = request.event_id or new_id()
        there = await self.store.find(name, "rollback", event_id)
        body = b"" if there is None else there.body
        if there is None:
            try:
                snapshot = await snapshots.read_sound(self.store, name, request.to_seq)
                then = None if snapshot is None else snapshots.revive(snapshot)
            except ValueError as error:
                raise admission.Conflict(str(error), field="to_seq") from None
            if snapshot is None or then is None:
                raise admission.NotFound(f"there is no snapshot at {request.to_seq}", field="to_seq")
            if _identity(then.config) != _identity(served.fold.config):
                raise admission.Conflict(
                    "that snapshot is of another configuration, from before a reset or an upgrade",
                    field="to_seq",
                )
            learnt = msgspec.msgpack.encode(then.learnt())
            body = records.encode(records.Rollback(request.to_seq, snapshot.state_hash, learnt))
        return await self._change(name, "rollback", event_id, body, digest=digest_of(str(request.to_seq)))

    async def archive(self, name: str) -> api.ArchivedAnswer:
        """Put a ranker away, also one that cannot be served: its rows stay, and its name is free again."""
        if name not in await self.store.rankers():
            self.loaded.forget(name)  # it may have been put away after the wait for that had ended
            raise admission.NotFound(f"there is no ranker {name!r}")
        async with self._writing:  # nothing is written to it meanwhile
            archived = await self.store.archive(name, at=self.now())
            self.loaded.forget(name)
            self.degraded.forget(name)
        self.changed.set()
        return api.ArchivedAnswer(name, archived)

    async def snapshot(self, name: str) -> int:
        """Write a snapshot now; its seq."""
        served = await self.find_to_write(name)
        try:
            await self.housekeeping.snapshot_now(served)
        except contract.Fenced as error:
            raise admission.Unavailable("another process holds the lease, and takes the snapshots") from error
        return served.snapshot_seq

    async def change_policy(self, name: str, request: api.PolicyRequest) -> api.EventAnswer:
        """Change the policy for lists from here on; the same event ID again changes nothing."""
        fold = (await self.find_to_write(name)).fold
        wanted = records.given(request)
        wanted.pop("event_id", None)
        if not wanted:
            raise admission.RequestError("name something of the policy that is to change", field="policy")
        for seq, event_id, policy in fold.policies.changes:
            if event_id == request.event_id:
                if any(getattr(policy, field) != value for field, value in wanted.items()):
                    raise admission.Conflict(
                        f"event {event_id!r} changed something else (row {seq})", field="event_id"
                    )
                return api.EventAnswer("duplicate", seq, duplicate=True)
        policy = msgspec.structs.replace(fold.config.policy, **wanted)
        admission.check_policy(policy)
        admission.refuse(lambda: check_answers(policy, fold.ranker), field="answers")
        admission.refuse(
            lambda: check_rails(policy, fold.ranker, has_items=fold.has_items), field="displacement"
        )
        body = records.encode(records.PolicyChange(request.event_id or new_id(), policy))
        return await self._change(name, "policy", str(len(fold.policies.changes) + 1), body)

    async def _change(
        self, name: str, kind: Kind, event_id: str | None, body: bytes, *, digest: bytes | None = None
    ) -> api.EventAnswer:
        """Write a row that changes the ranker itself. digest: of what makes two requests the same; of the body."""
        entry = Entry(name, kind, event_id or new_id(), body, digest_of(body) if digest is None else digest)
        return _event_answer(await self.write(entry))


def _writable(served: ServedRanker) -> ServedRanker:
    if served.read_only:
        raise admission.Unavailable(f"ranker {served.name!r} is read-only: {served.read_only}")
    return served


def _rank_answer(
    served: ServedRanker,
    decision: Decision,
    decision_id: str,
    *,
    duplicate: bool = False,
    degraded: bool = False,
) -> api.RankAnswer:
    """The list of a decision. degraded: it is not logged, and nothing can be learnt from feedback on it."""
    chances = decision.propensities
    return api.RankAnswer(
        decision_id,
        served.fold.names(decision),
        None if chances is None else np.frombuffer(chances, "<f8").tolist(),
        decision.model_seq,
        duplicate,
        degraded,
    )


def _rank_outcome(task: asyncio.Task[api.RankAnswer]) -> api.RankOutcome:
    error = task.exception()
    if error is None:
        return api.RankOutcome(task.result())
    if isinstance(error, admission.RequestError):
        return api.RankOutcome(error=api.ErrorBody(error.code, error.message, error.field))
    raise error


def _event_answer(written: Written) -> api.EventAnswer:
    if not written.new or written.outcome is None:
        return api.EventAnswer("duplicate", written.row.seq, duplicate=True)
    status: Any = written.outcome.status
    return api.EventAnswer(status, written.row.seq, status == "duplicate", written.outcome.learns)


def _conflict(entry: Entry) -> Entry:
    """The entry that keeps another one, which came under an ID that was taken."""
    body = records.encode(records.Conflict(entry.kind, entry.event_id, entry.body))
    event_id = digest_of(entry.kind, entry.event_id, entry.digest).hex()
    return Entry(entry.ranker, "conflict", event_id, body, entry.digest, entry.decision)


def _identity(config: Config) -> str:
    # A log may have been given a probe later, and another policy: neither is part of what was learnt.
    return config_hash(msgspec.structs.replace(config, probe="", policy=records.Policy()))


class DegradedLists:
    """Lists that were shown while the store was away: kept until they can be logged, never learnt from.

    A bounded queue. What is in it is lost where the process ends before the store is back.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[tuple[str, str], Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry) -> None:
        """Keep the row of a list; `Unavailable` where there is no room. Asked for again, it is there once."""
        key = entry.ranker, entry.event_id
        if key not in self._entries and len(self._entries) >= self._most:
            raise admission.Unavailable(f"limit reached: {self._most:,} lists that wait for the store")
        self._entries[key] = msgspec.structs.replace(entry, kind="degraded")

    async def log(self, append: Callable[[list[Entry]], Awaitable[object]]) -> None:
        """Log them: the store is back."""
        while self._entries:
            batch = [entry for entry, _ in zip(self._entries.values(), range(_LOGGED_TOGETHER), strict=False)]
            await append(batch)
            for entry in batch:
                del self._entries[entry.ranker, entry.event_id]

    def forget(self, ranker: str) -> None:
        self._entries = {key: entry for key, entry in self._entries.items() if key[0] != ranker}
