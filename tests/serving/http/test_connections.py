"""Callers that never finish, or say too much at once: endless headers, slow bodies, pipelines, too many connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import resource
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

from rankloop.serving.admission import Limits
from rankloop.serving.api import CreateRequest
from rankloop.serving.auth import make_key
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.http.connections import Connections
from rankloop.serving.log.records import Entry
from rankloop.serving.stores.contract import Appended, Store, SubjectKey
from rankloop.serving.stores.postgres import PostgresStore
from tests.serving.memory_store import MemoryStore
from tests.serving.process import Service

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LIMITS = Limits(
    header_seconds=0.5, body_seconds=0.5, connections=220, connections_per_address=210, body_bytes=100_000
)
_PATIENCE = 30.0  # seconds, on a busy machine
_LIVE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
_RANK = "/v1/rankers/r/rank"
_FEEDBACK = "/v1/rankers/r/feedback"


class SlowStore(MemoryStore):
    """Writes nothing while it is held up, and bounds its waits as a database's client does."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = asyncio.Event()
        self.may_write.set()

    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        await self.may_write.wait()
        return await super().append(entries, at=at, epoch=epoch)

    async def subject_key(self, subject: str) -> SubjectKey | None:
        async with asyncio.timeout(_PATIENCE):
            await asyncio.sleep(0)
            return await super().subject_key(subject)


class Talk:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, path: str, body: Any, more: str = "") -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}"
        self.writer.write(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)

    async def receive(self) -> tuple[int, Any]:
        async with asyncio.timeout(_PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            assert length
            body = await self.reader.readexactly(int(length[1]))
        return int(head[9:12]), json.loads(body) if b"json" in head else body

    async def ask(self, path: str, body: Any, more: str = "") -> tuple[int, Any]:
        self.send(path, body, more)
        return await self.receive()


@contextlib.asynccontextmanager
async def serving(
    limits: Limits = LIMITS,
) -> AsyncIterator[tuple[Callable[[], Awaitable[Streams]], Connections]]:
    async with serving_app(limits) as (_, _, connect, table):
        yield connect, table


@contextlib.asynccontextmanager
async def serving_app(
    limits: Limits | None = None, store: Store | None = None
) -> AsyncIterator[tuple[App, uvicorn.Server, Callable[[], Awaitable[Streams]], Connections]]:
    store, limits = store or SlowStore(), limits or Limits()
    engine = Engine(store, limits=limits, housekeeping=False)
    app = App(engine)
    table = Connections(app, limits)
    config = uvicorn.Config(
        table,
        http="httptools",
        ws="none",
        log_level="critical",
        lifespan="on",
        timeout_keep_alive=limits.idle_seconds,
    )
    table.stand_before(config)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    port = listening.getsockname()[1]
    try:
        yield app, server, lambda: asyncio.open_connection("127.0.0.1", port), table
    finally:
        if isinstance(store, SlowStore):
            store.may_write.set()
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def talking(
    limits: Limits | None = None, store: Store | None = None
) -> AsyncIterator[tuple[App, Talk, uvicorn.Server]]:
    """One connection to a service with a ranker."""
    async with serving_app(limits, store) as (app, server, connect, _):
        await app.engine.create(CreateRequest("r", "RTop1F", items=["a", "b", "c"], seed=1))
        talk = Talk(*await connect())
        yield app, talk, server
        talk.writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the other side closes."""
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(), _PATIENCE)
    return b""


def test_an_endless_header_without_a_key_is_cut_within_bounds() -> None:
    async def story() -> None:
        async with serving() as (connect, table):
            reader, writer = await connect()
            writer.write(b"GET /livez HTTP/1.1\r\nX: ")
            sent = 0
            with contextlib.suppress(ConnectionError):
                while sent < 50_000_000 and not reader.at_eof():
                    writer.write(b"x" * 65_536)
                    sent += 65_536
                    await writer.drain()
            assert sent < 20_000_000  # what the buffers of the system hold, and no more
            assert table.limits.header_bytes == 32_768
            writer.close()
            reader, writer = await connect()
            writer.write(b"GET /livez HTTP/1.1\r\n" + b"X: y\r\n" * 8_000)
            assert (await _read(reader)).startswith(b"HTTP/1.1 431 ")
            reader, writer = await connect()
            writer.write(b"GET /livez HTTP/1.1\r\n" + b"X: y\r\n" * 8_000 + b"\r\n")
            assert (await _read(reader)).startswith(b"HTTP/1.1 431 ")

    asyncio.run(story())


def test_half_open_requests_are_closed_and_others_are_answered_meanwhile() -> None:
    async def story() -> None:
        async with serving() as (connect, table):
            half = [await connect() for _ in range(200)]
            for i, (_, writer) in enumerate(half):
                writer.write(
                    (b"", b"GET /livez HT", b"POST /v1/rankers HTTP/1.1\r\nHost: localhost\r\n")[i % 3]
                )
            reader, writer = await connect()
            writer.write(_LIVE)
            assert (await asyncio.wait_for(reader.readuntil(b"ok\n"), _PATIENCE)).startswith(b"HTTP/1.1 200")
            writer.close()
            answers = await asyncio.gather(*(_read(one) for one, _ in half))
            assert all(answer == b"" or answer.startswith(b"HTTP/1.1 408") for answer in answers)
            for _, writer in half:
                writer.close()
            async with asyncio.timeout(_PATIENCE):
                while table.open:
                    await asyncio.sleep(0.05)
            assert not table.per_address
            assert table.cut == 200

    asyncio.run(story())


def test_a_body_that_never_ends_is_cut() -> None:
    async def story() -> None:
        async with serving() as (connect, table):
            head = b"POST /v1/rankers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            reader, writer = await connect()
            writer.write(head + b"Content-Length: 50\r\n\r\n{")
            await _read(reader)
            reader, writer = await connect()
            writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                for _ in range(2_000):
                    writer.write(b"1000\r\n" + b" " * 4_096 + b"\r\n")
                    await writer.drain()
            assert (await _read(reader)).startswith((b"HTTP/1.1 413", b""))
            assert table.cut >= 1

    asyncio.run(story())


def test_more_connections_than_allowed_are_refused_with_a_reason() -> None:
    async def story() -> None:
        limits = Limits(connections=30, connections_per_address=20)
        async with serving(limits) as (connect, table):
            held = [await connect() for _ in range(20)]
            reader, _ = await connect()
            told = await _read(reader)
            assert told.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after: 1" in told
            held[0][1].close()
            async with asyncio.timeout(_PATIENCE):
                while len(table.open) > 19:
                    await asyncio.sleep(0.01)
            reader, writer = await connect()
            writer.write(_LIVE)
            assert (await asyncio.wait_for(reader.readuntil(b"ok\n"), _PATIENCE)).startswith(b"HTTP/1.1 200")
            table.most = 10
            reader, _ = await connect()
            assert (await _read(reader)).startswith(b"HTTP/1.1 503 ")
            assert table.refused == 2

    asyncio.run(story())


def test_there_are_never_more_connections_than_files() -> None:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert Connections(App(Engine(MemoryStore())), Limits(connections=10**9)).most <= max(1, files - 100)


def test_what_comes_while_a_request_waits_is_answered_after_it_in_order() -> None:
    async def story() -> None:
        async with talking() as (app, talk, _):
            await talk.ask(_RANK, {"decision_id": "d0"})
            app.engine.store.may_write.clear()  # type: ignore[attr-defined]
            talk.send(_RANK, {"decision_id": "d1"})
            await talk.writer.drain()
            while not app.engine.commit.waiting:
                await asyncio.sleep(0.001)
            names = [f"d{i}" for i in range(2, 400)]
            for i, name in enumerate(names):  # 60 kB: some arrive together, some cut in two
                talk.send(_RANK, {"decision_id": name})
                await asyncio.sleep(0.01 * (i < 3))
            app.engine.store.may_write.set()  # type: ignore[attr-defined]
            found = [(await talk.receive())[1]["decision_id"] for _ in range(399)]
            assert found == ["d1", *names]
            assert await app.engine.store.last_seq("r") == 401

    asyncio.run(story())


def test_bodies_in_pieces_and_pipelines_of_mixed_requests_are_told_apart() -> None:
    async def story() -> None:
        async with talking() as (_, talk, _):
            large = {"context": "x" * 15_000}
            chunks = (
                b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
            )
            for _ in range(3):
                talk.send(_RANK, large)
                talk.writer.write(_LIVE)
                talk.send("/v1/rankers/none/rank", {"context": "y" * 9_000})
                talk.writer.write(f"POST {_RANK} HTTP/1.1\r\nHost: localhost\r\n".encode() + chunks)
                talk.send("/v1/rankers/r/webhooks/none", b"z" * 200_000)  # refused before its body is read
                talk.writer.write(_LIVE)
            statuses = [(await talk.receive())[0] for _ in range(18)]
            assert statuses == [200, 200, 404, 200, 404, 200] * 3
            for byte in b"POST " + _RANK.encode() + b" HTTP/1.1\r\nHost: localhost\r\n" + chunks:
                talk.writer.write(bytes([byte]))
                await asyncio.sleep(0.0001)
            assert (await talk.receive())[0] == 200

    asyncio.run(story())


def test_the_key_is_checked_with_every_request_and_before_its_body_is_read() -> None:
    async def story() -> None:
        async with talking() as (app, talk, _):
            assert [(await talk.ask(_RANK, {}))[0] for _ in range(2)] == [200, 200]
            await make_key(app.engine.store, role="writer", at=0)
            await app.access.refresh(app.engine.store)
            status, body = await talk.ask(_RANK, {})
            assert (status, body["error"]["code"]) == (401, "unauthorized")
            # Only the header is sent: the answer comes all the same, and nobody asks for the body.
            for more in ("", "Expect: 100-continue\r\n"):
                head = f"POST {_RANK} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n{more}\r\n"
                talk.writer.write(head.encode())
                assert (await talk.receive())[0] == 401
                if not more:
                    talk.writer.write(b" " * 5_000_000)
                    assert (await talk.ask(_RANK, {}))[0] == 401
            assert await asyncio.wait_for(talk.reader.read(), _PATIENCE) == b""  # no body may follow it now

    asyncio.run(story())


def test_who_expects_to_be_asked_for_a_body_is_asked_by_the_server() -> None:
    async def story() -> None:
        async with talking() as (_, talk, _):
            for _ in range(3):
                head = f"POST {_RANK} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                talk.writer.write(f"{head}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n".encode())
                async with asyncio.timeout(_PATIENCE):
                    assert await talk.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
                talk.writer.write(b"{}")
                assert (await talk.receive())[0] == 200
            talk.writer.write(_LIVE)
            assert await talk.receive() == (200, b"ok\n")

    asyncio.run(story())


def test_a_slow_body_is_told_so() -> None:
    async def story() -> None:
        async with talking(Limits(body_seconds=0.3)) as (app, talk, _):
            talk.writer.write(
                f"POST {_RANK} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{{".encode()
            )
            status, body = await talk.receive()
            assert (status, body["error"]["code"]) == (408, "timeout")
            assert await asyncio.wait_for(talk.reader.read(), _PATIENCE) == b""
            assert await app.engine.store.last_seq("r") == 1
        async with talking(Limits(body_seconds=0.3)) as (_, talk, _):  # none of it comes: nobody is told
            talk.writer.write(
                f"POST {_RANK} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n".encode()
            )
            assert await asyncio.wait_for(talk.reader.read(), _PATIENCE) == b""

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["slow", "postgresql"])
def test_a_store_that_bounds_its_waits_serves_subjects(
    kind: str, request: pytest.FixtureRequest, fresh_schema: Callable[[], str]
) -> None:
    """Both use `asyncio.timeout`, which works in tasks only; coroutines that were driven by hand got 500."""
    pytest.importorskip("cryptography")

    def new_store() -> Store:
        if kind == "slow":
            return SlowStore()
        return PostgresStore(request.getfixturevalue("postgresql").url, schema=fresh_schema())

    async def story() -> None:
        async with talking(store=new_store()) as (_, talk, _):
            for i in range(3):
                asked = {"decision_id": f"d{i}", "subject": f"s{i}", "context": {"age": 3}}
                assert (await talk.ask(_RANK, asked))[0] == 200

    asyncio.run(story())


def test_a_server_that_stops_answers_first() -> None:
    async def story() -> None:
        async with talking() as (app, talk, server):
            await talk.ask(_RANK, {})
            app.engine.store.may_write.clear()  # type: ignore[attr-defined]
            talk.send(_RANK, {})
            while not app.engine.commit.waiting:
                await asyncio.sleep(0.001)
            server.should_exit = True
            await asyncio.sleep(0.3)
            app.engine.store.may_write.set()  # type: ignore[attr-defined]
            assert (await talk.receive())[1]["duplicate"] is False
            assert await asyncio.wait_for(talk.reader.read(), _PATIENCE) == b""

    asyncio.run(story())


def test_a_connection_without_requests_is_closed_in_time() -> None:
    async def story() -> None:
        async with talking(Limits(idle_seconds=1)) as (_, talk, _):
            for _ in range(2):
                await talk.ask(_RANK, {})
            assert await asyncio.wait_for(talk.reader.read(), _PATIENCE) == b""

    asyncio.run(story())


def _memory(service: Service) -> float:
    """MB of a service."""
    lines = Path(f"/proc/{service.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads the memory of another process")
def test_a_pipeline_takes_no_memory(tmp_path: Path) -> None:
    """A caller that sends requests without end, faster than they are answered: it waits, and nothing grows."""
    body = b"POST /v1/rankers/r/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
    with Service("--data", str(tmp_path)) as service:
        service.client().create("r", algorithm="RTop1F", items=["a", "b"])
        where = urlsplit(service.url)
        for request in (
            b"GET /livez HTTP/1.1\r\n\r\n",
            body + b"Content-Type: text/plain\r\n\r\n{}",
            body + b"Content-Type: application/json\r\n\r\n{}",
            body.replace(b"/r/rank", b"/none/webhooks/none") + b"\r\n{}",
        ):
            before, answered = _memory(service), 0
            with socket.create_connection((where.hostname, where.port)) as caller:
                end = time.monotonic() + 1.0
                sender = threading.Thread(target=_flood, args=(caller, request * 2_000, end))
                sender.start()
                caller.settimeout(0.5)
                while time.monotonic() < end:
                    with contextlib.suppress(TimeoutError):
                        answered += caller.recv(1 << 20).count(b"HTTP/1.1 ")
            sender.join()
            assert _memory(service) - before < 25, request
            assert answered, request


def _flood(caller: socket.socket, requests: bytes, end: float) -> None:
    with contextlib.suppress(OSError):
        while time.monotonic() < end:
            caller.send(requests)
