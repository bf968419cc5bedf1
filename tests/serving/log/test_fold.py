"""The fold of a log: what each kind of row does to the state, in the order in which the rows came."""

from __future__ import annotations

import pytest

from rankloop.serving.errors import Conflict, NotFound
from rankloop.serving.schemas import (
    ActivateRequest,
    FreezeRequest,
    ResetRequest,
    RollbackRequest,
)
from tests.serving.service import Clock, adds_up, answer, create, play, rank, rounds, running


def test_feedback_before_its_decision_waits_for_it() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, policy={"parking_seconds": 10})
            assert (await answer(engine, "d1")).status == "parked"
            assert engine.rankers["unwind"].fold.rounds == 0
            clock.seconds += 10
            await rank(engine, "d1")
            assert engine.rankers["unwind"].fold.rounds == 1
            assert (await answer(engine, "d1")).status == "duplicate"
            assert (await answer(engine, "d2")).status == "parked"
            clock.seconds += 10.1
            await rank(engine, "d2")  # too late: the answer has gone to the dead letters
            fold = engine.rankers["unwind"].fold
            assert (fold.rounds, fold.counts.dead, fold.dead[0].decision) == (1, 1, "d2")
            await adds_up(engine)

    play(story)


def test_without_parking_it_is_unknown() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, policy={"parking_seconds": 0})
            assert (await answer(engine, "nobody")).status == "unknown"
            assert [letter.decision for letter in engine.rankers["unwind"].fold.dead] == ["nobody"]

    play(story)


@pytest.mark.parametrize(("policy", "rounds"), [("ignore", 0), ("learn", 1)])
def test_late_feedback_is_logged_and_learnt_only_by_policy(policy: str, rounds: int) -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, policy={"deadline_seconds": 5, "late": policy})
            await rank(engine, "d1")
            clock.seconds += 5.001
            told = await answer(engine, "d1")
            assert (told.status, told.learnt) == ("late", bool(rounds))
            assert engine.rankers["unwind"].fold.rounds == rounds
            await adds_up(engine)

    play(story)


def test_expiry_of_an_unseen_relevance_changes_nothing() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, policy={"deadline_seconds": 5})
            for decision in ("d1", "d2", "d3"):
                await rank(engine, decision)
            await engine.activate("unwind", ActivateRequest("d1"))
            await answer(engine, "d3")
            state = engine.rankers["unwind"].fold.learnt()
            clock.seconds += 6
            served = engine.rankers["unwind"]
            assert await engine.housekeeping.expire(served) == 2
            assert await engine.housekeeping.expire(served) == 0
            assert served.fold.learnt() == state
            assert (await answer(engine, "d1")).status == "late"
            await adds_up(engine)

    play(story)


def test_a_frozen_ranker_logs_and_does_not_learn() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await engine.freeze("unwind", FreezeRequest(True))
            await rank(engine, "d1")
            told = await answer(engine, "d1")
            assert (told.status, told.learnt) == ("accepted", False)
            assert engine.rankers["unwind"].fold.rounds == 0
            await engine.freeze("unwind", FreezeRequest(False))
            await rank(engine, "d2")
            assert (await answer(engine, "d2")).learnt
            await adds_up(engine)

    play(story)


def test_rollback_brings_back_what_was_known() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rounds(engine, 30)
            seq = await engine.snapshot("unwind")
            then = engine.rankers["unwind"].fold.learnt()
            await rounds(engine, 30, first=30)
            assert engine.rankers["unwind"].fold.learnt() != then
            assert (await engine.rollback("unwind", RollbackRequest(seq, "r1"))).status == "accepted"
            assert engine.rankers["unwind"].fold.learnt() == then
            assert (await engine.rollback("unwind", RollbackRequest(seq, "r1"))).status == "duplicate"
            await rounds(engine, 10, first=60)
            with pytest.raises(NotFound):
                await engine.rollback("unwind", RollbackRequest(seq + 1))
            await adds_up(engine)

    play(story)


def test_reset_begins_anew_and_keeps_the_log() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rounds(engine, 10)
            seq = await engine.snapshot("unwind")
            await engine.reset("unwind", ResetRequest(parameters={"measure": "sum_loss"}))
            assert engine.rankers["unwind"].fold.rounds == 0
            await rounds(engine, 5, first=10)
            with pytest.raises(Conflict):
                await engine.rollback("unwind", RollbackRequest(seq))
            await adds_up(engine)

    play(story)


def test_a_parked_answer_that_does_not_fit_is_a_dead_letter() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            assert (await answer(engine, "d1", relevance=[1.0, 1.0])).status == "parked"
            await rank(engine, "d1")
            fold = engine.rankers["unwind"].fold
            assert (fold.rounds, fold.counts.dead) == (0, 1)
            await adds_up(engine)

    play(story)
