"""Feedback that names items: all that were clicked, or one click at a time, gathered for a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rankloop.serving.admission import Limits, NotFound, RequestError
from rankloop.serving.api import FeedbackRequest, PolicyRequest
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.log.export import answered_lists
from rankloop.serving.log.records import GATHER_SECONDS
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.in_process import ask
from tests.serving.service import Clock, adds_up, create, play, rank, running

CLICKS: dict[str, Any] = {"algorithm": "FTRLPBM", "parameters": {"n_positions": 3}}
FEEDBACK = "/v1/rankers/unwind/feedback"


async def _tell(engine: Engine, decision: str, **told: Any) -> Any:
    return (await engine.feedback("unwind", [FeedbackRequest(decision, **told)]))[0]


async def _learnt(engine: Engine) -> list[list[float]]:
    return [one.values.tolist() async for one in answered_lists(engine.store, "unwind")]


def test_the_items_that_were_clicked_are_one_whole_answer() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, **CLICKS)
            shown = await rank(engine, "a")
            body = {"decision_id": "a", "clicked": [shown.items[2], shown.items[0]]}
            status, told = await ask(app, "POST", FEEDBACK, body)
            assert (status, told["status"], told["learnt"]) == (200, "accepted", True)
            # The same said by position is the same event.
            assert (await _tell(engine, "a", clicks=[1.0, 0.0, 1.0])).duplicate
            await rank(engine, "b")
            assert (await _tell(engine, "b", clicked=[])).learnt
            assert await _learnt(engine) == [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
            await adds_up(engine)

    play(story)


def test_a_click_is_a_relevance_of_one() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)  # RTop1F learns from the relevance of the first item
            for i in (0, 3):
                shown = await rank(engine, f"list {i}")
                assert (await _tell(engine, f"list {i}", clicked=[shown.items[i]])).learnt
            assert await _learnt(engine) == [[1.0], [0.0]]

    play(story)


def test_what_was_not_shown_is_refused_before_anything_is_written() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, **CLICKS)
            shown = await rank(engine, "a", n_positions=2)
            left_out = next(name for name in engine.rankers["unwind"].fold.items if name not in shown.items)
            rows = engine.rankers["unwind"].fold.applied
            good = shown.items[0]
            for body, status, field in (
                ({"clicked": [good, "golf"]}, 422, "clicked"),
                ({"clicked": [left_out]}, 422, "clicked"),
                ({"item": left_out}, 422, "item"),
                ({"item": ""}, 422, "item"),
                ({"item": good, "clicked": [good]}, 422, "clicked"),
                ({"item": good, "clicks": [1, 0]}, 422, "item"),
                ({"clicked": [good], "relevance": [1]}, 422, "clicked"),
                ({"clicked": good}, 422, "clicked"),
                ({"decision_id": "nowhere", "item": good}, 404, "decision_id"),
            ):
                one = {"decision_id": "a"} | body
                for sent in (one, [{"decision_id": "a", "item": good}, one]):
                    answered, error = await ask(app, "POST", FEEDBACK, sent)
                    assert (answered, error["error"]["field"].rpartition(".")[2]) == (status, field), sent
            status, error = await ask(app, "POST", FEEDBACK, {"decision_id": "a", "item": "golf"})
            assert error["error"]["message"] == "'golf' is not among the items of decision 'a'"
            assert engine.rankers["unwind"].fold.applied == rows
            assert (await _tell(engine, "a", clicked=[good])).learnt

    play(story)


def test_clicks_one_by_one_are_learnt_together_after_a_moment(tmp_path: Path) -> None:
    async def story() -> None:
        clock = Clock()
        async with running(SQLiteStore(tmp_path), clock=clock) as engine:
            await create(engine, **CLICKS)
            fold, tick = engine.rankers["unwind"].fold, engine.housekeeping.tick
            shown = await rank(engine, "a")
            await rank(engine, "open")  # stays without an answer
            told = await _tell(engine, "a", item=shown.items[0])
            assert (told.status, told.learnt) == ("accepted", False)
            assert (await _tell(engine, "a", item=shown.items[0])).duplicate
            await tick()
            clock.seconds += GATHER_SECONDS - 1
            assert (await _tell(engine, "a", item=shown.items[2])).status == "accepted"
            await tick()
            assert fold.rounds == 0
            await engine.snapshot("unwind")  # what is gathered survives a start
        async with running(SQLiteStore(tmp_path), clock=clock) as engine:
            fold, tick = engine.rankers["unwind"].fold, engine.housekeeping.tick
            await tick()
            assert (fold.rounds, list(fold.gathering)) == (0, ["a"])
            clock.seconds += 2
            await tick()
            assert (fold.rounds, fold.gathering) == (1, {})
            assert await _learnt(engine) == [[1.0, 0.0, 1.0]]
            assert (await _tell(engine, "a", item=shown.items[1])).status == "late"
            assert (await _tell(engine, "a", clicks=[1.0, 1.0, 1.0])).status == "late"
            assert fold.counts.expired == 0
            # The other list still waits for its own deadline.
            clock.seconds += 86_400
            await tick()
            assert (fold.rounds, fold.counts.expired) == (1, 1)
            await adds_up(engine)

    play(story)


def test_clicks_one_by_one_come_to_what_one_answer_would() -> None:
    async def state(*told: dict[str, Any], **policy: Any) -> str:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, **CLICKS, policy=policy)
            shown = await rank(engine, "a")
            for one in told:
                if "item" in one:
                    one["item"] = shown.items[one["item"]]
                await _tell(engine, "a", **one)
            clock.seconds += 31
            await engine.housekeeping.tick()
            await adds_up(engine)
            assert engine.rankers["unwind"].fold.rounds == 1
            return engine.rankers["unwind"].fold.state_hash()

    async def story() -> None:
        whole = await state({"clicks": [1.0, 0.0, 1.0]})
        assert await state({"item": 2}, {"item": 0}) == whole
        # A whole answer that follows a click is taken together with it.
        assert await state({"item": 2}, {"clicks": [1.0, 0.0, 0.0], "event_id": "e"}) == whole
        first = await state({"clicks": [0.0, 0.0, 1.0]})
        assert first != whole
        assert await state({"item": 2}, gather_seconds=0) == first  # at once

    play(story)


def test_the_window_is_of_the_policy_that_the_list_was_drawn_under() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, **CLICKS, policy={"gather_seconds": 5})
            fold = engine.rankers["unwind"].fold
            items = (await rank(engine, "short")).items
            await engine.change_policy("unwind", PolicyRequest(gather_seconds=60.0))
            others = (await rank(engine, "long")).items
            await _tell(engine, "short", item=items[0])
            await _tell(engine, "long", item=others[0])
            for seconds, rounds in ((4, 0), (2, 1), (53, 1), (2, 2)):
                clock.seconds += seconds
                await engine.housekeeping.tick()
                assert fold.rounds == rounds
            with pytest.raises(
                RequestError, match=r"policy.gather_seconds must be between 0 and 86400, got -1"
            ):
                await engine.change_policy("unwind", PolicyRequest(gather_seconds=-1.0))
            _, told = await ask(App(engine), "GET", "/v1/rankers/unwind")
            assert told["policy"]["gather_seconds"] == 60.0
            await adds_up(engine)

    play(story)


def test_after_a_whole_answer_a_click_is_a_conflict() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, **CLICKS)
            shown = await rank(engine, "a")
            await _tell(engine, "a", clicked=[shown.items[0]])
            status, error = await ask(
                App(engine), "POST", FEEDBACK, {"decision_id": "a", "item": shown.items[1]}
            )
            assert (status, error["error"]["code"]) == (409, "conflict")
            await adds_up(engine)

    play(story)


@pytest.mark.parametrize("answers", ["union", "last", "sum"])
def test_answers_gathered_on_one_list_are_bounded(answers: str) -> None:
    """In number, and in memory whatever their number; what is sent again is still a duplicate."""

    async def story() -> None:
        async with running(limits=Limits(gathered=20)) as engine:
            await create(engine, policy={"answers": answers})
            await rank(engine, "a")
            for i in range(20):
                told = await _tell(engine, "a", relevance=[i / 32], event_id=str(i))
                assert told.status == "accepted"
            state = await engine.rankers["unwind"].decision_state("a")
            assert state is not None
            assert (len(state.heard), state.n_heard) == (1, 20)
            rows = engine.rankers["unwind"].fold.applied
            with pytest.raises(RequestError, match="limit reached: 20 answers to decision 'a'") as refused:
                await _tell(engine, "a", relevance=[0.5], event_id="one more")
            assert (refused.value.status, refused.value.field) == (422, "decision_id")
            assert (await _tell(engine, "a", relevance=[3 / 32], event_id="3")).duplicate
            await rank(engine, "b")
            many = [FeedbackRequest("b", str(i), relevance=[0.5]) for i in range(100, 121)]
            with pytest.raises(RequestError, match="answers to decision 'b'"):
                await engine.feedback("unwind", many)
            assert engine.rankers["unwind"].fold.applied == rows + 1  # list b, and nothing else
            engine.rankers["unwind"].fold.recent.clear()
            await adds_up(engine)

    play(story)


def test_only_what_is_gathered_counts_against_the_bound() -> None:
    async def story() -> None:
        async with running(limits=Limits(gathered=2)) as engine:
            await create(engine, **CLICKS)
            await rank(engine, "a")
            shown = await rank(engine, "b")
            whole = [FeedbackRequest("a", clicks=[1.0, 0.0, 0.0])] * 5
            told = await engine.feedback("unwind", whole)
            assert [one.status for one in told] == ["accepted"] + ["duplicate"] * 4
            for item in shown.items[:2]:
                assert (await _tell(engine, "b", item=item)).status == "accepted"
            with pytest.raises(RequestError, match="limit reached: 2 answers to decision 'b'"):
                await _tell(engine, "b", item=shown.items[2])

    play(story)


def test_a_list_that_is_not_known_is_named() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, **CLICKS)
            with pytest.raises(NotFound, match="there is no decision 'nowhere'"):
                await _tell(engine, "nowhere", item="tea")

    play(story)
