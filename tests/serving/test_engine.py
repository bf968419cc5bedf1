"""The service without its skin: what each call does, and what the log says of it afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

import rankloop
from rankloop.serving.admission import Conflict, Limits, NotFound, RequestError
from rankloop.serving.api import RankRequest
from rankloop.serving.http.app import App
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.in_process import ask
from tests.serving.process import Service
from tests.serving.service import ITEMS, adds_up, answer, create, play, rank, running


def test_a_round() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            shown = await rank(engine, "d1")
            assert sorted(shown.items) == sorted(ITEMS)
            assert (shown.decision_id, shown.model_seq, shown.duplicate) == ("d1", 1, False)
            told = await answer(engine, "d1")
            assert (told.status, told.seq, told.learnt) == ("accepted", 3, True)
            assert engine.rankers["unwind"].fold.rounds == 1
            assert (await rank(engine)).model_seq == 3
            await adds_up(engine)

    play(story)


def test_the_same_decision_again_is_the_same_list() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            first = await rank(engine, "d1")
            await answer(engine, "d1")
            again = await rank(engine, "d1")
            assert again.duplicate
            assert (again.items, again.model_seq) == (first.items, first.model_seq)
            with pytest.raises(Conflict):
                await rank(engine, "d1", context={"hour": 3})
            kinds = [row.kind for row in await engine.store.read("unwind", after=0, limit=9)]
            assert kinds == ["config", "decision", "feedback", "conflict"]
            await adds_up(engine)

    play(story)


def test_two_asking_for_one_decision_at_once_get_one_list() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            answers = await asyncio.gather(*(rank(engine, "d1") for _ in range(20)))
            assert len({tuple(one.items) for one in answers}) == 1
            assert sum(not one.duplicate for one in answers) == 1
            assert await engine.store.last_seq("unwind") == 2

    play(story)


def test_feedback_counts_once() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rank(engine, "d1")
            assert (await answer(engine, "d1", event_id="e1")).status == "accepted"
            state = engine.rankers["unwind"].fold.state_hash()
            assert (await answer(engine, "d1", event_id="e1")).status == "duplicate"  # a retry
            assert (
                await answer(engine, "d1", event_id="e2")
            ).status == "duplicate"  # a retry under another id
            assert (await answer(engine, "d1", 0.0, event_id="e1")).status == "conflict"
            assert (await answer(engine, "d1", 0.0, event_id="e3")).status == "conflict"
            fold = engine.rankers["unwind"].fold
            assert (fold.rounds, fold.state_hash()) == (1, state)
            await adds_up(engine)

    play(story)


def test_a_ranker_is_not_silently_made_anew() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, seed=None)
            await create(engine, seed=None)
            with pytest.raises(Conflict):
                await create(engine, seed=None, parameters={"measure": "sum_loss"})
            assert await engine.store.rankers() == ["unwind"]
            await adds_up(engine)

    play(story)


# Several lists in one request: rows and IDs of their own, one commit, an answer or an error for each.


def test_one_commit_and_an_answer_for_each(tmp_path: Path) -> None:
    async def story() -> None:
        store = SQLiteStore(tmp_path)
        async with running(store) as engine:
            app = App(engine)
            await create(engine)
            first = await rank(engine, "a", context={"hour": 7})
            commits = store.n_commits
            asked = [
                {"decision_id": "a", "context": {"hour": 7}},  # there already
                {"decision_id": "b"},
                {"decision_id": "a", "context": {"hour": 8}},  # the same id with another body
                {"decision_id": "c", "features": [[1.0]]},
                {"decision_id": "b"},  # twice in one request
                {},
            ]
            status, told = await ask(app, "POST", "/v1/rankers/unwind/rank", asked)
            assert status == 200
            answers = [one["answer"] for one in told]
            assert [answer and answer["duplicate"] for answer in answers] == [
                True,
                False,
                None,
                None,
                True,
                False,
            ]
            assert answers[0]["items"] == first.items
            assert answers[1]["items"] == answers[4]["items"]
            assert [one["error"] and one["error"]["code"] for one in told] == [
                None,
                None,
                "conflict",
                "invalid",
                None,
                None,
            ]
            assert told[3]["error"]["field"] == "features"
            assert store.n_commits == commits + 2  # the lists, and the row that keeps the conflict
            kinds = [row.kind for row in await store.read("unwind", after=0, limit=99)]
            assert kinds == ["config", "decision", "decision", "decision", "conflict"]
            await adds_up(engine)

    play(story)


def test_a_hundred_lists_share_a_commit(tmp_path: Path) -> None:
    async def story() -> None:
        store = SQLiteStore(tmp_path)
        async with running(store) as engine:
            await create(engine)
            before = store.n_commits
            told = await engine.rank_many("unwind", [RankRequest(f"d{i}") for i in range(100)])
            assert store.n_commits == before + 1
            assert {one.answer.model_seq for one in told if one.answer} == {1}
            assert [one.answer and one.answer.decision_id for one in told] == [f"d{i}" for i in range(100)]
            await adds_up(engine)

    play(story)


def test_too_many_and_no_ranker_are_refused_as_a_whole() -> None:
    async def story() -> None:
        async with running(limits=msgspec.structs.replace(Limits(), batch=2)) as engine:
            await create(engine)
            with pytest.raises(RequestError, match="limit reached: 2 lists in one request, got 3"):
                await engine.rank_many("unwind", [RankRequest()] * 3)
            with pytest.raises(NotFound, match="nobody"):
                await engine.rank_many("nobody", [RankRequest()])
            assert (await engine.rank_many("unwind", [])) == []

    play(story)


def test_the_client_asks_for_several() -> None:
    with Service("--memory") as service, service.client() as client:
        client.create("unwind", algorithm="RTop1F", items=ITEMS, seed=7)
        one, wrong = client.rank_many("unwind", [{"context": {"hour": 7}}, {"features": [[1.0]]}])
        assert isinstance(one, rankloop.serving.client.RankAnswer)
        assert sorted(one.items) == sorted(ITEMS)
        assert isinstance(wrong, rankloop.serving.client.RankloopError)
        assert (wrong.code, wrong.field) == ("invalid", "features")
