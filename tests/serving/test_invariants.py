"""Whatever happens in whatever order, on two replicas that crash and take the lease from each other: the invariants."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from rankloop.serving.admission import Conflict
from rankloop.serving.api import RankRequest
from rankloop.serving.log import records
from tests.serving.replicas import NAME, Replicas
from tests.serving.replicas_at_risk import ClickReplicasAtRisk, ReplicasAtRisk


@pytest.mark.parametrize("machine", [ReplicasAtRisk, ClickReplicasAtRisk])
def test_invariants(machine: type[Replicas]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_silence_after_a_list_was_seen_is_learnt_once() -> None:
    """Clicks: an activated decision that expires is a list without a click; an unactivated one is nothing."""
    machine = ClickReplicasAtRisk()
    machine.begin("ignore")
    try:
        for decision in ("d0", "d1", "d2"):
            machine.rank(0, decision)
        machine.activate(0, "d0")
        machine.activate(1, "d2")
        machine.feedback(1, "d2", 1.0, 0)
        before = machine.engines[1].rankers[NAME].fold.rounds
        machine.wait(25.0)
        machine.keep_house(0)
        machine.keep_house(1)
        machine.everything_holds()
        assert before == 1
        for engine in machine.engines:
            machine.run(engine.find(NAME))
        assert [engine.rankers[NAME].fold.rounds for engine in machine.engines] == [2, 2]
        log = machine.run(machine.store.read(NAME, after=0, limit=100))
        assert [row.decision for row in log if row.kind == "expire"] == ["d0", "d1"]
        assert records.read_body(log[-1]).decision_seq == 3
    finally:
        machine.teardown()


def test_a_conflict_is_refused_and_kept() -> None:
    machine = ReplicasAtRisk()
    machine.begin("ignore")
    try:
        machine.rank(0, "d0")
        with pytest.raises(Conflict):
            machine.run(machine.engines[1].rank(NAME, RankRequest("d0", context=1)))
        log = machine.run(machine.store.read(NAME, after=0, limit=100))
        assert [row.kind for row in log] == ["config", "decision", "conflict"]
        assert records.read_body(log[-1]).event_id == "d0"
        machine.everything_holds()
    finally:
        machine.teardown()


def test_an_answer_is_in_time_whatever_the_clock_is_set_to() -> None:
    machine = ReplicasAtRisk()
    machine.begin("ignore")
    try:
        for jump in (2 * 86_400.0, -4 * 86_400.0):
            decision = f"d{len(machine.lists)}"
            machine.rank(0, decision)
            machine.set_the_clock(jump)
            machine.restart(0)
            machine.keep_house(0)
            machine.wait(19.0)
            machine.feedback(0, decision, 1.0, 0)
        assert machine.engines[0].rankers[NAME].fold.counts.learnt == 2
        machine.everything_holds()
    finally:
        machine.teardown()
