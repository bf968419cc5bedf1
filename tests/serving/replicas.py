"""Two replicas on one store, and clients that ask them in whatever order: the rules of the game, and what must hold."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rankloop.serving.admission import NotFound, RequestError
from rankloop.serving.api import (
    ActivateRequest,
    EventAnswer,
    FeedbackRequest,
    FreezeRequest,
    ItemsRequest,
    PolicyRequest,
    PromoteRequest,
    RankRequest,
    RollbackRequest,
)
from rankloop.serving.clock import LogClock
from rankloop.serving.engine import Engine
from rankloop.serving.log.guard_rails import bound_of
from rankloop.serving.log.records import ABOUT_LISTS, Row, read_decision
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import Fenced
from tests.serving.service import ITEMS, Clock, create
from tests.serving.shared_store import SharedStore

NAME = "unwind"


DECISIONS = st.sampled_from([f"d{i}" for i in range(6)])
REPLICAS = st.integers(0, 1)
CHANGES: list[dict[str, Any]] = [
    {"exploration_cap": 0.0},
    {"exploration_cap": 0.5},
    {"exploration_cap": 1.0, "late": "learn"},
    {"displacement": 1},
    {"displacement": 2, "exploration_cap": 0.5},
    {"displacement": 0, "late": "ignore"},
    {"holdout": 0.5},
    {"holdout": 0.0, "deadline_seconds": 12.0},
]


class Replicas(RuleBasedStateMachine):
    """Two services on one store, a clock, and a client that retries."""

    algorithm = "RTop1F"
    form = "relevance"

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock, self.steady = Clock(), Clock()
        self.store = SharedStore(LogClock(self.clock, self.steady))
        self.engines: list[Engine] = []
        self.acknowledged: dict[tuple[str, str], int] = {}
        self.lists: dict[str, list[str]] = {}
        self.requests: dict[str, RankRequest] = {}
        self.next_id = 0
        self.began = self.steady.seconds

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 300))

    async def _start(self) -> Engine:
        engine = Engine(
            self.store, clock=self.clock, steady=self.steady, housekeeping=False, keep_snapshots=3
        )
        await engine.open()
        with contextlib.suppress(RequestError):  # it is not made yet, or cannot be served
            await engine.find(NAME)
        return engine

    @initialize(policy=st.sampled_from(["ignore", "learn"]))
    def begin(self, policy: str) -> None:
        async def start() -> None:
            self.engines = [await self._start()]
            given = {"deadline_seconds": 20, "parking_seconds": 5, "late": policy}
            parameters = {"n_positions": 2} if self.algorithm == "FTRLPBM" else {}
            await create(self.engines[0], algorithm=self.algorithm, policy=given, parameters=parameters)
            self.engines.append(await self._start())

        self.run(start())

    def teardown(self) -> None:
        for engine in self.engines:
            self.run(engine.close())
        self.loop.close()

    def acknowledge(self, kind: str, event_id: str, answer: EventAnswer) -> None:
        before = self.acknowledged.setdefault((kind, event_id), answer.seq)
        assert before == answer.seq, f"{kind} {event_id} was row {before}, now it is {answer.seq}"

    def request(self, replica: int, decision: str) -> RankRequest:
        """The request for a list, the same at every retry: half leave an item out, half bring a baseline."""
        if decision not in self.requests:
            # The other one tells what there is: who is to rank need not know yet.
            told = self.run(self.engines[1 - replica].find(NAME))
            exclude = ["tea"] if decision >= "d3" else []
            own = told.fold.items[::-1]
            self.requests[decision] = RankRequest(
                decision, exclude=exclude, baseline=own if decision in {"d1", "d3", "d5"} else None
            )
        return self.requests[decision]

    @rule(replica=REPLICAS, decision=DECISIONS)
    def rank(self, replica: int, decision: str) -> None:
        request = self.request(replica, decision)
        try:
            answer = self.run(self.engines[replica].rank(NAME, request))
        except RequestError as error:
            # Without a baseline where displacements are bounded, or with one that no longer fills the list.
            if error.field != "baseline":
                raise
            return
        before = self.lists.setdefault(decision, answer.items)
        assert before == answer.items, "a retry drew another list"
        self.check_bound(replica, request, answer.items)

    def check_bound(self, replica: int, request: RankRequest, shown: list[str]) -> None:
        """No item stands further from its place in the baseline than the policy allowed when the list was drawn."""
        fold = self.engines[replica].rankers[NAME].fold
        story = self.run(self.store.stories(NAME, [request.decision_id or ""]))[request.decision_id]
        row = next(row for row in story if row.kind == "decision")
        bound = bound_of(fold.policies.at(read_decision(row.body).model_seq + 1))
        if not bound or set(request.baseline or ()) != set(fold.items):
            return
        own = [name for name in request.baseline or () if name not in request.exclude]
        assert all(abs(own.index(name) - j) <= bound for j, name in enumerate(shown))

    @rule(replica=REPLICAS, change=st.sampled_from(CHANGES))
    def change_policy(self, replica: int, change: dict[str, Any]) -> None:
        """Guard rails, holdout and deadline change; the same change again changes nothing."""
        engine = self.engines[replica]
        self.next_id += 1
        request = PolicyRequest(event_id=f"c{self.next_id}", **change)
        answer = self.run(engine.change_policy(NAME, request))
        number = str(len(engine.rankers[NAME].fold.policies.changes))
        self.acknowledge("policy", number, answer)
        again = self.run(engine.change_policy(NAME, request))
        assert (again.status, again.seq) == ("duplicate", answer.seq)

    @rule(replica=REPLICAS, decision=DECISIONS, value=st.sampled_from([0.0, 1.0]), event=st.integers(0, 2))
    def feedback(self, replica: int, decision: str, value: float, event: int) -> None:
        """Event 0 has no id of its own; the same event again is a duplicate; another value is a conflict."""
        event_id = None if event == 0 else f"{decision}-e{event}"
        values = [value] * (1 if self.form == "relevance" else 2)
        request = FeedbackRequest(decision, event_id, **{self.form: values})
        answer = self.run(self.engines[replica].feedback(NAME, [request]))[0]
        if answer.status != "conflict":
            self.acknowledge("feedback", event_id or decision, answer)

    @rule(decision=DECISIONS, value=st.sampled_from([0.0, 1.0]))
    def both_at_once(self, decision: str, value: float) -> None:
        """The same feedback reaches both replicas at the same moment."""
        values = [value] * (1 if self.form == "relevance" else 2)
        request = FeedbackRequest(decision, f"{decision}-twin", **{self.form: values})

        async def send() -> Any:
            return await asyncio.gather(*(engine.feedback(NAME, [request]) for engine in self.engines))

        for (answer,) in self.run(send()):
            if answer.status != "conflict":
                self.acknowledge("feedback", f"{decision}-twin", answer)

    @rule(replica=REPLICAS, decision=DECISIONS)
    def activate(self, replica: int, decision: str) -> None:
        try:
            answer = self.run(self.engines[replica].activate(NAME, ActivateRequest(decision)))
        except NotFound:
            assert decision not in self.lists
            return
        self.acknowledge("activate", decision, answer)

    @rule(seconds=st.sampled_from([1.0, 4.0, 6.0, 25.0]))
    def wait(self, seconds: float) -> None:
        self.clock.seconds += seconds
        self.steady.seconds += seconds

    @rule(replica=REPLICAS)
    def keep_house(self, replica: int) -> None:
        """Take the lease if it is free, and expire what is due. Who lost the lease writes nothing."""
        self.run(self.engines[replica].housekeeping.take_in_news())
        self.run(self.engines[replica].housekeeping.tick())

    @rule(replica=REPLICAS)
    def write_with_a_stale_epoch(self, replica: int) -> None:
        """The other one takes the lease while this one sleeps; then this one wakes up and writes."""
        for engine in self.engines:
            self.run(engine.find(NAME))
        sleeper, other = self.engines[replica].housekeeping, self.engines[1 - replica].housekeeping
        self.run(sleeper.hold_leases())
        self.wait(6.0)
        self.run(other.hold_leases())
        if NAME not in sleeper.epochs:
            return
        assert sleeper.epochs[NAME] < other.epochs[NAME]
        before = self.run(self.store.last_seq(NAME)), self.run(self.store.snapshots(NAME))
        self.wait(30.0)
        with pytest.raises(Fenced):
            self.run(sleeper.snapshot(self.engines[replica].rankers[NAME]))
        with contextlib.suppress(Fenced):
            self.run(sleeper.expire(self.engines[replica].rankers[NAME]))
        assert before == (self.run(self.store.last_seq(NAME)), self.run(self.store.snapshots(NAME)))

    @rule(replica=REPLICAS)
    def snapshot(self, replica: int) -> None:
        self.run(self.engines[replica].snapshot(NAME))
        assert NAME in self.engines[replica].housekeeping.epochs

    @rule(replica=REPLICAS, frozen=st.booleans())
    def freeze(self, replica: int, frozen: bool) -> None:
        self.next_id += 1
        answer = self.run(self.engines[replica].freeze(NAME, FreezeRequest(frozen, f"f{self.next_id}")))
        self.acknowledge("freeze", f"f{self.next_id}", answer)

    @rule(replica=REPLICAS, share=st.sampled_from([0.0, 1.0]))
    def promote(self, replica: int, share: float) -> None:
        self.next_id += 1
        answer = self.run(self.engines[replica].promote(NAME, PromoteRequest(share, f"p{self.next_id}")))
        self.acknowledge("promote", f"p{self.next_id}", answer)

    @rule(replica=REPLICAS)
    def rollback(self, replica: int) -> None:
        there = self.run(self.store.snapshots(NAME))
        if there:
            self.next_id += 1
            request = RollbackRequest(there[0].seq, f"r{self.next_id}")
            answer = self.run(self.engines[replica].rollback(NAME, request))
            self.acknowledge("rollback", f"r{self.next_id}", answer)

    @rule(replica=REPLICAS, item=st.sampled_from([*ITEMS, "swim", "cook"]))
    def change_items(self, replica: int, item: str) -> None:
        self.run(self.engines[replica].find(NAME))
        there = self.engines[replica].rankers[NAME].fold.items
        self.next_id += 1
        request = ItemsRequest([], [item]) if item in there else ItemsRequest([item], [])
        request = ItemsRequest(request.add, request.retire, f"i{self.next_id}")
        if len(there) > 3 or request.add:
            answer = self.run(self.engines[replica].change_items(NAME, request))
            self.acknowledge("items", f"i{self.next_id}", answer)

    async def _restart(self, replica: int) -> None:
        self.engines[replica] = await self._start()

    @rule(replica=REPLICAS)
    def restart(self, replica: int) -> None:
        self.run(self.engines[replica].close())
        self.run(self._restart(replica))

    @invariant()
    def everything_holds(self) -> None:
        if not self.engines:
            return
        log = self.run(self.store.read(NAME, after=0, limit=10_000))
        there = Counter((row.kind, row.event_id) for row in log)
        # every acknowledged event is in the log exactly once
        assert all(count == 1 for count in there.values())
        seqs = {(row.kind, row.event_id): row.seq for row in log}
        for event, seq in self.acknowledged.items():
            assert seqs[event] == seq
        assert all(("decision", decision) in there for decision in self.lists)
        # no gaps
        assert [row.seq for row in log] == list(range(1, len(log) + 1))
        # time never falls, and passes no faster than it does
        times = [row.at for row in log]
        assert times == sorted(times)
        assert times[-1] - times[0] <= 1000 * (self.steady.seconds - self.began)
        # no list is from before a change of the ranker that was told by then, whichever replica made it
        changed = 0
        for row in log:
            if row.kind == "decision":
                assert read_decision(row.body).model_seq >= changed
            elif row.kind not in ABOUT_LISTS:
                changed = row.seq
        # the live state is the replay from zero and from any snapshot, on every replica; and every decision can be
        # drawn again from (model_seq, key)
        verdict = self.run(verify(self.store, NAME))
        assert verdict.holds, verdict.problems
        for number, engine in enumerate(self.engines):
            if (len(log) + number) % 3:
                continue  # so that most steps meet a replica that is behind
            self.run(engine.find(NAME))
            fold = engine.rankers[NAME].fold
            assert fold.state_hash() == verdict.state_hash
            # learnt once for each event that can be learnt from
            assert fold.counts.learnt <= learnable(log, self.form)

    @invariant()
    def expiry_of_what_was_never_seen_changes_nothing(self) -> None:
        if self.engines:
            log = self.run(self.store.read(NAME, after=0, limit=10_000))
            activated = {row.decision for row in log if row.kind == "activate"}
            outcomes = self.engines[0].rankers[NAME]._outcomes
            for row in log:
                if row.kind == "expire" and (row.decision not in activated or self.form == "relevance"):
                    assert not outcomes.get(row.seq, (None, False))[1]


def learnable(log: list[Row], form: str) -> int:
    """How many rounds could be learnt at most: decisions with an answer, or seen and expired."""
    decisions = {row.event_id for row in log if row.kind == "decision"}
    answered = {row.decision for row in log if row.kind == "feedback"} & decisions
    seen = {row.decision for row in log if row.kind == "activate"}
    expired = {row.decision for row in log if row.kind == "expire"}
    return len(answered | (seen & expired if form == "clicks" else set()))
