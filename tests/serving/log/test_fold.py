"""The fold of a log: what each kind of row does to the state, in the order in which the rows came."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from rankloop.serving.admission import Conflict, NotFound
from rankloop.serving.api import (
    ActivateRequest,
    FreezeRequest,
    ResetRequest,
    RollbackRequest,
)
from rankloop.serving.log import records
from rankloop.serving.log.decision_state import RelatedRows
from rankloop.serving.log.fold import Fold, Saved
from rankloop.serving.log.records import Answer, Config, Decision, Freeze, Items, Row
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


def _config(**more: Any) -> Config:
    return Config("FTPL", 1, ["a", "b"], **more)


def _rows(*bodies: tuple[str, str, Any, str | None]) -> list[Row]:
    """Rows in order: kind, event id, body, and the decision that it is about."""
    rows = []
    for i, (kind, event_id, body, decision) in enumerate(bodies):
        data = b"" if body is None else records.encode(body)
        rows.append(Row(i + 1, 1_000 * i, kind, event_id, data, data, decision))  # type: ignore[arg-type]
    return rows


def _decision(fold: Fold, *items: int, generation: int = 0) -> Decision:
    return Decision(fold.applied, generation, np.array(items, "<i4").tobytes(), b"k" * 16, 1 << 40, False)


def _answer(*values: float) -> Answer:
    return Answer("relevance", np.array(values).astype("<f8").tobytes())


def test_the_state_is_made_of_the_rows_alone() -> None:
    """The same rows, in one go or through a snapshot after each, come to the same state."""
    first = Fold(_config())
    rows = _rows(
        ("config", "r", _config(), None),
        ("decision", "d1", _decision(first, 1, 0), None),
        ("feedback", "d1", _answer(1.0, 0.0), "d1"),
        ("feedback", "d2", _answer(0.0, 1.0), "d2"),
        ("decision", "d2", _decision(first, 0, 1), None),
        ("items", "i", Items(["c"], ["a"]), None),
        ("freeze", "f", Freeze(True), None),
        ("decision", "d3", _decision(first, 1, 2, generation=1), None),
        ("feedback", "d3", _answer(1.0, 1.0), "d3"),
    )
    related = RelatedRows()
    outcomes = [first.fold(row, related) for row in rows]
    assert [one.status for one in outcomes] == [
        "accepted",
        "accepted",
        "accepted",
        "parked",
        "accepted",
        "accepted",
        "accepted",
        "accepted",
        "accepted",
    ]
    assert (first.rounds, first.counts.learnt, first.frozen) == (2, 2, True)
    assert first.items == ["b", "c"]
    assert first.ranker.state.r_sum.tolist() == [2.0, 2.0]  # b was liked twice, c begins level with the best
    second, related = Fold(_config()), RelatedRows()
    for row in rows:
        second.fold(row, related)
        second = Fold.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(second.save()), type=Saved))
    assert second.state_hash() == first.state_hash()
    assert second.estimates.report() == first.estimates.report()


def test_rows_are_folded_in_order() -> None:
    fold = Fold(_config())
    rows = _rows(("config", "r", _config(), None), ("freeze", "f", Freeze(True), None))
    with pytest.raises(ValueError, match="0 was the last, got 2"):
        fold.fold(rows[1], RelatedRows())
    fold.fold(rows[0], RelatedRows())
    fold.fold(rows[1], RelatedRows())
    assert fold.frozen


def test_a_change_that_cannot_be_made_any_more_is_a_conflict_and_changes_nothing() -> None:
    fold = Fold(_config())
    rows = _rows(("config", "r", _config(), None), ("items", "i", Items([], ["a", "b"]), None))
    fold.fold(rows[0], RelatedRows())
    before = fold.state_hash()
    assert fold.fold(rows[1], RelatedRows()).status == "conflict"
    assert (fold.state_hash(), fold.items) == (before, ["a", "b"])


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (Config("FTPL", 1), "FTPL needs items"),
        (Config("ListNet", 1, ["a"], {"n_features": 1}), "ListNet takes items with their features"),
    ],
)
def test_items_are_given_to_those_who_have_items(config: Config, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Fold(config)
