"""The stream of all rankers: of those that this replica owns, and of those that others own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.limits import Limits
from rankloop.serving.owners.front import Front
from rankloop.serving.owners.hop import Answer, NotSent
from rankloop.serving.owners.routing import Router
from rankloop.serving.stores.contract import Member, Roll
from tests.serving.owners.test_routing import ADDRESSES, Network
from tests.serving.service import create, play, rank
from tests.serving.shared_store import SharedStore

FAR = b'event: ranker\ndata: {"name": "far"}\n\n'


class Far(Network):
    """One replica whose events come in pieces; another that is down."""

    async def stream(self, address: str, request: bytes) -> AsyncIterator[Answer | bytes]:
        if address == ADDRESSES["c"]:
            raise NotSent("down")
        assert b"x-rankloop-forwarded: http://127.0.0.1:8001" in request
        yield Answer(200, {}, b"")
        yield b"retry: 1000\n\nevent: health\ndata: {}\n\n" + FAR[:20]
        yield FAR[20:] + FAR[:5]
        await asyncio.Event().wait()


def test_all_rankers_are_told_of() -> None:
    async def story() -> None:
        engine = Engine(SharedStore(), housekeeping=False, address=ADDRESSES["a"])
        await engine.open()
        assert engine.ownership is not None
        await create(engine, "near")
        members = [Member(name, ADDRESSES[name]) for name in "bc"] + [
            Member(engine.ownership.replica, ADDRESSES["a"])
        ]
        engine.ownership.see(Roll(1, members))
        names = [f"n{i}" for i in range(20)]
        mine = next(name for name in names if engine.ownership.owns(name))
        others = next(name for name in names if not engine.ownership.owns(name))
        for name in (mine, others):
            await create(engine, name)
        app = App(engine)
        app.broadcast.start()
        front = Front(app, Router(engine.ownership, limits=Limits(), forward=True, way=Far()))
        told: asyncio.Queue[bytes] = asyncio.Queue()
        gone = asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            told.put_nowait(message.get("body", b""))

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/v1/stream",
            "query_string": b"",
            "client": ("127.0.0.1", 50_000),
            "headers": [(b"host", b"localhost")],
            "asgi": {"version": "3.0", "spec_version": "2.0"},
        }
        listening = asyncio.create_task(front(scope, receive, send))
        heard = b""
        while FAR not in heard or f'"{mine}"'.encode() not in heard:
            heard += await told.get()
        assert heard.count(FAR) == 1
        events = [part.partition(b"data: ")[2] for part in heard.split(b"\n\n") if b"event: ranker" in part]
        assert others not in {json.loads(data)["name"] for data in events}  # its owner tells of it
        assert heard.count(b"event: health") == 1  # their health is theirs
        before = told.qsize()
        await rank(engine, name=mine)
        while told.qsize() == before:
            await asyncio.sleep(0.01)
        gone.set()
        await listening
        await app.broadcast.stop()
        await engine.close()

    play(story)
