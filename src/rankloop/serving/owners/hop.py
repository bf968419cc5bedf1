"""From one replica to another: requests over connections that are kept. Far cheaper than a client that can do all."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol, cast
from urllib.parse import urlsplit

import httptools

_IDLE_SECONDS = 20.0  # the service closes a connection after 30 idle seconds: this side lets go of it first
_MOST_IDLE = 64


class NotSent(Exception):
    """The other replica cannot be reached: nothing was asked of it."""


class NoAnswer(Exception):
    """The other replica was asked, and may have done what it was asked."""


class Answer(NamedTuple):
    """What another replica answered."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Way(Protocol):
    """How another replica is reached; `Hops` is the usual one."""

    async def send(self, address: str, request: bytes) -> Answer:
        """Send a whole request, and wait for the whole answer."""

    def stream(self, address: str, request: bytes) -> AsyncIterator[Answer | bytes]:
        """Send a request; the answer without its body comes first, then parts of the body."""

    async def close(self) -> None:
        """Close all connections."""


class _Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.closed = False
        self.parts: asyncio.Queue[bytes | None] | None = None  # of a body that is streamed
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(NoAnswer("the connection was closed"))
        if self.parts is not None:
            self.parts.put_nowait(None)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        if self.parts is not None:
            self._tell(b"")

    def on_body(self, body: bytes) -> None:
        if self.parts is not None:
            self.parts.put_nowait(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self.parts is not None:
            self.parts.put_nowait(None)
        else:
            self._tell(b"".join(self._body))
        if not self._parser.should_keep_alive():
            self.close()

    def _tell(self, body: bytes) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(self._parser.get_status_code(), self._headers, body))

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        """Send a request; the answer to it."""
        assert self._transport is not None
        self._begin()
        self._answer = asyncio.get_running_loop().create_future()
        if self.closed:
            self._answer.set_exception(NoAnswer("the connection was closed"))
        else:
            self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """Close it now."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()


class Hops:
    """Connections to other replicas."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._idle: dict[str, deque[_Connection]] = {}
        self._secure: ssl.SSLContext | None = None

    async def send(self, address: str, request: bytes) -> Answer:
        """Send a whole request, and wait for the whole answer."""
        connection = await self._connect(address)
        try:
            async with asyncio.timeout(self._seconds):
                answer = await connection.ask(request)
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError):
                raise NoAnswer(f"{address} did not answer within {self._seconds:g} s") from None
            raise
        if not connection.closed:
            connection.idle_since = asyncio.get_running_loop().time()
            idle = self._idle.setdefault(address, deque())
            idle.append(connection)
            if len(idle) > _MOST_IDLE:
                idle.popleft().close()
        return answer

    async def stream(self, address: str, request: bytes) -> AsyncIterator[Answer | bytes]:
        """Send a request; the answer without its body comes first, then parts of the body as they come."""
        connection = await self._connect(address)
        connection.parts = asyncio.Queue()
        try:
            async with asyncio.timeout(self._seconds):
                head = await connection.ask(request)
            yield head
            while (part := await connection.parts.get()) is not None:
                yield part
        except TimeoutError:
            raise NoAnswer(f"{address} did not answer within {self._seconds:g} s") from None
        finally:
            connection.close()

    async def _connect(self, address: str) -> _Connection:
        loop = asyncio.get_running_loop()
        idle = self._idle.get(address)
        while idle:
            connection = idle.pop()
            if not connection.closed and loop.time() - connection.idle_since < _IDLE_SECONDS:
                return connection
            connection.close()
        parts = urlsplit(address)
        secure = parts.scheme == "https"
        if secure and self._secure is None:
            self._secure = ssl.create_default_context()
        try:
            async with asyncio.timeout(min(1.0, self._seconds)):
                _, made = await loop.create_connection(
                    _Connection,
                    parts.hostname or "",
                    parts.port or (443 if secure else 80),
                    ssl=self._secure if secure else None,
                )
        except (OSError, TimeoutError) as error:
            raise NotSent(f"{address} cannot be reached: {error}") from error
        return made

    async def close(self) -> None:
        """Close all connections."""
        for idle in self._idle.values():
            for connection in idle:
                with contextlib.suppress(Exception):
                    connection.close()
        self._idle.clear()


def request_bytes(
    method: str, target: str, host: str, headers: list[tuple[bytes, bytes]], body: bytes
) -> bytes:
    r"""A request as it goes over the wire.

    Parameters
    ----------
    method : str
        Of HTTP.
    target : str
        Path and query.
    host : str
        The host that is asked.
    headers : list of tuple of (bytes, bytes)
        All but Host and Content-Length.
    body : bytes
        The body.

    Returns
    -------
    bytes
        The whole of it.

    Examples
    --------
    >>> request_bytes("GET", "/livez", "here", [(b"accept", b"*/*")], b"")
    b'GET /livez HTTP/1.1\r\nhost: here\r\naccept: */*\r\ncontent-length: 0\r\n\r\n'
    """
    lines = [f"{method} {target} HTTP/1.1\r\nhost: {host}".encode("latin-1")]
    lines += [name + b": " + value for name, value in headers]
    lines.append(b"content-length: " + str(len(body)).encode() + b"\r\n\r\n")
    return b"\r\n".join(lines) + body
