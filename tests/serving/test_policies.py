"""Several answers to one list, by policy; and policies that change while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rankloop.serving.admission import RequestError
from rankloop.serving.api import ActivateRequest, FeedbackRequest, PolicyRequest, ResetRequest
from rankloop.serving.http.app import App
from rankloop.serving.log import records
from rankloop.serving.log.export import answered_lists
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.records import Config, Policy, PolicyHistory, waiting_time
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.in_process import ask
from tests.serving.memory_store import MemoryStore
from tests.serving.service import Clock, adds_up, answer, create, play, rank, running

CLICKS: dict[str, Any] = {"algorithm": "FTRLPBM", "parameters": {"n_positions": 3}}


async def _click(engine: Any, decision: str, values: list[float], event: str | None = None) -> Any:
    return (await engine.feedback("unwind", [FeedbackRequest(decision, event, clicks=values)]))[0]


async def _learnt(engine: Any) -> list[list[float]]:
    return [one.values.tolist() async for one in answered_lists(engine.store, "unwind")]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [("last", [0.0, 0.0, 1.0]), ("union", [1.0, 0.0, 1.0])],
)
def test_clicks_are_gathered_until_the_deadline(answers: str, expected: list[float], tmp_path: Path) -> None:
    async def story() -> None:
        clock, store = Clock(), SQLiteStore(tmp_path)
        async with running(store, clock=clock) as engine:
            await create(engine, **CLICKS, policy={"deadline_seconds": 60, "answers": answers})
            fold = engine.rankers["unwind"].fold
            await rank(engine, "a")
            first = await _click(engine, "a", [1.0, 0.0, 0.0])
            assert (first.status, first.learnt) == ("accepted", False)
            assert (await _click(engine, "a", [1.0, 0.0, 0.0])).status == "duplicate"
            clock.seconds += 30
            assert (await _click(engine, "a", [0.0, 0.0, 1.0])).status == "accepted"
            assert fold.rounds == 0
            fold.recent.clear()  # the list is read from the log again
            clock.seconds += 31
            assert (await _click(engine, "a", [0.0, 1.0, 0.0], "too late")).status == "late"
            assert await engine.housekeeping.expire(engine.rankers["unwind"]) == 1
            assert (fold.rounds, fold.counts.expired) == (1, 0)
            assert fold.series.n_answers() == 1
            assert fold.series.buckets[-1].delay == 30.0
            assert (await _click(engine, "a", [0.0, 1.0, 0.0], "later")).status == "late"
            assert await _learnt(engine) == [expected]
            sums = [fold.item_counts.of(fold.number[name])[2] for name in (await _shown(engine, "a"))]
            assert sums == expected
            assert await engine.housekeeping.expire(engine.rankers["unwind"]) == 0
            await adds_up(engine)
            status, told = await ask(App(engine), "GET", "/v1/rankers/unwind/decisions/a")
            assert (status, told["answered"], told["expired"]) == (200, True, True)
            await engine.snapshot("unwind")
            state = fold.state_hash()
        async with running(SQLiteStore(tmp_path), clock=clock) as engine:
            assert engine.rankers["unwind"].fold.state_hash() == state
            await adds_up(engine)

    play(story)


async def _shown(engine: Any, decision: str) -> list[str]:
    _, told = await ask(App(engine), "GET", f"/v1/rankers/unwind/decisions/{decision}")
    items: list[str] = told["items"]
    return items


def test_a_union_is_learnt_as_one_answer_would_be() -> None:
    async def state(answers: str, *clicks: list[float]) -> str:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, **CLICKS, policy={"deadline_seconds": 60, "answers": answers})
            await rank(engine, "a")
            for i, one in enumerate(clicks):
                await _click(engine, "a", one, f"event {i}")
            clock.seconds += 61
            await engine.housekeeping.expire(engine.rankers["unwind"])
            assert engine.rankers["unwind"].fold.rounds == 1
            await adds_up(engine)
            return engine.rankers["unwind"].fold.state_hash()

    async def story() -> None:
        whole = await state("first", [1.0, 0.0, 1.0])
        assert await state("union", [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]) == whole
        assert await state("last", [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]) == whole
        assert await state("union", [1.0, 0.0, 0.0]) != whole

    play(story)


def test_relevance_is_added_up_to_the_largest_grade() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, policy={"deadline_seconds": 60, "answers": "sum"})
            await rank(engine, "a")
            with pytest.raises(RequestError, match="needs an event_id"):
                await answer(engine, "a", 0.25)
            for i in range(3):
                told = await answer(engine, "a", 0.25, event_id=f"event {i}")
                assert told.status == "accepted"
            assert (await answer(engine, "a", 0.25, event_id="event 0")).duplicate  # sent again
            clock.seconds += 61
            await engine.housekeeping.expire(engine.rankers["unwind"])
            assert await _learnt(engine) == [[0.75]]
            await adds_up(engine)

    play(story)


def test_feedback_before_its_list_is_gathered_too() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, **CLICKS, policy={"deadline_seconds": 60, "answers": "union"})
            assert (await _click(engine, "a", [1.0, 0.0, 0.0])).status == "parked"
            assert (await _click(engine, "a", [1.0, 1.0])).status == "parked"  # of another length
            await rank(engine, "a")
            await _click(engine, "a", [0.0, 0.0, 1.0])
            assert (await _click(engine, "b", [1.0, 1.0])).status == "parked"
            await rank(engine, "b")
            clock.seconds += 61
            assert await engine.housekeeping.expire(engine.rankers["unwind"]) == 2
            fold = engine.rankers["unwind"].fold
            assert await _learnt(engine) == [[1.0, 0.0, 1.0]]
            assert (fold.rounds, fold.counts.dead) == (1, 1)
            await adds_up(engine)

    play(story)


def test_silence_on_a_list_that_was_seen_still_counts() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, **CLICKS, policy={"deadline_seconds": 60, "answers": "union"})
            await rank(engine, "a")
            await rank(engine, "b")
            await engine.activate("unwind", ActivateRequest("a"))
            clock.seconds += 61
            assert await engine.housekeeping.expire(engine.rankers["unwind"]) == 2
            fold = engine.rankers["unwind"].fold
            assert (fold.rounds, fold.counts.expired, fold.series.n_answers()) == (1, 2, 0)
            await adds_up(engine)

    play(story)


def test_adding_up_clicks_is_refused() -> None:
    config = Config("FTRLPBM", 1, ["a", "b"], {}, Policy(answers="sum"))
    with pytest.raises(ValueError, match=r"policy\.answers must be first, last or union"):
        Fold(config)


def test_a_policy_counts_for_lists_from_then_on() -> None:
    async def story() -> None:
        clock, store = Clock(), MemoryStore()
        async with running(store, clock=clock) as engine:
            await create(engine, **CLICKS, policy={"deadline_seconds": 60})
            await rank(engine, "old")
            changed = await engine.change_policy(
                "unwind",
                PolicyRequest(deadline_seconds=10.0, late="learn", answers="union", event_id="c"),
            )
            assert (changed.status, changed.seq) == ("accepted", 3)
            fold = engine.rankers["unwind"].fold
            assert (fold.config.policy.late, fold.config.policy.parking_seconds) == ("learn", 60.0)
            await rank(engine, "new")
            assert (await _click(engine, "old", [1.0, 0.0, 0.0])).learnt  # the first answer, at once
            assert not (await _click(engine, "new", [1.0, 0.0, 0.0])).learnt
            assert (await _click(engine, "old", [0.0, 1.0, 0.0], "other")).status == "conflict"
            assert (await _click(engine, "new", [0.0, 1.0, 0.0], "other 2")).status == "accepted"
            clock.seconds += 11
            # As long as lists of the longer deadline may be open, none is closed early.
            assert await engine.housekeeping.expire(engine.rankers["unwind"]) == 0
            clock.seconds += 50
            assert await engine.housekeeping.expire(engine.rankers["unwind"]) == 1
            assert await _learnt(engine) == [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
            await engine.reset("unwind", ResetRequest())
            assert fold.config.policy.answers == "union"
            await engine.snapshot("unwind")
            await rank(engine, "third")
            await adds_up(engine)
            changes = fold.policies.changes
        async with running(store, clock=clock) as engine:
            assert engine.rankers["unwind"].snapshot_seq > 0
            assert engine.rankers["unwind"].fold.policies.changes == changes
            clock.seconds += 11
            assert await engine.housekeeping.expire(engine.rankers["unwind"]) == 1
            await adds_up(engine)

    play(story)


def test_late_feedback_is_judged_by_the_policy_of_its_list() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, policy={"deadline_seconds": 10, "late": "ignore"})
            await rank(engine, "old")
            await engine.change_policy("unwind", PolicyRequest(late="learn"))
            await rank(engine, "new")
            clock.seconds += 11
            assert not (await answer(engine, "old")).learnt
            assert (await answer(engine, "new")).learnt
            fold = engine.rankers["unwind"].fold
            fold.recent.clear()
            assert not (await answer(engine, "old", event_id="again")).learnt
            await adds_up(engine)

    play(story)


def test_a_change_is_made_once() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            app = App(engine)
            where = "/v1/rankers/unwind/policy"
            body = {"deadline_seconds": 5.0, "event_id": "c"}
            assert (await ask(app, "POST", where, body))[1]["status"] == "accepted"
            assert (await ask(app, "POST", where, body))[1]["duplicate"]
            status, told = await ask(app, "POST", where, {"deadline_seconds": 6.0, "event_id": "c"})
            assert (status, told["error"]["field"]) == (409, "event_id")
            for wrong in ({}, {"deadline_seconds": -1.0}, {"parking_seconds": 5.0}, {"answers": "best"}):
                assert (await ask(app, "POST", where, wrong))[0] == 422
            kinds = [row.kind for row in await engine.store.read("unwind", after=0, limit=99)]
            assert kinds == ["config", "policy"]
            assert engine.rankers["unwind"].fold.config.policy.deadline_seconds == 5.0

    play(story)


def test_a_rollback_goes_over_a_change_of_policy() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rank(engine, "a")
            await answer(engine, "a")
            await engine.snapshot("unwind")
            await engine.change_policy("unwind", PolicyRequest(deadline_seconds=5.0))
            await rank(engine, "b")
            await answer(engine, "b")
            _, told = await ask(App(engine), "POST", "/v1/rankers/unwind/rollback", {"to_seq": 3})
            assert told["status"] == "accepted"
            fold = engine.rankers["unwind"].fold
            assert (fold.rounds, fold.config.policy.deadline_seconds) == (1, 5.0)
            await adds_up(engine)

    play(story)


def test_which_policies_may_be_in_force() -> None:
    long, short = Policy(deadline_seconds=60.0), Policy(deadline_seconds=1.0)
    history = PolicyHistory(long, [(5, "c", short)])
    assert [history.at(seq) for seq in (1, 5, 6)] == [long, long, short]
    assert (history.after(0), history.after(4), history.after(5)) == ([long, short], [long, short], [short])
    assert waiting_time([long, short]) == (60_000, False)
    assert waiting_time([short]) == (1_000, True)
    assert waiting_time([Policy(answers="last")])[1] is False
    assert waiting_time([Policy(answers="first")])[1] is True


def test_the_defaults_change_nothing_in_the_bytes() -> None:
    assert b"answers" not in records.encode(Config("FTPL", 1, ["a"]))
