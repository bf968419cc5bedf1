"""Several lists in one request: rows and IDs of their own, one commit, an answer or an error for each."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import rankloop
from rankloop.serving.admission import Limits
from rankloop.serving.api import RankRequest
from rankloop.serving.batches import rank_many
from rankloop.serving.errors import NotFound, RequestError
from rankloop.serving.http.app import App
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.in_process import ask
from tests.serving.process import Service
from tests.serving.service import ITEMS, adds_up, create, play, rank, running


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
            told = await rank_many(engine, "unwind", [RankRequest(f"d{i}") for i in range(100)])
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
                await rank_many(engine, "unwind", [RankRequest()] * 3)
            with pytest.raises(NotFound, match="nobody"):
                await rank_many(engine, "nobody", [RankRequest()])
            assert (await rank_many(engine, "unwind", [])) == []

    play(story)


def test_the_client_asks_for_several() -> None:
    with Service("--memory") as service, service.client() as client:
        client.create("unwind", algorithm="RTop1F", items=ITEMS, seed=7)
        one, wrong = client.rank_many("unwind", [{"context": {"hour": 7}}, {"features": [[1.0]]}])
        assert isinstance(one, rankloop.serving.client.RankAnswer)
        assert sorted(one.items) == sorted(ITEMS)
        assert isinstance(wrong, rankloop.serving.client.RankloopError)
        assert (wrong.code, wrong.field) == ("invalid", "features")
