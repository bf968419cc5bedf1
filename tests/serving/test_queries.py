"""Requests that name their query: remembered by the ranker, hashed in the log, and drawn again from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop.features import key_of
from rankloop.serving.admission import Conflict, RequestError
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.item_counts import item_table
from rankloop.serving.log import records
from rankloop.serving.log.export import replay
from rankloop.serving.views import explain_answer
from tests.serving.in_process import ask
from tests.serving.service import Clock, adds_up, answer, create, play, rank, running

NAMES = ["boots", "heels", "sandals"]
ROWS = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]


async def decision(engine: Engine, name: str, decision_id: str) -> tuple[records.Decision, bytes]:
    row = await engine.store.find(name, "decision", decision_id)
    assert row is not None
    return records.read_decision(row.body), bytes(row.body)


def memory(**more: Any) -> dict[str, Any]:
    return {"algorithm": "QueryMemory", "parameters": {"n_features": 2, "n_pairs": 64}} | more


async def searches(engine: Engine, n: int, wanted: dict[str, str], **more: Any) -> None:
    """`n` searches for each query by users who click on what they want."""
    for i in range(n):
        for query, item in wanted.items():
            shown = await rank(engine, f"{query} {i}", "shop", items=NAMES, query=query, **more)
            told = await answer(
                engine,
                f"{query} {i}",
                name="shop",
                relevance=None,
                clicks=[float(one == item) for one in shown.items],
            )
            assert told.learnt


@pytest.mark.parametrize("stored", [True, False])
def test_each_query_gets_the_order_of_its_own_clicks(stored: bool) -> None:
    async def story() -> None:
        async with running() as engine:
            catalogue: dict[str, Any] = {"items": NAMES, "features": ROWS} if stored else {}
            await create(engine, "shop", **memory(**catalogue))
            more: dict[str, Any] = {} if stored else {"features": ROWS}
            await searches(engine, 30, {"winter": "boots", "beach": "sandals"}, **more)
            await engine.snapshot("shop")
            for query, first in (("winter", "boots"), ("beach", "sandals")):
                shown = await rank(engine, None, "shop", items=NAMES, query=query, **more)
                assert shown.items[0] == first
            one, body = await decision(engine, "shop", "winter 3")
            assert one.query == key_of("winter")
            assert b"winter" not in body
            assert (await explain_answer(engine.rankers["shop"], "winter 3")).items[0].words
            table = item_table(engine.rankers["shop"], search="", sort="order", limit=9)
            assert [row.place for row in table.items] == [0] * len(
                table.items
            )  # there is no order for all queries
            await adds_up(engine, "shop")

    play(story)


def test_without_features_a_request_has_names_only() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "shop", **memory(parameters={"n_features": 0}))
            await searches(engine, 25, {"winter": "boots", "beach": "sandals", "party": "boots"})
            assert (await rank(engine, None, "shop", items=NAMES, query="beach")).items[0] == "sandals"
            ranker = engine.rankers["shop"].fold.ranker
            assert NAMES[ranker.current(ranker.as_request(np.empty((3, 0)), "office", NAMES))[0]] == "boots"
            with pytest.raises(RequestError, match="QueryMemory needs the names of the documents") as error:
                await rank(engine, None, "shop", query="beach")
            assert error.value.field == "items"
            shown = await rank(
                engine, "some", "shop", items=NAMES, query="beach", exclude=["heels"], pinned={0: "boots"}
            )
            assert shown.items == ["boots", "sandals"]
            assert (await answer(engine, "some", name="shop", relevance=None, clicks=[0.0, 1.0])).learnt
            await adds_up(engine, "shop")

    play(story)


def test_the_application_s_own_lists_are_learnt_from() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "shop", **memory(policy={"apprentice": True}))
            await searches(engine, 30, {"beach": "sandals"}, features=ROWS, baseline=NAMES)
            fold = engine.rankers["shop"].fold
            request = fold.ranker.as_request(np.array(ROWS, np.float32), "beach", NAMES)
            assert fold.ranker.current(request)[0] == 2
            await adds_up(engine, "shop")

    play(story)


def test_a_query_is_part_of_the_request() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "shop", **memory())
            with pytest.raises(RequestError, match="QueryMemory needs the query") as error:
                await rank(engine, "d", "shop", items=NAMES, features=ROWS, query=None)
            assert error.value.field == "query"
            first = await rank(engine, "d", "shop", items=NAMES, features=ROWS, query="a")
            assert (
                await rank(engine, "d", "shop", items=NAMES, features=ROWS, query="a")
            ).items == first.items
            with pytest.raises(Conflict):
                await rank(engine, "d", "shop", items=NAMES, features=ROWS, query="b")
            with pytest.raises(Conflict):
                await rank(engine, "d", "shop", items=NAMES, features=ROWS, query=7)
            with pytest.raises(RequestError, match="query is learnt from, and cannot be erased"):
                await rank(engine, "e", "shop", items=NAMES, query="a", subject="user-4711")
            # Rankers that remember none take it along: the log of one may teach another.
            await create(engine, "plain", algorithm="PDGD", parameters={"n_features": 2})
            await create(engine, "fixed", items=NAMES)
            for name, more in (("plain", {"items": NAMES, "features": ROWS}), ("fixed", {})):
                await rank(engine, "d", name, query="winter", **more)
                await answer(
                    engine, "d", name=name, **({"relevance": None, "clicks": [1.0, 0, 0]} if more else {})
                )
                assert (await decision(engine, name, "d"))[0].query == key_of("winter")
                await adds_up(engine, name)
            found = await replay(engine.store, "plain", other="QueryMemory", parameters={"n_pairs": 64})
            assert found.rounds == 1

    play(story)


@pytest.mark.parametrize("d", [0, 2])
def test_searches_of_another_system_teach_by_their_query(d: int) -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            app = App(engine)
            catalogue: dict[str, Any] = {"items": NAMES, "features": ROWS} if d else {}
            await create(engine, "shop", **memory(parameters={"n_features": d, "n_pairs": 64}, **catalogue))
            for i in range(20):
                about = {"query_id": f"s{i}", "application": "shop", "timestamp": 1_717_200_000_000}
                search = about | {"user_query": "beach", "query_response_hit_ids": NAMES}
                clicked = {"object": {"object_id": "sandals"}, "position": {}}
                click = about | {"action_name": "click", "event_attributes": clicked}
                for path, body in (("/ubi_queries", search), ("/ubi_events", click)):
                    status, _ = await ask(app, "POST", path, [body])
                    assert status == 200
            clock.seconds += 31.0
            await engine.housekeeping.expire(engine.rankers["shop"])
            ranker = engine.rankers["shop"].fold.ranker
            rows = np.array(ROWS, np.float32)[:, :d]
            assert engine.rankers["shop"].fold.rounds == 20
            assert NAMES[ranker.current(ranker.as_request(rows, "beach", NAMES))[0]] == "sandals"
            await adds_up(engine, "shop")

    play(story)
