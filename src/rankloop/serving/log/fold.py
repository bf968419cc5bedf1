"""The state of a served ranker: a fold of its log, row by row. The same rows give the same state.

All who read a log do it here: pages, rows with what folding them needs, and what a ranker learnt from each.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranker
from rankloop.serving import history_import
from rankloop.serving.api import DeadLetter
from rankloop.serving.estimates import Estimates, SavedEstimates
from rankloop.serving.failpoints import reach
from rankloop.serving.item_counts import ItemCounts, SavedItemCounts
from rankloop.serving.log import candidate_lists, guard_rails, records
from rankloop.serving.log.candidate_lists import TrialSums, feedback_length
from rankloop.serving.log.comparison import comparison_of
from rankloop.serving.log.decision_state import (
    PARKED_PER_DECISION,
    DecisionState,
    Outcome,
    RecentDecisions,
    RelatedRows,
    replay_decision,
)
from rankloop.serving.log.digests import BadRow, check_row
from rankloop.serving.log.guard_rails import check_rails
from rankloop.serving.log.stored_features import SavedFeatures, StoredFeatures, items_shown
from rankloop.serving.registry import build, carried, changed, check_change, check_same, has_items
from rankloop.serving.series import Series
from rankloop.serving.stores.contract import Damaged, Store

_DEAD_KEPT = 100
_SHOWN = np.dtype("<i4")
_FLOAT = np.dtype("<f8")
_ACCEPTED = Outcome("accepted")


class OtherHistory(BadRow):
    """A row does not follow the one that was folded before it: the log has another history than this state."""

    def __init__(self, seq: int) -> None:
        super().__init__(seq, "does not follow the row before it")


class Parked(dict[str, list[tuple[int, int]]]):
    """Feedback that came before its list: by decision its seq and time, oldest first."""

    def __init__(self, saved: dict[str, list[tuple[int, int]]] | None = None) -> None:
        super().__init__({name: list(there) for name, there in (saved or {}).items()})
        # For each decision a time that is not after its oldest; of decisions that came, too.
        self._oldest = [(there[0][1], name) for name, there in self.items() if there]
        heapq.heapify(self._oldest)

    def add(self, row: records.Row) -> list[DeadLetter]:
        """Let the feedback in `row` wait; what must go for it, where too much waits for the same list."""
        decision = row.decision or ""
        there = self.setdefault(decision, [])
        if not there:
            heapq.heappush(self._oldest, (row.at, decision))
        there.append((row.seq, row.at))
        if len(there) <= PARKED_PER_DECISION:
            return []
        return [DeadLetter(*there.pop(0), decision, "newer feedback waits for the same decision")]

    def give_up(self, oldest: float) -> list[DeadLetter]:
        """What came before the time `oldest`, and waits no longer."""
        found = []
        while self._oldest and self._oldest[0][0] < oldest:
            _, decision = heapq.heappop(self._oldest)
            there = self.get(decision, [])
            while there and there[0][1] < oldest:
                found.append(DeadLetter(*there.pop(0), decision, "no such decision came"))
            if there:
                heapq.heappush(self._oldest, (there[0][1], decision))
            else:
                self.pop(decision, None)
        found.sort(key=lambda letter: letter.seq)
        return found


class Search(msgspec.Struct):
    """What is known of a search whose list is not there yet.

    since: when the first of it came. documents: by event ID the row, and what it says. tried: whether a list was to be
    made of it since the last of them came, by this process.
    """

    since: int
    documents: dict[str, tuple[int, records.Waits]] = {}
    tried: bool = False

    def seen(self) -> list[records.Waits]:
        """The impressions."""
        return [one for _, one in self.documents.values() if one.action == "impression"]


class Waiting(msgspec.Struct):
    """Documents of UBI that came before their list, by search, the oldest first; `n` of them.

    zero: the applications that call the top position 0.
    """

    of: dict[str, Search] = {}
    n: int = 0
    zero: list[str] = []

    def add(self, row: records.Row, document: records.Waits) -> None:
        if document.ordinal == 0 and document.application not in self.zero and len(self.zero) < _DEAD_KEPT:
            self.zero.append(document.application)
        search = self.of.setdefault(row.decision or "", Search(row.at))
        search.documents[row.event_id] = row.seq, document
        search.tried = False
        self.n += 1

    def settle(self, query_id: str) -> None:
        """The list is there: what it shows need not be known any more."""
        search = self.of.get(query_id, Search(0))
        for event_id in [event for event, (_, one) in search.documents.items() if one.action != "click"]:
            self.done(query_id, event_id)

    def done(self, query_id: str, event_id: str) -> None:
        """A document is known from another row, such as that of its list, or of feedback on it."""
        search = self.of.get(query_id)
        if search is not None and search.documents.pop(event_id, None) is not None:
            self.n -= 1
            if not search.documents:
                del self.of[query_id]

    def give_up(self, oldest: float) -> list[DeadLetter]:
        """All documents of searches of which the first came before the time `oldest`."""
        found = []
        while self.of and (first := next(iter(self.of))) and self.of[first].since < oldest:
            search = self.of.pop(first)
            self.n -= len(search.documents)
            why = (
                "no list can be made of its impressions" if search.seen() else "no list of this search has it"
            )
            found += [DeadLetter(seq, search.since, first, why) for seq, _ in search.documents.values()]
        return found

    def due(self, policy: records.Policy) -> list[tuple[int, str]]:
        """When a list is to be made of what is known of a search, where that was not tried, the next one first."""
        waits = round(min(policy.window, policy.parking_seconds / 2) * 1000)
        return [(one.since + waits, name) for name, one in self.of.items() if not one.tried]


class Saved(msgspec.Struct):
    """A whole fold, for a snapshot."""

    config: records.Config
    applied: int
    at: int
    generation: int
    catalogue: list[str]
    active: list[int]
    learnt: records.Learnt
    frozen: bool
    parked: dict[str, list[tuple[int, int]]]
    dead: list[DeadLetter]
    counts: records.Counts
    expire_cursor: int
    series: Series
    estimates: SavedEstimates
    items: SavedItemCounts | None = None  # snapshots from before there were counts have none
    policies: tuple[records.Policy, list[tuple[int, str, records.Policy]]] | None = (
        None  # likewise, before they could change
    )
    trial: TrialSums | None = None
    stored: SavedFeatures | None = None
    gathering: dict[str, int] = {}
    waiting: Waiting = msgspec.field(default_factory=Waiting)


class Fold:
    """One ranker, as its log up to `applied` has made it."""

    def __init__(self, config: records.Config) -> None:
        self.config = config
        self.has_items = has_items(config.algorithm)
        if self.has_items and config.items is None:
            raise ValueError(f"{config.algorithm} needs items, got items={config.items!r}")
        if self.has_items and config.features is not None:
            raise ValueError(f"{config.algorithm} takes no features")
        self.policies = records.PolicyHistory(config.policy)
        self.recent = RecentDecisions()
        self.applied = self.at = self.generation = self.expire_cursor = 0
        self.link = b""  # of the row that was folded last
        self.catalogue: list[str] = []
        self.number: dict[str, int] = {}
        self.frozen = False
        self.parked = Parked()
        self.waiting = Waiting()
        self.stored = StoredFeatures()  # of a ranker with features
        self.gathering: dict[
            str, int
        ] = {}  # lists whose clicks come one by one, and when they are to be learnt
        self.dead: deque[DeadLetter] = deque(maxlen=_DEAD_KEPT)
        self.counts = records.Counts()
        self.series = Series()
        self.item_counts = ItemCounts()
        self._handlers: dict[str, Callable[[records.Row, RelatedRows], Outcome]] = {
            kind: getattr(self, f"_{kind}") for kind in records.KINDS
        }
        self._begin(config)

    def _begin(self, config: records.Config) -> None:
        self.config = config if self.has_items else records.without_items(config)
        self._set_active(self.config.items or [])
        self.ranker: Ranker = build(config, n_items=len(self.active))
        records.check_answers(config.policy, self.ranker)
        check_rails(config.policy, self.ranker, has_items=self.has_items)
        self.rounds = 0
        self.trial = TrialSums(since=self.applied + 1)
        self.estimates = Estimates.of(self.ranker, n_items=len(self.active), fresh=True)
        if not self.has_items:
            self.stored.begin(config, self.ranker.n_features or 0)

    def _set_active(self, names: list[str]) -> None:
        for name in names:
            if name not in self.number:
                self.number[name] = len(self.catalogue)
                self.catalogue.append(name)
        self.active: NDArray[np.int64] = np.array([self.number[name] for name in names], np.int64)
        self._place = np.full(len(self.catalogue), -1, np.int64)
        self._place[self.active] = np.arange(len(names))

    @property
    def items(self) -> list[str]:
        return [self.catalogue[i] for i in self.active]

    @property
    def silence_counts(self) -> bool:
        """Whether no answer to a list that was seen means "no click", or a relevance of 0."""
        return self.ranker.feedback.kind == "clicks" or self.config.policy.silence == "zero"

    def names(self, decision: records.Decision) -> list[str]:
        """What was shown, by name, best first."""
        if decision.stored is not None:
            return list(map(self.stored.names.__getitem__, items_shown(decision).tolist()))
        known = self.catalogue if decision.candidates is None else decision.candidates
        return list(map(known.__getitem__, np.frombuffer(decision.shown, _SHOWN).tolist()))

    def current(self) -> list[str]:
        """The order that the ranker holds best now; empty where each request brings its own items."""
        if not self.has_items:
            return []
        return [self.catalogue[i] for i in self.active[self.ranker.current()]]

    def places(self, numbers: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int64]:
        """What items of the catalogue are called by the ranker now; -1 where they were retired."""
        return self._place[numbers]

    def fold(self, row: records.Row, related: RelatedRows) -> Outcome:
        """Take in the next row. Never fails: what cannot be used becomes a dead letter."""
        if row.seq != self.applied + 1:
            raise ValueError(f"rows must be folded in order: {self.applied} was the last, got {row.seq}")
        if self.applied and row.before != self.link:
            raise OtherHistory(row.seq)
        self.at = row.at
        if self.parked:
            self._bury_all(self.parked.give_up(row.at - self.config.policy.parking_seconds * 1000))
        if self.waiting.of:
            self._bury_all(self.waiting.give_up(row.at - self.config.policy.parking_seconds * 1000))
        outcome = self._handlers[row.kind](row, related)
        reach("after-learn")
        self.applied, self.link = row.seq, row.link
        return outcome

    def oldest_parked(self) -> int | None:
        """Since when the oldest feedback waits for its decision; None where none waits."""
        return min((there[0][1] for there in self.parked.values()), default=None)

    def _park(self, row: records.Row, related: RelatedRows) -> Outcome:
        self._bury_all(self.parked.add(row))
        related.early.setdefault(row.decision or "", []).append(row)
        return Outcome("parked")

    def _bury(self, row: records.Row, why: str) -> Outcome:
        self._bury_all([DeadLetter(row.seq, row.at, row.decision or "", why)])
        return Outcome("unknown")

    def _bury_all(self, letters: list[DeadLetter]) -> None:
        self.counts.dead += len(letters)
        self.dead.extend(letters)

    def _config(self, row: records.Row, related: RelatedRows) -> Outcome:
        return _ACCEPTED

    def _decision(self, row: records.Row, related: RelatedRows) -> Outcome:
        state = DecisionState.of(row, related.contents.get(row.seq))
        decision = state.decision
        related.states[row.event_id] = state
        self.recent.put(row.event_id, state)
        self.waiting.settle(row.event_id)
        self.counts.decisions += 1
        self.counts.explored += decision.explored
        if decision.trial is not None:
            self.trial.shown(decision)
        self.series.decided(row.seq, row.at, explored=decision.explored)
        self.item_counts.shown(decision, n_items=len(self.catalogue) or len(self.stored.names))
        if row.event_id in self.parked:
            waiting = {seq for seq, _ in self.parked.pop(row.event_id)}
            for early in related.early[row.event_id]:
                if early.seq in waiting:
                    self._answer(early, state, at=row.at)
        return _ACCEPTED

    def _activate(self, row: records.Row, related: RelatedRows) -> Outcome:
        state = related.states.get(row.decision or "")
        if state is None:
            return Outcome("unknown")
        outcome = state.activate()
        self.counts.activated += outcome.status == "accepted"
        return outcome

    def _feedback(self, row: records.Row, related: RelatedRows) -> Outcome:
        self.counts.feedback += 1
        self.waiting.done(row.decision or "", row.event_id)
        state = related.states.get(row.decision or "")
        if state is not None:
            return self._answer(row, state, at=row.at, answer=related.contents.get(row.seq))
        if self.config.policy.parking_seconds > 0:
            return self._park(row, related)
        return self._bury(row, "no such decision")

    def _answer(
        self, row: records.Row, state: DecisionState, *, at: int, answer: records.Answer | None = None
    ) -> Outcome:
        policy = self.policies.at(state.seq)
        outcome = state.feedback(row.digest, at=at, policy=policy, body=row.body, answer=answer)
        if outcome.status == "late":
            self.counts.late += 1
            self.series.was_late(row.seq, at)
        if state.heard and not (policy.collects or state.expired):
            self.gathering.setdefault(row.decision or "", at + round(policy.window * 1000))
        if not outcome.learns:
            return outcome
        answer = answer or records.read_body(row)
        values = np.frombuffer(answer.values, _FLOAT).astype(np.float64)
        return self._learn(outcome, row, state, values, at=at)

    def _learn(
        self,
        outcome: Outcome,
        row: records.Row,
        state: DecisionState,
        values: NDArray[np.float64],
        *,
        at: int,
    ) -> Outcome:
        decision = state.decision
        if decision.trial is not None:
            self.trial.answered(self.ranker, self.policies, decision, values)
        if self.frozen:
            return Outcome(outcome.status)
        delay = state.delay(row, at=at)
        try:
            before = self.ranker.exploration_block()
            learnt, ranking = guard_rails.learn(self, decision, values)
        except ValueError as error:
            # Checked before it was written, but for parked feedback, whose list was not there yet.
            return self._bury(row, str(error))
        if not learnt:
            if candidate_lists.is_chosen(decision):
                return Outcome("late")
            if delay is not None:
                self.series.heard(row.seq, at, delay=delay)
            return Outcome(outcome.status)
        self.rounds += 1
        self.counts.learnt += 1
        if ranking is not None:
            self.estimates.add(self.ranker, ranking, values, decision, before)
        elif candidate_lists.by_ranker(decision):
            self.estimates.add_part(values, self.ranker.exploration_block() != before)
        self.item_counts.observed(decision, values, n_items=len(self.catalogue) or len(self.stored.names))
        self.series.answered(row.seq, at, reward=_mean(values), delay=delay, estimate=self.estimates.points())
        return outcome

    def _expire(self, row: records.Row, related: RelatedRows) -> Outcome:
        self.expire_cursor = max(self.expire_cursor, records.read_body(row).decision_seq)
        self.gathering.pop(row.decision or "", None)
        state = related.states.get(row.decision or "")
        if state is None:
            return Outcome("unknown")
        outcome = state.expire(silence_counts=self.silence_counts)
        if outcome.status == "expired":
            self.counts.expired += 1
            self.series.has_expired(row.seq, row.at)
        if not outcome.learns:
            return outcome
        values = at_deadline(state, self.policies.at(state.seq), self.ranker)
        if values is None:
            return self._bury(row, "its feedback is of another length")
        return self._learn(outcome, row, state, values, at=row.at)

    def _items(self, row: records.Row, related: RelatedRows) -> Outcome:
        change = records.read_body(row)
        if not self.has_items:
            return self._attempt(lambda: self._store_features(change, row))
        names = changed(self.items, add=change.add, retire=change.retire)
        return self._attempt(lambda: self._carry_to(names, self.ranker, self.items, self.rounds))

    def _store_features(self, change: records.Items, row: records.Row) -> None:
        waits, _ = records.waiting_time([self.policies.first, *(one for _, _, one in self.policies.changes)])
        self.stored.change(change, self.ranker.n_features or 0, seq=row.seq, at=row.at, waits=waits)

    def _attempt(self, change: Callable[[], None]) -> Outcome:
        # Checked before it was written; another change may have come between, and then every replica refuses this one.
        try:
            change()
        except ValueError:
            return Outcome("conflict")
        return _ACCEPTED

    def _carry_to(self, names: list[str], known: Ranker, before: list[str], rounds: int) -> None:
        fresh = carried(known, self.config, before=before, names=names)
        self._set_active(names)
        self.ranker = fresh
        self.generation += 1
        self.estimates = Estimates.of(fresh, n_items=len(names), fresh=rounds == 0)

    def check_items(self, change: records.Items) -> None:
        """ValueError where this change of items cannot be made."""
        if not self.has_items:
            self.stored.check(change, self.ranker.n_features or 0)
            return
        check_change(self.items, add=change.add, retire=change.retire)
        names = changed(self.items, add=change.add, retire=change.retire)
        carried(self.ranker, self.config, before=self.items, names=names)

    def _promote(self, row: records.Row, related: RelatedRows) -> Outcome:
        body, comparison = records.read_body(row), comparison_of(self)
        if comparison is None:
            self.trial.promoted(row.seq, body.share)
        elif comparison.shown is not None and body.share == 0.0:
            return Outcome("conflict")  # it was stopped between the check of this call and its writing
        else:
            comparison.show(body.ranking)
        return _ACCEPTED

    def _freeze(self, row: records.Row, related: RelatedRows) -> Outcome:
        self.frozen = records.read_body(row).frozen
        return _ACCEPTED

    def _policy(self, row: records.Row, related: RelatedRows) -> Outcome:
        self.policies.change(row.seq, body := records.read_body(row))
        self.config = msgspec.structs.replace(self.config, policy=body.policy)
        return _ACCEPTED

    _import = history_import.take

    def _ubi(self, row: records.Row, related: RelatedRows) -> Outcome:
        if self.config.policy.parking_seconds <= 0:
            return self._bury(row, "no list of this search has it")
        self.waiting.add(row, records.read_body(row))
        return Outcome("parked")

    def _degraded(self, row: records.Row, related: RelatedRows) -> Outcome:
        self.counts.degraded += 1
        return _ACCEPTED

    def _conflict(self, row: records.Row, related: RelatedRows) -> Outcome:
        self.counts.conflicts += 1
        return Outcome("conflict")

    def _reset(self, row: records.Row, related: RelatedRows) -> Outcome:
        config = msgspec.structs.replace(records.read_body(row), policy=self.config.policy)
        if self.stored.n_columns > config.parameters.get("n_features", self.stored.n_columns):
            # Features were stored between the check of this change and its writing.
            return Outcome("conflict")
        check_same(config)
        self._begin(config)
        self.generation += 1
        self.frozen = False
        return _ACCEPTED

    def _upgrade(self, row: records.Row, related: RelatedRows) -> Outcome:
        body = records.read_body(row)
        if not body.saved and (self.config.probe or body.version != self.config.version):
            return Outcome("conflict")  # another process was quicker to say it
        config = msgspec.structs.replace(self.config, version=body.version, probe=body.probe)
        check_same(config)
        if body.saved:
            self._become(records.decode(Saved, body.saved))
            self.at = row.at
        self.config = config
        return _ACCEPTED

    def _rollback(self, row: records.Row, related: RelatedRows) -> Outcome:
        learnt = records.decode(records.Learnt, records.read_body(row).learnt)
        return self._attempt(lambda: self.take_over(learnt))

    def take_over(self, learnt: records.Learnt) -> None:
        """Know what was learnt then, about the items that are there now."""
        known = build(self.config, n_items=len(learnt.active))
        known.load({name: records.unpack(part) for name, part in learnt.arrays.items()})
        if learnt.active == self.items:
            self.ranker = known
            self.estimates = Estimates.of(known, n_items=len(self.active), fresh=learnt.rounds == 0)
        else:
            self._carry_to(self.items, known, learnt.active, learnt.rounds)
        self.rounds = learnt.rounds

    def learnt(self) -> records.Learnt:
        """What a rollback to here would bring back."""
        arrays = {name: records.pack(value) for name, value in sorted(self.ranker.state_arrays().items())}
        return records.Learnt(arrays, self.items, self.rounds)

    def state_hash(self) -> str:
        """Equal wherever the same log was folded as far."""
        parts: Any = [
            self.generation,
            self.frozen,
            sorted(self.parked.items()),
            msgspec.to_builtins(self.learnt(), builtin_types=(bytes,)),
        ]
        if self.trial.live is not None:
            parts.append(self.trial.live)
        if self.stored.digest:
            parts.append(self.stored.digest)
        if self.waiting.of:
            parts.append([(name, sorted(one.documents)) for name, one in self.waiting.of.items()])
        return hashlib.sha256(msgspec.msgpack.encode(parts, order="deterministic")).hexdigest()

    def save(self) -> Saved:
        return Saved(
            config=self.config,
            applied=self.applied,
            at=self.at,
            generation=self.generation,
            catalogue=self.catalogue,
            active=self.active.tolist(),
            learnt=self.learnt(),
            frozen=self.frozen,
            parked=dict(self.parked),
            dead=list(self.dead),
            counts=self.counts,
            expire_cursor=self.expire_cursor,
            series=self.series,
            estimates=self.estimates.save(),
            items=self.item_counts.save(),
            policies=(self.policies.first, self.policies.changes),
            trial=self.trial,
            stored=self.stored.save(),
            gathering=dict(self.gathering),
            waiting=self.waiting,
        )

    @classmethod
    def restore(cls, saved: Saved) -> Fold:
        """The fold that `save` wrote. Decisions are read again when they are needed."""
        fold = cls(saved.config)
        fold._become(saved)
        return fold

    def _become(self, saved: Saved) -> None:
        self.config = saved.config
        self.catalogue = list(saved.catalogue)
        self.number = {name: i for i, name in enumerate(self.catalogue)}
        self._set_active([self.catalogue[i] for i in saved.active])
        self.take_over(saved.learnt)
        self.applied, self.at, self.generation = saved.applied, saved.at, saved.generation
        self.frozen, self.expire_cursor = saved.frozen, saved.expire_cursor
        self.parked = Parked(saved.parked)
        self.stored = StoredFeatures.restore(saved.stored)
        self.dead = deque(saved.dead, maxlen=_DEAD_KEPT)
        self.counts, self.series = saved.counts, saved.series
        self.estimates = Estimates.restore(saved.estimates, self.ranker)
        self.item_counts = ItemCounts.restore(saved.items, applied=saved.applied)
        self.policies = records.PolicyHistory(*(saved.policies or (saved.config.policy, [])))
        self.trial = (saved.trial or TrialSums()).resumed(saved.applied)
        self.gathering = dict(saved.gathering)
        self.waiting = saved.waiting
        for one in self.waiting.of.values():
            one.tried = False


def at_deadline(state: DecisionState, policy: records.Policy, ranker: Ranker) -> NDArray[np.float64] | None:
    """What is learnt from a list when its deadline has passed: no click, or what several answers come to.

    Their sum is at most the largest grade. Answers of another length than the list's, which came before it, are left
    out; None where there are no others.
    """
    length = feedback_length(ranker, state.decision)
    if not state.heard:
        return np.zeros(length)
    for one, _ in state.heard:
        if len(one) == 8 * length:
            values = np.frombuffer(one, "<f8").astype(np.float64)
            if policy.answers == "sum" and ranker.max_grade is not None:
                return np.minimum(values, float(ranker.max_grade))
            return values
    return None


def _mean(values: NDArray[np.float64]) -> float:
    if len(values) == 1:
        return float(values[0])
    return float(np.add.reduce(values)) / len(values) if len(values) else 0.0


# Reading the rows of a log.


_END = 1 << 60
_AT_ONCE = 250  # rows folded before others get a turn


async def pages(
    store: Store, ranker: str, *, after: int = 0, through: int = _END, limit: int = 1_000
) -> AsyncIterator[list[records.Row]]:
    """The rows of a log after `after`, to its end or up to and with `through`."""
    while after < through:
        page = await store.read(ranker, after=after, limit=min(limit, through - after))
        page = [row for row in page if row.seq <= through]  # in a damaged log, numbers may be missing
        if not page:
            return
        after = page[-1].seq
        yield page


async def fold_through(fold: Fold, store: Store, ranker: str, last: int) -> None:
    """Fold the rows up to and with `last`, while others are served; `Damaged` where there are not so many."""
    async for page in pages(store, ranker, after=fold.applied, through=last, limit=_AT_ONCE):
        for row in page:
            check_row(row)
        await fold_rows(fold, store, ranker, page)
        await asyncio.sleep(0)
    if fold.applied < last:
        raise Damaged(f"row {fold.applied + 1} of {ranker!r} is missing")


async def fold_rows(
    fold: Fold,
    store: Store,
    ranker: str,
    rows: list[records.Row],
    *,
    contents: dict[int, Any] | None = None,
    outcomes: dict[int, Outcome] | None = None,
) -> None:
    """Fold the next rows of a log, which were checked.

    contents: by number of the row, what bodies were written from, as far as that is known. outcomes: gets what each row
    came to, but for decisions, which are always accepted.
    """
    related = await related_rows(fold, store, ranker, rows)
    related.contents = contents or {}
    for row in rows:
        if row.kind == "import":
            await history_import.learn_ahead(fold, row, related)
        outcome = fold.fold(row, related)
        if outcomes is not None and row.kind != "decision":
            outcomes[row.seq] = outcome


async def related_rows(fold: Fold, store: Store, ranker: str, new: list[records.Row]) -> RelatedRows:
    """Everything that folding `new` will ask for."""
    related = RelatedRows()
    if any(row.kind == "import" for row in new):
        await history_import.find_parts(store, ranker, new, related)
    wanted: dict[str, None] = {}
    for row in new:
        about = row.decision
        if row.kind == "decision" and fold.parked and row.event_id in fold.parked:
            about = row.event_id
        if about is not None:
            state = fold.recent.get(about)
            if state is None:
                # Feedback waits for this one, so it is not there yet: nothing to read.
                if row.kind == "decision" or about not in fold.parked:
                    wanted[about] = None
            else:
                related.states[about] = state
    if wanted:
        for about, story in (await store.stories(ranker, list(wanted))).items():
            for row in story:
                check_row(row)
            state = state_of(fold, story, through=fold.applied)
            if state is not None:
                related.states[about] = state
                fold.recent.put(about, state)
            related.early[about] = [
                row for row in story if row.kind == "feedback" and row.seq <= fold.applied
            ]
    return related


def state_of(
    fold: Fold, story: list[records.Row], *, through: int = _END, outcomes: dict[int, Outcome] | None = None
) -> DecisionState | None:
    """The state of a list of this ranker after row `through`; None where the list is not in its `story` by then."""
    return replay_decision(
        story, through=through, policy=fold.policies, silence_counts=fold.silence_counts, outcomes=outcomes
    )


class LearntRow(NamedTuple):
    """A row that a ranker was to learn from, feedback or a deadline, and the values by position."""

    row: records.Row
    values: NDArray[np.float64]


def learnt_rows(
    fold: Fold, story: list[records.Row], *, through: int = _END
) -> tuple[DecisionState | None, list[LearntRow]]:
    """The state of a list after row `through`, and the rows of its `story` up to there that were to be learnt from."""
    outcomes: dict[int, Outcome] = {}
    state = state_of(fold, story, through=through, outcomes=outcomes)
    found: list[LearntRow] = []
    if state is None:
        return None, found
    for row in story:
        if row.seq in outcomes and outcomes[row.seq].learns:
            if row.kind == "expire":
                values = at_deadline(state, fold.policies.at(state.seq), fold.ranker)
            else:
                values = np.frombuffer(records.read_body(row).values, "<f8")
            if values is not None:
                found.append(LearntRow(row, values))
    return state, found
