"""Requests with a head that came before on the same connection: answered without ASGI, and just the same."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from rankloop.serving.auth import make_key
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.http.connection import limited
from rankloop.serving.http.stepping import begin_task, go_on
from rankloop.serving.limits import Limits
from rankloop.serving.log.records import Entry
from rankloop.serving.pending import Pending
from rankloop.serving.schemas import CreateRequest
from rankloop.serving.stores.contract import Appended
from rankloop.serving.stores.memory import MemoryStore

_PATIENCE = 30.0
_RANK = "/v1/rankers/r/rank"
_FEEDBACK = "/v1/rankers/r/feedback"


class SlowStore(MemoryStore):
    """Writes nothing while it is held up."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = asyncio.Event()
        self.may_write.set()

    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        await self.may_write.wait()
        return await super().append(entries, at=at, epoch=epoch)


class CountingApp(App):
    """Knows how many requests came through ASGI."""

    n_requests = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.n_requests += scope["type"] == "http"
        await super().__call__(scope, receive, send)


class Talk:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, path: str, body: Any, more: str = "") -> None:
        told = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}"
        self.writer.write(f"{head}Content-Length: {len(told)}\r\n\r\n".encode() + told)

    async def receive(self) -> tuple[bytes, Any]:
        async with asyncio.timeout(_PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            found = re.search(rb"content-length: (\d+)", head)
            assert found
            return head, json.loads(await self.reader.readexactly(int(found[1])))

    async def ask(self, path: str, body: Any, more: str = "") -> tuple[bytes, Any]:
        self.send(path, body, more)
        return await self.receive()


@contextlib.asynccontextmanager
async def serving(limits: Limits | None = None) -> AsyncIterator[tuple[CountingApp, Talk, uvicorn.Server]]:
    store, limits = SlowStore(), limits or Limits()
    engine = Engine(store, limits=limits, housekeeping=False)
    app = CountingApp(engine)
    config = uvicorn.Config(app, http=limited(limits, app), ws="none", log_level="critical", lifespan="on")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    await engine.create(CreateRequest("r", "RTop1F", items=["a", "b", "c"], seed=1))
    talk = Talk(*await asyncio.open_connection("127.0.0.1", listening.getsockname()[1]))
    try:
        yield app, talk, server
    finally:
        store.may_write.set()
        talk.writer.close()
        server.should_exit = True
        await task


def _plain(head: bytes) -> bytes:
    return re.sub(rb"date: [^\r]*|content-length: \d+", b"", head)


def test_the_second_request_of_a_kind_is_answered_without_asgi_in_the_same_bytes() -> None:
    async def story() -> None:
        async with serving() as (app, talk, _):
            first, one = await talk.ask(_RANK, {"decision_id": "d1"})
            assert app.n_requests == 1
            second, two = await talk.ask(_RANK, {"decision_id": "d2"})
            assert app.n_requests == 1
            assert _plain(first) == _plain(second)
            assert first.startswith(b"HTTP/1.1 200 OK\r\n")
            assert one.keys() == two.keys()
            assert (one["decision_id"], two["decision_id"]) == ("d1", "d2")
            # The same list again, and the same ID for another request.
            assert (await talk.ask(_RANK, {"decision_id": "d1"}))[1] == {**one, "duplicate": True}
            other = {"decision_id": "d1", "context": 1}
            told = [await talk.ask(_RANK, other) for _ in range(2)]
            assert told[0][1] == told[1][1]
            assert [_plain(head)[:12] for head, _ in told] == [b"HTTP/1.1 409"] * 2
            assert app.n_requests == 2
            heads = [await talk.ask(_FEEDBACK, {"decision_id": d, "relevance": [1]}) for d in ("d1", "d2")]
            assert [body["learnt"] for _, body in heads] == [True, True]
            assert app.n_requests == 3
            parked = await talk.ask(_FEEDBACK, {"decision_id": "d9", "relevance": [1]})  # not at hand: a task
            assert parked[1]["status"] == "parked"
            assert app.n_requests == 3

    asyncio.run(story())


@pytest.mark.parametrize("body", [b"{]", b'{"items":7}', b'{"unknown":1}', b"[{},{}]"])
def test_errors_and_batches_are_the_same_on_both_ways(body: bytes) -> None:
    async def story() -> None:
        async with serving() as (app, talk, _):
            told = [await talk.ask(_RANK, body) for _ in range(2)]
            assert app.n_requests == 1
            assert _plain(told[0][0]) == _plain(told[1][0])
            if body.startswith(b"{"):
                assert told[0][1] == told[1][1]
                assert "error" in told[0][1]

    asyncio.run(story())


def test_what_comes_while_a_request_waits_is_answered_after_it_in_order() -> None:
    async def story() -> None:
        async with serving() as (app, talk, _):
            await talk.ask(_RANK, {"decision_id": "d0"})
            app.engine.store.may_write.clear()  # type: ignore[attr-defined]
            talk.send(_RANK, {"decision_id": "d1"})
            await talk.writer.drain()
            while not app.engine.commit.waiting:
                await asyncio.sleep(0.001)
            for i in (2, 3, 4):  # these arrive together, or one by one
                talk.send(_RANK, {"decision_id": f"d{i}"})
                await asyncio.sleep(0.01 * (i == 2))
            app.engine.store.may_write.set()  # type: ignore[attr-defined]
            found = [(await talk.receive())[1]["decision_id"] for _ in range(4)]
            assert found == ["d1", "d2", "d3", "d4"]
            assert await app.engine.store.last_seq("r") == 6

    asyncio.run(story())


def test_the_key_is_checked_with_every_request() -> None:
    async def story() -> None:
        async with serving() as (app, talk, _):
            assert [(await talk.ask(_RANK, {}))[0][:12] for _ in range(2)] == [b"HTTP/1.1 200"] * 2
            await make_key(app.engine.store, role="writer", at=0)
            await app.access.refresh(app.engine.store)
            head, body = await talk.ask(_RANK, {})
            assert head.startswith(b"HTTP/1.1 401")
            assert b"www-authenticate: Bearer" in head
            assert body["error"]["code"] == "unauthorized"
            assert app.n_requests == 1

    asyncio.run(story())


def test_a_server_that_stops_answers_first() -> None:
    async def story() -> None:
        async with serving() as (app, talk, server):
            await talk.ask(_RANK, {})
            app.engine.store.may_write.clear()  # type: ignore[attr-defined]
            talk.send(_RANK, {})
            while not app.engine.commit.waiting:
                await asyncio.sleep(0.001)
            server.should_exit = True
            while not next(iter(server.server_state.connections))._closing:  # type: ignore[union-attr]
                await asyncio.sleep(0.001)
            app.engine.store.may_write.set()  # type: ignore[attr-defined]
            head, body = await talk.receive()
            assert b"connection: close" in head
            assert body["duplicate"] is False
            assert await asyncio.wait_for(talk.reader.read(), _PATIENCE) == b""

    asyncio.run(story())


def test_a_connection_without_requests_is_closed_in_time() -> None:
    async def story() -> None:
        async with serving(Limits(idle_seconds=1)) as (app, talk, _):
            for _ in range(2):
                await talk.ask(_RANK, {})
            assert app.n_requests == 1
            assert await asyncio.wait_for(talk.reader.read(), _PATIENCE) == b""

    asyncio.run(story())


@pytest.mark.parametrize(
    "more",
    [
        "Connection: close\r\n",
        "Expect: 100-continue\r\n",
        "X-Padding: " + "x" * 2_000 + "\r\n",
        "Accept: application/json\r\nAccept: text/plain\r\n",
    ],
)
def test_heads_out_of_the_ordinary_go_the_usual_way(more: str) -> None:
    async def story() -> None:
        async with serving() as (app, talk, _):
            for _ in range(1 if "close" in more else 3):
                talk.send(_RANK, {}, more)
                head, _ = await talk.receive() if "Expect" not in more else (b"", await _continued(talk))
                assert head == b"" or head.startswith(b"HTTP/1.1 200")
            assert app.n_requests == (1 if "close" in more else 3)

    async def _continued(talk: Talk) -> Any:
        await talk.reader.readuntil(b"100 Continue\r\n\r\n")
        return (await talk.receive())[1]

    asyncio.run(story())


def test_a_coroutine_goes_on_with_its_futures_and_its_end_is_told() -> None:
    async def story() -> None:
        loop, told = asyncio.get_running_loop(), []

        async def twice(futures: list[asyncio.Future[int]]) -> int:
            return await futures[0] + await futures[1]

        futures: list[asyncio.Future[int]] = [loop.create_future(), loop.create_future()]
        go_on(twice(futures), told.append)
        for value, future in enumerate(futures, 3):
            assert told == []
            future.set_result(value)
            await asyncio.sleep(0)
        assert told == [7]

        async def fails() -> int:
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            go_on(fails(), told.append)
        begin_task(fails(), told.append)
        await asyncio.sleep(0.01)
        assert told == [7, None, None]

    asyncio.run(story())


def test_a_coroutine_goes_on_as_soon_as_what_is_pending_is_settled(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        told: list[Any] = []

        async def waits(pending: Pending[int]) -> Any:
            try:
                return await pending
            except ValueError as error:
                return str(error)

        good, bad, gone, awaited = (Pending[int]() for _ in range(4))
        for one in (good, bad, gone):
            go_on(waits(one), told.append)
        task = asyncio.create_task(waits(awaited))
        await asyncio.sleep(0)
        good.settle(3)
        assert told == [3]  # no turn of the loop in between
        bad.fail(ValueError("no"))
        assert told == [3, "no"]
        bad.settle(4)  # too late: it has ended
        assert told == [3, "no"]
        awaited.settle(5)
        assert await task == 5

        def fails() -> None:
            raise RuntimeError("whoever settles it goes on")

        gone.then = fails
        gone.settle(6)
        assert gone.result() == 6

    asyncio.run(story())
    assert "whoever settles it goes on" in caplog.text
