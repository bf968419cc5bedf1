"""The same two replicas when things go wrong: crashes, damage, lost rows, clocks that are set, code that changes."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from rankloop.serving import registry
from rankloop.serving.admission import Unavailable
from rankloop.serving.api import FreezeRequest, RankRequest
from rankloop.serving.log.snapshots import upgrade
from rankloop.serving.log.verify import verify
from tests.serving.replicas import DECISIONS, NAME, REPLICAS, Replicas
from tests.serving.shared_store import Crash

DAY = 86_400.0


class ReplicasAtRisk(Replicas):
    """What nobody asks for, and what the replicas must notice, name, and get over."""

    @rule(jump=st.sampled_from([-2 * DAY, -90.0, 90.0, 2 * DAY]))
    def set_the_clock(self, jump: float) -> None:
        """Somebody sets the clock. What is in time stays in time, and nothing expires sooner."""
        self.clock.seconds += jump

    @rule(replica=REPLICAS, when=st.sampled_from(["before", "after"]), decision=DECISIONS)
    def crash_while_ranking(self, replica: int, when: str, decision: str) -> None:
        """The process dies before or after its batch is durable; the client asks the next one again."""
        request = self.request(replica, decision)
        self.store.crash = when

        async def crash() -> None:
            asking = asyncio.create_task(self.engines[replica].rank(NAME, request))
            dying = self.engines[replica].commit._task
            assert dying is not None
            await asyncio.wait([asking, dying], return_when=asyncio.FIRST_COMPLETED, timeout=5)
            if asking.done() and getattr(asking.exception(), "field", None) == "baseline":
                return  # refused before anything was written
            if dying.done():
                dying.exception()
            asking.cancel()
            self.engines[replica] = await self._start()

        try:
            self.run(crash())
        except Crash:
            self.run(self._restart(replica))
        self.store.crash = None
        self.rank(replica, decision)

    @rule(replica=REPLICAS, bit=st.integers(0, 7), place=st.floats(0, 1))
    def corrupt_a_row_and_restart(self, replica: int, bit: int, place: float) -> None:
        """A bit of a row flips: `verify` names the row, and a start from it is quarantined. Then it is put right."""
        log = self.store._logs[NAME]
        row = log[int(place * (len(log) - 1))]
        if not row.body:
            return
        damaged = bytearray(row.body)
        damaged[int(place * (len(damaged) - 1))] ^= 1 << bit
        self.store.swap(NAME, row, msgspec.structs.replace(row, body=bytes(damaged)))
        verdict = self.run(verify(self.store, NAME))
        assert f"row {row.seq} is not what was written: its digest differs" in verdict.problems
        self.run(self.engines[replica].close())
        self.run(self._restart(replica))
        if NAME not in self.engines[replica].rankers:
            assert self.engines[replica].loaded.absent[NAME].status == "quarantined"
            with pytest.raises(Unavailable, match="is quarantined"):
                self.run(self.engines[replica].rank(NAME, RankRequest("never drawn")))
        self.store.swap(NAME, self.store._logs[NAME][row.seq - 1], row)
        self.run(self._restart(replica))

    @rule(replica=REPLICAS)
    def damage_a_snapshot_and_restart(self, replica: int) -> None:
        """The newest snapshot is not what was written: an older one is taken, or the log."""
        kept = self.store._snapshots.get(NAME, [])
        if not kept:
            return
        whole = kept[-1]
        kept[-1] = msgspec.structs.replace(whole, state=whole.state[:-1] + b"\xff")
        self.run(self.engines[replica].close())
        self.run(self._restart(replica))
        assert self.engines[replica].rankers[NAME].snapshot_seq < whole.seq
        kept[-1] = whole

    @rule(n=st.integers(1, 3))
    def lose_the_end_of_the_log(self, n: int) -> None:
        """Rows that nobody was told of vanish under both replicas, which notice and fold the log anew."""
        log = self.store._logs[NAME]
        told = {*self.acknowledged, *(("decision", decision) for decision in self.lists)}
        lost = log[-n:]
        newest = max([one.seq for one in self.store._snapshots.get(NAME, [])], default=0)
        if len(log) <= n or any(
            (row.kind, row.event_id) in told or row.kind == "upgrade" or row.seq <= newest for row in lost
        ):
            return
        self.store.forget(NAME, lost)
        for engine in self.engines:
            self.run(engine.loaded.follow(NAME))
            assert engine.rankers[NAME].fold.applied == len(log)

    @rule(replica=REPLICAS)
    def upgrade(self, replica: int) -> None:
        """Code of another arithmetic goes on with the log; a replica of the old one learns no more, and is replaced."""
        other = f"{self.next_id:012x}"
        self.next_id += 1
        if not self.run(self.store.snapshots(NAME)):
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry, "_probe", lambda kind, packed: other)
            self.run(upgrade(self.store, NAME, at=int(self.clock.seconds * 1000)))
        self.run(self.engines[replica].loaded.follow(NAME))
        assert self.engines[replica].rankers[NAME].read_only
        with pytest.raises(Unavailable, match="read-only"):
            self.run(self.engines[replica].freeze(NAME, FreezeRequest(True, "never")))
        # Back to the code that the other steps are played with.
        self.run(upgrade(self.store, NAME, at=int(self.clock.seconds * 1000)))
        for one in (0, 1):
            self.run(self.engines[one].close())
            self.run(self._restart(one))


class ClickReplicasAtRisk(ReplicasAtRisk):
    """The same with a ranker that learns from clicks, and so from silence too."""

    algorithm = "FTRLPBM"
    form = "clicks"
