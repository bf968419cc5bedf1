"""Calls that change a ranker itself: its items, whether it learns, what it has learnt. Each is a row of its log."""

from __future__ import annotations

import abc
import asyncio

import msgspec

from rankloop.serving.adapters.registry import config_hash
from rankloop.serving.admission import Limits, check_names, check_size, check_value, digest_of, refuse
from rankloop.serving.api import (
    ArchivedAnswer,
    EventAnswer,
    FreezeRequest,
    ItemsRequest,
    PromoteRequest,
    ResetRequest,
    RollbackRequest,
)
from rankloop.serving.clock import new_id
from rankloop.serving.degraded import DegradedLists
from rankloop.serving.errors import Conflict, NotFound, RequestError, Unavailable
from rankloop.serving.group_commit import Written
from rankloop.serving.housekeeping import Housekeeping
from rankloop.serving.log import records, snapshots
from rankloop.serving.log.fingerprint import stamped
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.records import Config, Entry
from rankloop.serving.outcomes import event_answer
from rankloop.serving.request_features import packed_matrix
from rankloop.serving.roster import Roster
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import Fenced, Store


class Administration(abc.ABC):
    """The part of an engine that an administrator calls."""

    store: Store
    limits: Limits
    housekeeping: Housekeeping
    roster: Roster
    degraded: DegradedLists
    changed: asyncio.Event
    _writing: asyncio.Lock

    @abc.abstractmethod
    def now(self) -> int:
        """Milliseconds since 1970, by a clock that does not jump."""

    @abc.abstractmethod
    async def find_to_write(self, name: str) -> ServedRanker:
        """The ranker of this name; `Unavailable` where it is read-only."""

    @abc.abstractmethod
    async def write(self, entry: Entry) -> Written:
        """Write one entry with whatever else is waiting. The same id with another body is kept as a conflict."""

    async def change_items(self, name: str, request: ItemsRequest) -> EventAnswer:
        """Items come and go."""
        served = await self.find_to_write(name)
        fold = served.fold
        if fold.has_items and (request.update or request.features or request.feature_names):
            raise RequestError(f"{fold.config.algorithm} takes no features", field="features")
        check_names([*request.add, *request.retire, *request.update], self.limits, field="add")
        features = packed_matrix(request.features, self.limits)
        change = records.Items(request.add, request.retire, request.update, features, request.feature_names)
        body = records.encode(change)
        event_id = request.event_id or new_id()
        there = await self.store.find(name, "items", event_id)
        if there is None:
            n_items = len(fold.items if fold.has_items else fold.stored.present) + len(request.add)
            if n_items > self.limits.items:
                raise RequestError(f"limit reached: {self.limits.items:,} items", field="add")
            check_size(fold.config, self.limits, n_items=n_items)
            named = "add" if request.add else "retire"
            refuse(lambda: fold.check_items(change), field=named if fold.has_items else "features")
        return event_answer(await self.write(Entry(name, "items", event_id, body, digest_of(body))))

    async def freeze(self, name: str, request: FreezeRequest) -> EventAnswer:
        """Stop learning, or go on."""
        await self.find_to_write(name)
        body = records.encode(records.Freeze(request.frozen))
        event_id = request.event_id or new_id()
        return event_answer(await self.write(Entry(name, "freeze", event_id, body, digest_of(body))))

    async def promote(self, name: str, request: PromoteRequest) -> EventAnswer:
        """Let the ranker's lists be shown to a share of the requests with a baseline."""
        await self.find_to_write(name)
        body = records.encode(records.Promote(request.share))
        event_id = request.event_id or new_id()
        return event_answer(await self.write(Entry(name, "promote", event_id, body, digest_of(body))))

    async def reset(self, name: str, request: ResetRequest) -> EventAnswer:
        """Begin anew; the log, and with it all history, stays."""
        served = await self.find_to_write(name)
        old = served.fold.config
        items = (
            (served.fold.items if served.fold.has_items else None) if request.items is None else request.items
        )
        check_names(items, self.limits, field="items")
        parameters = old.parameters if request.parameters is None else request.parameters
        check_value(parameters, field="parameters")
        config = msgspec.structs.replace(old, items=items, parameters=parameters)
        check_size(config, self.limits, n_items=len(items or ()))
        refuse(lambda: Fold(config), field="parameters")
        n_stored = served.fold.stored.n_columns
        if n_stored > config.parameters.get("n_features", n_stored):
            raise RequestError(
                f"n_features must be at least {n_stored}, as many as are stored for each item, "
                f"got {config.parameters['n_features']}",
                field="parameters",
            )
        body = records.encode(await asyncio.to_thread(stamped, config))
        event_id = request.event_id or new_id()
        return event_answer(await self.write(Entry(name, "reset", event_id, body, digest_of(body))))

    async def rollback(self, name: str, request: RollbackRequest) -> EventAnswer:
        """Back to what was known at a snapshot."""
        served = await self.find_to_write(name)
        event_id = request.event_id or new_id()
        digest = digest_of(str(request.to_seq))
        there = await self.store.find(name, "rollback", event_id)
        body = b"" if there is None else there.body
        if there is None:
            try:
                snapshot = await snapshots.read_sound(self.store, name, request.to_seq)
                then = None if snapshot is None else snapshots.revive(snapshot)
            except ValueError as error:
                raise Conflict(str(error), field="to_seq") from None
            if snapshot is None or then is None:
                raise NotFound(f"there is no snapshot at {request.to_seq}", field="to_seq")
            if _identity(then.config) != _identity(served.fold.config):
                raise Conflict(
                    "that snapshot is of another configuration, from before a reset or an upgrade",
                    field="to_seq",
                )
            learnt = msgspec.msgpack.encode(then.learnt())
            body = records.encode(records.Rollback(request.to_seq, snapshot.state_hash, learnt))
        return event_answer(await self.write(Entry(name, "rollback", event_id, body, digest)))

    async def archive(self, name: str) -> ArchivedAnswer:
        """Put a ranker away, also one that cannot be served: its rows stay, and its name is free again."""
        if name not in await self.store.rankers():
            self.roster.forget(name)  # it may have been put away after the wait for that had ended
            raise NotFound(f"there is no ranker {name!r}")
        async with self._writing:  # nothing is written to it meanwhile
            archived = await self.store.archive(name, at=self.now())
            self.roster.forget(name)
            self.degraded.forget(name)
        self.changed.set()
        return ArchivedAnswer(name, archived)

    async def snapshot(self, name: str) -> int:
        """Write a snapshot now; its seq."""
        served = await self.find_to_write(name)
        try:
            await self.housekeeping.snapshot_now(served)
        except Fenced as error:
            raise Unavailable("another process holds the lease, and takes the snapshots") from error
        return served.snapshot_seq


def _identity(config: Config) -> str:
    # A log may have been given a probe later, and another policy: neither is part of what was learnt.
    return config_hash(msgspec.structs.replace(config, probe="", policy=records.Policy()))
