"""Callers that never finish: endless headers, half requests, slow bodies, more connections than there may be."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import uvicorn

from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.http.connections import Connections
from rankloop.serving.limits import Limits
from rankloop.serving.stores.memory import MemoryStore

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LIMITS = Limits(
    header_seconds=0.5, body_seconds=0.5, connections=220, connections_per_address=210, body_bytes=100_000
)
_PATIENCE = 30.0  # seconds, on a busy machine
_LIVE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.asynccontextmanager
async def serving(
    limits: Limits = LIMITS,
) -> AsyncIterator[tuple[Callable[[], Awaitable[Streams]], Connections]]:
    engine = Engine(MemoryStore(), limits=limits, housekeeping=False)
    table = Connections(App(engine), limits)
    config = uvicorn.Config(table, http="httptools", ws="none", log_level="critical", lifespan="on")
    table.stand_before(config)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    port = listening.getsockname()[1]
    try:
        yield lambda: asyncio.open_connection("127.0.0.1", port), table
    finally:
        server.should_exit = True
        await task


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
