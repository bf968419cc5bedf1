"""What goes on beside the requests: leases, snapshots, expiry, following other replicas, and alerts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from typing import TYPE_CHECKING, NamedTuple

from rankloop.serving.admission import NotFound, RequestError, Unavailable
from rankloop.serving.failpoints import reach
from rankloop.serving.log import records, snapshots
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.records import Entry, waiting_time
from rankloop.serving.retention import Trimming
from rankloop.serving.series import Bucket
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import Fenced, Left, Missing, OpenList, StoreError
from rankloop.serving.ubi import join_due

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine

_log = logging.getLogger("rankloop.serving")
LEASE_SECONDS = 5.0
_TICK_SECONDS = 0.5
_RENEW = 1_250  # milliseconds between two renewals
_ASKED = 10_000  # milliseconds for which a ranker that somebody asked for is taken to be asked for again
_DAY = 86_400_000
_UNUSED = 300_000  # milliseconds after which a ranker that nobody asks for is let go of
_WORTH_A_SNAPSHOT = 200  # rows that whoever loads it next need not fold
_NEWS_SECONDS = 0.1  # between two looks at what others wrote
_NAMED = 10  # rankers that a message names
_PAGE = 500
_PAGES_A_TICK = 8


class Housekeeping:
    """Runs beside an engine.

    One process snapshots and expires a ranker: who holds its lease. A process takes the lease of what it is asked for,
    gives it back when others write to a ranker that it is not asked for, and lets go of what nobody asks for. Of
    rankers that nobody looks after, whoever notices does. Its epoch fences what it writes.
    """

    def __init__(self, engine: Engine, *, snapshot_every: int, in_background: bool) -> None:
        self.engine = engine
        self.snapshot_every = snapshot_every
        self.holder = secrets.token_hex(8)
        self.epochs: dict[str, int] = {}  # of the rankers that this process looks after
        self.changed: set[str] = set()  # rankers that have new rows since the last tick
        self.alerts = AlertWatch()
        self.trimming: Trimming | None = None
        self._deadlines: dict[str, int] = {}  # when a ranker is to be looked after next
        self._asked_for: set[str] = set()  # the rankers whose leases were asked for last
        self._renew_at = 0
        self._look_at = 0  # for rankers that nobody looks after
        self._background = in_background
        self._adopting: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._leasing = asyncio.Lock()
        engine.store.alone = self._is_alone

    async def start(self) -> None:
        await self.hold_leases()
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
        for task in [*self._tasks, *([self._adopting] if self._adopting else [])]:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._background and not self.engine.broken:
            for served in list(self.engine.rankers.values()):
                if (
                    served.name in self.epochs
                    and served.fold.applied > served.snapshot_seq
                    and not served.read_only
                ):
                    with contextlib.suppress(StoreError):
                        await self.snapshot(served)
        with contextlib.suppress(StoreError):
            await self.let_go(list(self.epochs))

    def is_mine(self, name: str) -> bool:
        return not self.engine.store.shared or name in self.epochs

    def _is_alone(self, name: str) -> bool:
        return name in self.epochs and self.engine.loaded.is_alone(name)

    async def hold_leases(self) -> None:
        """Take or renew the leases of the rankers that are here. Who has a store alone need not renew anything."""
        async with self._leasing:
            await self._hold_leases()

    async def _hold_leases(self) -> None:
        engine, now = self.engine, self.engine.now()
        names = {
            name
            for name, served in engine.rankers.items()
            if not served.read_only
            and (self.is_mine(name) or now - served.asked_at < _ASKED)  # others are asked for the rest
        }
        due = now >= self._renew_at and (engine.store.shared or not self._renew_at)
        if not due and engine.store_trouble is None and names <= self._asked_for:
            return
        epochs = await engine.store.take_leases(self.holder, names, seconds=LEASE_SECONDS, now=now / 1000)
        self._asked_for, self._renew_at = names, now + _RENEW
        taken = sorted(epochs.keys() - self.epochs.keys())
        for name in taken:
            self.changed.add(name)
            self._deadlines[name] = now
        if taken and engine.store.shared:
            others = f" and {len(taken) - _NAMED:,} more" if len(taken) > _NAMED else ""
            _log.info("this process looks after %s%s now", ", ".join(taken[:_NAMED]), others)
        self.epochs = epochs

    async def _epoch(self, name: str) -> int:
        if name not in self.epochs:
            await self.hold_leases()
        if name not in self.epochs:
            raise Fenced(f"another process looks after ranker {name!r}")
        return self.epochs[name]

    async def let_go(self, names: list[str]) -> None:
        """Give leases back, with what who comes next should know."""
        async with self._leasing:
            now, left = self.engine.now(), []
            for name in names:
                served = self.engine.rankers.get(name)
                if self.epochs.pop(name, None) is not None and served is not None:
                    left.append(Left(name, served.fold.applied, self._wake_in(name, now)))
            if left:
                await self.engine.store.let_go(self.holder, left, now=now / 1000)

    def _wake_in(self, name: str, now: int) -> float | None:
        """In how many seconds somebody is to look after a ranker again."""
        # Until it was looked at, lists may be due.
        at = now if name in self.changed else self._deadlines.get(name)
        if self.trimming is not None:
            at = now + _DAY if at is None else min(at, now + _DAY)  # rows become old without anybody asking
        return None if at is None else max(0, at - now) / 1000

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
        await self.hold_leases()  # a write where others share the store, or where the last one failed
        if self.engine.store_trouble is not None:
            _log.warning("the store can be written to again")
            self.engine.store_trouble = None
        await self.engine.degraded.log(self.engine.append)
        if self.engine.store.shared:
            await self._share()
        if self.epochs:
            reach("lease-held")
        await self._look_after_changed()
        await self._expire_due()

    async def _share(self) -> None:
        """Let go of rankers that nobody asks this process for, and take on what nobody looks after."""
        engine, now = self.engine, self.engine.now()
        left, unused = [], []
        for name, served in engine.rankers.items():
            idle = now - served.asked_at
            if idle >= _UNUSED and not (served.name in self.changed or served.looking_back.locked()):
                unused.append(served)
            elif idle >= _ASKED and name in self.epochs and not engine.loaded.is_alone(name):
                left.append(name)  # another one is asked for it
        for served in unused:
            if self.is_mine(served.name) and served.fold.applied - served.snapshot_seq >= _WORTH_A_SNAPSHOT:
                with contextlib.suppress(Fenced):
                    await self.snapshot(served)
        await self.let_go(left + [served.name for served in unused])
        for served in unused:
            if now - served.asked_at >= _UNUSED:  # nobody came meanwhile
                engine.loaded.forget(served.name)
        if now >= self._look_at:
            self._look_at = now + _ASKED // 4
            cannot = [*engine.loaded.absent, *(one.name for one in engine.rankers.values() if one.read_only)]
            names = await engine.store.unattended(seconds=LEASE_SECONDS, now=now / 1000, besides=cannot)
            if names and (self._adopting is None or self._adopting.done()):
                self._adopting = asyncio.create_task(self._adopt(names))
                if not self._background:
                    await self._adopting

    async def _adopt(self, names: list[str]) -> None:
        for name in names:
            with contextlib.suppress(RequestError):
                await self.engine.find(name)
            await self.hold_leases()

    def _is_over(self, name: str) -> None:
        self.epochs.pop(name, None)
        _log.warning("ranker %r: another process looks after it now; nothing was written", name)

    async def _look_after_changed(self) -> None:
        changed, self.changed = self.changed, set()
        if self.trimming is not None:
            self.trimming.changed |= changed
        try:
            await self._look_after(changed)
        except BaseException:
            self.changed |= changed  # they are looked after with the next tick
            raise

    async def _look_after(self, names: set[str]) -> None:
        for name in names:
            served = self.engine.rankers.get(name)
            if served is None or served.read_only or name not in self.epochs:
                continue
            if not self.engine.loaded.is_current(served):
                await self.engine.loaded.fold_new(served)
            next_at = self._deadlines.get(name)
            if next_at is None:
                self._deadlines[name] = self.engine.now()
            elif served.fold.gathering or served.fold.waiting.of:
                self._wake(served, next_at, log_now=served.fold.at)
            if served.fold.applied - served.snapshot_seq >= self.snapshot_every:
                try:
                    await self.snapshot(served)
                except Fenced:
                    self._is_over(name)
                except Missing:  # archived meanwhile
                    continue

    async def _expire_due(self) -> None:
        now = self.engine.now()
        for name in [name for name, at in self._deadlines.items() if at <= now]:
            del self._deadlines[name]
            served = self.engine.rankers.get(name)
            if served is None or served.read_only or name not in self.epochs:
                continue
            try:
                await self.expire(served)
            except Fenced:
                self._is_over(name)
            except NotFound:
                self.changed.add(name)
            except BaseException:
                self.changed.add(name)  # it is tried again with the next tick
                raise

    async def snapshot_now(self, served: ServedRanker) -> None:
        """Write one because somebody asks for it; who holds the lease hands it over."""
        now = self.engine.now() / 1000
        async with self._leasing:
            self.epochs |= await self.engine.store.take_leases(
                self.holder, [served.name], seconds=LEASE_SECONDS, now=now, at_once=True
            )
        self.changed.add(served.name)
        await self.snapshot(served)

    async def snapshot(self, served: ServedRanker) -> None:
        """Write one, as the holder of the lease."""
        epoch = await self._epoch(served.name)
        taken = snapshots.take(served.fold, epoch=epoch)
        await self.engine.store.write_snapshot(served.name, taken, keep=self.engine.keep_snapshots)
        served.snapshot_seq = taken.seq

    async def expire(self, served: ServedRanker) -> int:
        """Write `expire` for lists whose deadline has passed without an answer; how many. A long log takes turns."""
        engine, fold, written = self.engine, served.fold, 0
        await join_due(engine, served)
        written += await self._learn_gathered(served)
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
                await engine.append(entries, epoch=await self._epoch(served.name))
                written += len(entries)
            # All up to here are answered or expired: a hint for the next start, and no part of what was learnt.
            reached = found.through == fold.expire_cursor
            fold.expire_cursor = max(fold.expire_cursor, found.through)
            if found.next_at is not None:
                self._wake(served, engine.now() + found.next_at + allowed + 1 - now, log_now=now)
                return written
            if reached:
                if fold.gathering or fold.waiting.of:
                    self._wake(served, engine.now() + _DAY, log_now=now)
                return written
        self._deadlines[served.name] = engine.now()
        return written

    async def _learn_gathered(self, served: ServedRanker) -> int:
        """Write `expire` for lists whose clicks came one by one and have been gathered long enough; how many."""
        gathering = served.fold.gathering
        if not gathering:
            return 0
        now = await self.engine.store.time(served.name, at=self.engine.now())
        closed = [decision for decision, at in gathering.items() if at <= now]
        # Row 0: that all lists up to this one are closed is not said.
        body = records.encode(records.Expire(0))
        for first in range(0, len(closed), _PAGE):
            entries = [
                Entry(served.name, "expire", decision, body, b"\0", decision)
                for decision in closed[first : first + _PAGE]
            ]
            await self.engine.append(entries, epoch=await self._epoch(served.name))
        return len(closed)

    def _wake(self, served: ServedRanker, at: int, *, log_now: int) -> None:
        """Look after it again at this time, or before, when clicks have been gathered long enough."""
        fold = served.fold
        joins_at = [at for at, _ in fold.waiting.due(fold.config.policy)[:1]]
        closes_at = min([*fold.gathering.values(), *joins_at], default=None)
        if closes_at is not None:
            at = min(at, self.engine.now() + max(0, closes_at - log_now))
        self._deadlines[served.name] = at

    async def _unanswered(self, served: ServedRanker, lists: list[OpenList]) -> list[OpenList]:
        """Those without an answer: feedback that came before its list, and late feedback that was learnt, are one."""
        left = []
        for one in lists:
            state = await served.decision_state(one.decision) if one.has_feedback else None
            if state is None or (state.answer is None and not state.expired):
                left.append(one)
        return left

    async def take_in_news(self, names: set[str] | None = None) -> None:
        """Note which rankers others wrote to: who is asked for one folds it then."""
        loaded = self.engine.loaded
        if names is None:
            here = {*loaded.rankers, *loaded.absent}
            heads = await self.engine.store.heads(here)
            for name in here.difference(heads):  # another process archived or moved it
                loaded.forget(name)
                self.engine.degraded.forget(name)
            ends = {name: (one.fold.applied, one.fold.link) for name, one in loaded.rankers.items()}
            names = {name for name, head in heads.items() if name in ends and ends[name] != head}
            for name in names:
                loaded.rankers[name].current_until = 0
        else:
            loaded.hear(names)
        self.changed |= names & self.epochs.keys()
        self.engine.changed.set()

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while True:
            try:
                names = await self.engine.store.wait_for_news(seconds=1.0)
                if names is not None:
                    await self.take_in_news(names)
                if loop.time() - looked >= 1.0:
                    looked = loop.time()
                    await self.take_in_news()
                await asyncio.sleep(_NEWS_SECONDS)
            except StoreError:  # the tick says so
                await asyncio.sleep(0.2)
            except Exception:
                _log.exception("following other replicas failed; it is tried again")
                await asyncio.sleep(0.2)


# Alerts about a ranker: exploration that collapses, feedback that stops or comes late, a baseline that is better.
#
# All but the last compare the last hour with the rest of the last day, by the log's own series, and only where there
# was enough of both to tell. The last one looks at the interval of the lift, which may be watched at any time: however
# often it is looked at, an alert that is wrong ever comes about a ranker with a probability of 5% at most.

KINDS = ("exploration", "feedback", "late", "holdout")
_EXPECTED = 20.0  # lists that would have explored, or been answered, at the usual rate
_SHARE = 0.1  # of what was expected, or less
_USUAL_HOURS = 6.0  # of the day before, at least, to know what is usual
_LATE = 10  # late feedback in an hour, at least
_SOON = 900.0  # seconds: where feedback usually takes longer, its absence in an hour tells nothing
_HOUR = 3_600_000
_LOOK_SECONDS = 30


class _Sums(NamedTuple):
    decisions: int
    explored: int
    answers: int
    late: int
    delay: float

    @classmethod
    def of(cls, buckets: list[Bucket]) -> _Sums:
        return cls(*(sum(getattr(one, field) for one in buckets) for field in cls._fields))


def alerts_of(fold: Fold, *, now: int) -> dict[str, str]:
    """By kind, in a sentence, what is not as it should be with one ranker at the time `now`, in milliseconds."""
    found: dict[str, str] = {}
    recent = fold.series.window("hour", now=now)[1]
    if not recent:
        return found
    hour = _Sums.of(recent)
    before = [one for one in fold.series.window("day", now=now)[1] if one.last_at < now - _HOUR]
    usual = _Sums.of(before)
    known = bool(before) and now - before[0].first_at >= (_USUAL_HOURS + 1) * _HOUR and usual.decisions > 0
    # Who changed the policy, perhaps the exploration cap, need not be told what came of it.
    as_before = known and not any(seq >= before[0].first_seq for seq, *_ in fold.policies.changes)
    if as_before and _fell(hour.explored, usual.explored, hour.decisions, usual.decisions):
        found["exploration"] = (
            f"{hour.explored:,} of the last hour's {hour.decisions:,} lists explored, before it were "
            f"{usual.explored / usual.decisions:.1%}"
        )
    soon = known and usual.answers > 0 and usual.delay / usual.answers <= _SOON
    if soon and not fold.frozen and _fell(hour.answers, usual.answers, hour.decisions, usual.decisions):
        found["feedback"] = (
            f"{hour.answers:,} of the last hour's {hour.decisions:,} lists have feedback, before it had "
            f"{usual.answers / usual.decisions:.1%}"
        )
    if hour.late >= _LATE and hour.late > hour.answers:
        found["late"] = f"{hour.late:,} answers of the last hour came late, and {hour.answers:,} in time"
    lift = fold.trial.lift()
    if lift is not None and lift.high < 0.0:
        found["holdout"] = (
            f"the baseline is better: over {fold.trial.difference.n:,} lists the lift in mean reward is between "
            f"{lift.low:.4g} and {lift.high:.4g}"
        )
    return found


def _fell(found: int, before: int, lists: int, lists_before: int) -> bool:
    """Whether there is a tenth, or less, of what the rate before lets expect."""
    expected = before / lists_before * lists
    return expected >= _EXPECTED and found <= _SHARE * expected


class AlertWatch:
    """Looks at all rankers now and then, and tells in the service's messages when an alert begins and ends."""

    def __init__(self) -> None:
        self.active: dict[tuple[str, str], str] = {}  # by ranker and kind: the sentence
        self._next = 0

    def tick(self, engine: Engine) -> None:
        if engine.now() >= self._next:
            self._next = engine.now() + 1000 * _LOOK_SECONDS
            self.look(engine)

    def look(self, engine: Engine) -> None:
        found = {
            (name, kind): sentence
            for name, served in list(engine.rankers.items())
            if engine.housekeeping.is_mine(name)
            for kind, sentence in alerts_of(served.fold, now=engine.now()).items()
        }
        for name, kind in found.keys() - self.active.keys():
            _log.warning("alert %s of ranker %r: %s", kind, name, found[name, kind])
        for name, kind in self.active.keys() - found.keys():
            _log.warning("alert %s of ranker %r is over", kind, name)
        self.active = found

    def sentences(self) -> list[str]:
        return [f"ranker {name!r}: {sentence}" for (name, _), sentence in sorted(self.active.items())]
