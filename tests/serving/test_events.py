"""What others are told of a ranker: in order, page by page, the same whenever they ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from rankloop.serving.api import ActivateRequest, FreezeRequest, ItemsRequest
from rankloop.serving.client import AsyncClient, RankloopError
from rankloop.serving.engine import Engine
from rankloop.serving.history_import import ImportRequest, ShownList, import_history
from rankloop.serving.http.app import App
from rankloop.serving.stores.contract import Store
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.memory_store import MemoryStore
from tests.serving.service import Clock, answer, create, play, rank, running


async def happen(engine: Engine, clock: Clock) -> None:
    """Lists with feedback, without, and with feedback that came before; changes of the ranker."""
    await create(engine, algorithm="FTRLPBM", parameters={"n_positions": 2})
    await rank(engine, "a")
    await rank(engine, "unanswered")
    await answer(engine, "a", relevance=None, clicks=[1.0, 0.0])
    await answer(engine, "a", relevance=None, clicks=[1.0, 0.0])  # again
    await answer(engine, "early", relevance=None, clicks=[0.0, 1.0])
    await rank(engine, "early")
    await engine.change_items("unwind", ItemsRequest(add=["swim"]))
    await rank(engine, "silent")
    await engine.activate("unwind", ActivateRequest("silent"))
    clock.seconds += 90_000
    await engine.housekeeping.tick()
    await engine.freeze("unwind", FreezeRequest())
    await rank(engine, "frozen")
    await answer(engine, "frozen", relevance=None, clicks=[1.0, 1.0])
    await engine.freeze("unwind", FreezeRequest(frozen=False))
    await import_history(
        engine,
        "unwind",
        ImportRequest([ShownList(["swim", "tea"], clicks=[1, 0], propensities=[0.5, 0.5])], source="May"),
    )


def client_of(engine: Engine) -> AsyncClient:
    return AsyncClient("http://127.0.0.1", transport=httpx.ASGITransport(App(engine)))


async def pull(client: AsyncClient, *, limit: int) -> list[dict[str, Any]]:
    events, after = [], 0
    while True:
        page = await client.events("unwind", after=after, limit=limit)
        assert page.through <= after + limit
        events += page.events
        if page.through == after:
            assert page.through == page.model_seq
            return events
        after = page.through


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_events_come_in_order_with_what_was_learnt_and_changed(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        clock = Clock()
        store: Store = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path)
        async with running(store, clock=clock) as engine, client_of(engine) as client:
            await happen(engine, clock)
            events = await pull(client, limit=500)
            assert [one["seq"] for one in events] == sorted({one["seq"] for one in events})
            assert [one["kind"] for one in events] == [
                *("config", "learnt", "learnt", "items", "learnt", "freeze", "freeze", "import"),
            ]
            learnt = [one for one in events if one["kind"] == "learnt"]
            assert [(one["decision_id"], one["clicks"]) for one in learnt] == [
                ("a", [1.0, 0.0]),
                ("early", [0.0, 1.0]),
                ("silent", [0.0, 0.0]),
            ]
            shown = await rank(engine, "a")
            assert (learnt[0]["items"], learnt[0]["propensities"]) == (shown.items, shown.propensities)
            assert events[3]["add"] == ["swim"]
            assert len(learnt) == engine.rankers["unwind"].fold.counts.learnt
            for limit in (1, 2, 3, 7):  # a page may begin anywhere, also while the ranker was frozen
                assert await pull(client, limit=limit) == events

    play(story)


def test_a_name_that_is_used_again_is_another_log() -> None:
    async def story() -> None:
        async with running() as engine, client_of(engine) as client:
            await create(engine)
            before = await client.events("unwind")
            await rank(engine, "a")
            await answer(engine, "a")
            assert (await client.events("unwind", after=before.through)).log == before.log
            await engine.archive("unwind")
            await create(engine, algorithm="FTPL")
            page = await client.events("unwind", after=3)
            assert (page.events, page.through, page.model_seq) == ([], 3, 1)
            assert page.log != before.log

    play(story)


def test_what_is_asked_wrongly_is_named() -> None:
    async def story() -> None:
        async with running() as engine, client_of(engine) as client:
            await create(engine)
            for wrong, field in (
                ({"after": -1}, "after"),
                ({"after": 1 << 40}, "after"),
                ({"limit": 0}, "limit"),
                ({"limit": 1_001}, "limit"),
            ):
                with pytest.raises(RankloopError, match="Expected `int`") as caught:
                    await client.events("unwind", **wrong)
                assert (caught.value.status, caught.value.field) == (422, field)
            with pytest.raises(RankloopError, match="no ranker 'nobody'"):
                await client.events("nobody")

    play(story)
