"""Connections with limits: how many, from one address too, how much of a request may wait, and how long.

uvicorn bounds neither a header, nor what is queued behind a request, nor the time that either takes. So between the
socket and uvicorn's own protocol stands one that reads no more than the present request needs; the application, which
ASGI calls with each request, tells it where that is. What comes early stays with the kernel, and its sender waits.
Nothing is parsed here, and only the interfaces of asyncio and ASGI are used.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

import uvicorn

from rankloop.serving.admission import Limits

# A connection waits for a request, or gets its header ("head"); gets its body ("body"); waits for the answer
# ("answer"); was answered, and the rest of the body still comes ("rest"); was answered, and in the next turn of the
# event loop begins what had come with this request already ("turn"); or was refused ("refused").
State = Literal["head", "body", "answer", "rest", "turn", "refused"]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]

_SLICE = 4_096  # bytes read at once where it is not known how many belong to this request
_PIECE = 65_536  # where it is
_LOOK_SECONDS = 1.0
_STALLED_SECONDS = 30.0  # a caller that does not read its answer
_SPARE_FILES = 100  # for the store, the page, the logs
_REASONS = {
    408: ("Request Timeout", "timeout", "the request did not arrive in time"),
    429: ("Too Many Requests", "busy", "limit reached: connections from one address"),
    431: ("Request Header Fields Too Large", "too_large", "the header is too long"),
    503: ("Service Unavailable", "unavailable", "limit reached: connections"),
}


class Connections:
    """All connections of a server, and the application that it calls. Once a second the slow ones are closed."""

    def __init__(self, app: Asgi, limits: Limits) -> None:
        self.limits = limits
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = min(limits.connections, max(1, files - _SPARE_FILES))
        self.open: set[Connection] = set()
        self.per_address: Counter[str] = Counter()
        self.refused = 0
        self.cut = 0
        self.scratch = memoryview(bytearray(_PIECE))  # of whoever reads: what was read is copied at once
        self._app = app
        self._by_peer: dict[tuple[str, int], Connection] = {}
        self._timer: asyncio.TimerHandle | None = None

    def stand_before(self, config: uvicorn.Config) -> None:
        """Let the server that is made of this configuration read from its connections through these."""
        config.load()
        make = config.http_protocol_class
        config.http_protocol_class = cast(Any, lambda **given: Connection(self, make(**given)))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI: the header of a request is there."""
        connection = self._by_peer.get(scope["client"]) if scope["type"] == "http" else None
        if connection is None:
            await self._app(scope, receive, send)
            return
        connection.begin(scope["headers"])

        async def counted() -> Any:
            message = await receive()
            connection.received(message)
            return message

        try:
            await self._app(scope, counted, send)
        finally:
            connection.end()

    def admit(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> int | None:
        """Count it; the status that it is refused with where there are too many."""
        self.open.add(connection)
        self.per_address[connection.peer[0]] += 1
        if self._timer is None:
            self._timer = loop.call_later(_LOOK_SECONDS, self._look, loop)
        if len(self.open) > self.most:
            return 503
        if self.per_address[connection.peer[0]] > self.limits.connections_per_address:
            return 429
        self._by_peer[connection.peer] = connection
        return None

    def forget(self, connection: Connection) -> None:
        self.open.discard(connection)
        address = connection.peer[0]
        self.per_address[address] -= 1
        if not self.per_address[address]:
            del self.per_address[address]
        if self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        for connection in list(self.open):
            connection.close_if_overdue(loop.time())
        if self.open:
            self._timer = loop.call_later(_LOOK_SECONDS, self._look, loop)


class Connection(asyncio.BufferedProtocol):
    """One connection, in front of the protocol that the server has made for it."""

    def __init__(self, table: Connections, server: asyncio.Protocol) -> None:
        self._table = table
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._state: State = "head"
        self._since = self._loop.time()  # when the state began, or the header that comes
        self._stalled: float | None = None
        self._waits = True  # for a first byte, and nothing else closes it; later the server's own timer does
        self._n_requests = 0
        self._head_bytes = 0
        self._length: int | None = 0  # bytes of the body; None where only their end will tell
        self._left: int | None = 0  # of them: those that are still to come, at most
        self._given = 0  # of them: those that the application has
        self._expects = False  # to be asked for the body, and sends none until then
        self._held = b""  # what came before its turn
        self.peer = ("", 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.peer = (str(peer[0]), int(peer[1]))
        status = self._table.admit(self, self._loop)
        if status is None:
            self._server.connection_made(transport)
        else:
            self._table.refused += 1
            self._server = asyncio.Protocol()
            self._refuse(status)

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.forget(self)
        self._server.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes are to go: no more of them than may come now."""
        known = self._left if self._state in ("body", "rest") else None
        return self._table.scratch[: _SLICE if known is None else min(_PIECE, known)]

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._table.scratch[:nbytes])
        if self._state in ("answer", "turn"):
            self._held += data
            self._transport.pause_reading()
        elif self._state != "refused":
            self._take(data)

    def eof_received(self) -> bool | None:
        return self._server.eof_received()

    def pause_writing(self) -> None:
        self._stalled = self._loop.time()
        self._server.pause_writing()

    def resume_writing(self) -> None:
        self._stalled = None
        self._server.resume_writing()

    def _take(self, data: bytes) -> None:
        """Bytes of the present request."""
        if self._state == "head":
            if not self._head_bytes:
                self._since, self._waits = self._loop.time(), True
            elif self._head_bytes > self._table.limits.header_bytes:
                self._refuse(431)
                return
            self._head_bytes += len(data)
            self._server.data_received(data)
        else:
            self._server.data_received(data)
            if self._left is not None:
                self._left -= len(data)
                if self._left <= 0 and self._state == "rest":
                    self._go_on_soon("turn")
                elif self._left <= 0:
                    self._state = "answer"
                return
        # Whether a request has begun, or ended, is told in the next turn of the loop: until then no more than this.
        if len(data) >= _SLICE and self._transport.is_reading():
            self._transport.pause_reading()
            self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def begin(self, headers: list[tuple[bytes, bytes]]) -> None:
        """The header of a request is there, and it is being answered."""
        if self._state == "refused":
            return
        self._head_bytes, self._waits, self._since = 0, False, self._loop.time()
        self._length, self._given, self._expects = 0, 0, False
        self._n_requests += 1
        for name, value in headers:
            if name == b"content-length":
                self._length = int(value)
            elif name == b"transfer-encoding":
                self._length = None
            elif name == b"expect":
                self._expects = True
        self._left = self._length
        self._state = "answer" if self._length == 0 else "body"
        if self._held and self._state == "body":
            self._go_on_soon("body")  # by then it is known whether the body was there already

    def received(self, message: Any) -> None:
        """The application got all of the body that is there."""
        if self._state != "body":
            return
        self._given += len(message.get("body", b""))
        if self._length is not None:
            self._left = self._length - self._given
        if self._left == 0 or not message.get("more_body", False):
            self._state = "answer"

    def end(self) -> None:
        if self._state == "answer":
            self._go_on_soon("turn")
        elif self._state == "body":
            # It was refused before all of it came. The server drops the rest, of which time and size are bounded, so
            # that the caller gets to read why. Where it cannot be known which bytes are the rest, the connection ends.
            most = 2 * self._table.limits.body_bytes
            if self._left is None or self._left > most or (self._expects and not self._given):
                self._transport.close()
            else:
                self._since = self._loop.time()
                self._go_on_soon("rest")

    def _go_on_soon(self, state: State) -> None:
        """Be in this state, and go on with what came before its turn, if that is still so in the next turn."""
        self._state = state
        self._loop.call_soon(self._go_on, state, self._n_requests)

    def _go_on(self, state: State, n_requests: int) -> None:
        if (state, n_requests) != (self._state, self._n_requests) or self._transport.is_closing():
            return  # the server has begun with another request, which it had already, or it has all of this one
        if state == "turn":
            self._state = "head"
        if self._held:
            data, self._held = self._held, b""
            self._transport.resume_reading()
            self._take(data)

    def close_if_overdue(self, now: float) -> None:
        """Close it where the caller took longer than allowed."""
        limits = self._table.limits
        if self._stalled is not None and now - self._stalled > _STALLED_SECONDS:
            self._table.cut += 1
            self._transport.abort()
            return
        allowed = None
        if self._state == "head" and self._waits:
            allowed = limits.header_seconds
        elif self._state == "rest" or (self._state == "body" and not self._given):
            # Once some of the body is there, the application bounds its waits itself.
            allowed = limits.body_seconds
        if self._state == "refused":  # it was told to go, and holds the connection open
            self._transport.abort()
        elif allowed is not None and now - self._since > allowed:
            self._table.cut += 1
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        """Close, and answer with an error where no request has begun."""
        if self._state == "head":
            reason, code, message = _REASONS[status]
            body = f'{{"error":{{"code":"{code}","message":"{message}","field":null}}}}'
            retry = "retry-after: 1\r\n" if status in (429, 503) else ""
            self._transport.write(
                f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\n{retry}"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()
            )
        self._state = "refused"
        if status == 431:
            # The caller still sends. Closed at once it might not read why; so it is with the next look.
            self._transport.pause_reading()
            self._transport.write_eof()
        else:
            self._transport.close()
