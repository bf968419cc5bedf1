"""Every field of every request with every value that the decoders accept: refused cleanly, or harmless for good."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from rankloop.serving.http.app import App
from tests.serving.faults.hostile_bodies import bodies
from tests.serving.memory_store import MemoryStore
from tests.serving.service import adds_up, create, play, rank, running

TEMPLATES: dict[str, dict[str, Any]] = {
    "/v1/rankers": {
        "name": "x",
        "algorithm": "RTop1F",
        "items": ["a", "b"],
        "parameters": {},
        "policy": {},
        "seed": 1,
    },
    "/v1/rankers/unwind/rank": {
        "decision_id": "new",
        "items": None,
        "features": None,
        "context": None,
        "exclude": ["tea"],
        "n_positions": 1,
        "pinned": {"0": "nap"},
        "baseline": None,
    },
    "/v1/rankers/unwind/feedback": {"decision_id": "d", "event_id": "e", "relevance": [1.0], "clicks": None},
    "/v1/rankers/unwind/activate": {"decision_id": "d", "event_id": "e"},
    "/v1/rankers/unwind/items": {"add": [], "retire": [], "event_id": "e"},
    "/v1/rankers/unwind/freeze": {"frozen": False, "event_id": "e"},
    "/v1/rankers/unwind/promote": {"share": 0.5, "event_id": "e"},
    "/v1/rankers/unwind/rollback": {"to_seq": 1, "event_id": "e"},
    "/v1/rankers/unwind/reset": {"parameters": {}, "items": None, "event_id": "e"},
    "/v1/rankers/search/rank": {"items": ["a"], "features": [[1.0, 2.0]], "context": None},
}


def test_no_body_breaks_the_service_now_or_at_its_next_start() -> None:
    async def story() -> None:
        store = MemoryStore()
        seen = 0
        async with running(store) as engine:
            await create(engine)
            await create(engine, "search", algorithm="RTopKF", parameters={"n_features": 2})
            await rank(engine, "d")
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(App(engine)), base_url="http://localhost"
            ) as client:
                for path, template in TEMPLATES.items():
                    for name, kind, body in bodies(template):
                        told = await client.post(
                            path, content=body, headers={"content-type": kind, "accept": "application/json"}
                        )
                        assert told.status_code < 500, (path, name, told.text)
                        if told.status_code >= 400:
                            assert set(told.json()["error"]) == {"code", "message", "field"}
                        seen += 1
            assert engine.loaded.absent == {}
        async with running(store) as engine:  # what was accepted can be read again
            assert engine.loaded.absent == {}
            for name in engine.rankers:
                await adds_up(engine, name)
        assert seen > 1_000

    play(story)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/rankers",
            b'{"name":"x","algorithm":"RTop1F","items":["a","b"],"parameters":{"k":%d}}' % 10**30,
        ),
        ("/v1/rankers", b'{"name":"x","algorithm":"RTop1F","items":["a","b"],"seed":%d}' % (1 << 63)),
        ("/v1/rankers/unwind/rank", b'{"context":{"a":[%d]}}' % (1 << 64)),
        ("/v1/rankers/unwind/reset", b'{"parameters":{"k":%d}}' % 10**30),
        ("/v1/rankers/search/rank", b'{"features":{"shape":[%d,2],"data":""}}' % 10**30),
        ("/v1/rankers/unwind/rank", msgspec.msgpack.encode({"context": {1: 2}})),
        ("/v1/rankers/unwind/rank", msgspec.msgpack.encode({"context": [msgspec.msgpack.Ext(5, b"x")]})),
        ("/v1/rankers/unwind/rank", msgspec.msgpack.encode({"context": {(1, 2): 3}})),
        ("/v1/rankers/unwind/rank", b"\x81\xa7context\xd6\xff\x00\x00\x00\x01"),
    ],
)
def test_what_cannot_be_kept_is_the_callers_mistake(path: str, body: bytes) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await create(engine, "search", algorithm="RTopKF", parameters={"n_features": 2})
            transport = httpx.ASGITransport(App(engine))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                kind = "application/json" if body.startswith(b"{") else "application/msgpack"
                told = await client.post(path, content=body, headers={"content-type": kind})
            assert told.status_code == 422, told.content
            assert [await engine.store.last_seq(name) for name in ("unwind", "search")] == [1, 1]

    play(story)
