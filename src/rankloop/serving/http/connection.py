"""Connections with limits: how many, from one address too, how long a header and a body may be and may take."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rankloop.serving.http.app import App
from rankloop.serving.http.endpoint import Answer
from rankloop.serving.http.short_way import Head, ShortWay
from rankloop.serving.limits import Limits

_HEADER, _BODY, _ANSWER, _IDLE = range(4)
_LOOK_SECONDS = 1.0
_STALLED_SECONDS = 30.0  # a caller that does not read its answer
_HEADS = 8  # that a connection remembers
_SPARE_FILES = 100  # for the store, the page, the logs
_REASONS = {
    408: ("Request Timeout", "timeout", "the request did not arrive in time"),
    413: ("Content Too Large", "too_large", "the body is longer than any may be"),
    429: ("Too Many Requests", "busy", "limit reached: connections from one address"),
    431: ("Request Header Fields Too Large", "too_large", "the header is too long"),
    503: ("Service Unavailable", "unavailable", "limit reached: connections"),
}


class Connections:
    """All connections of a server. Once a second those that took too long are closed."""

    def __init__(self, limits: Limits, short_way: ShortWay | None = None) -> None:
        self.limits = limits
        self.short_way = short_way
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = min(limits.connections, max(1, files - _SPARE_FILES))
        self.open: set[LimitedConnection] = set()
        self.per_address: Counter[str] = Counter()
        self.refused = 0
        self.cut = 0
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, connection: LimitedConnection) -> int | None:
        """Count it; the status that it is refused with where there are too many."""
        self.open.add(connection)
        self.per_address[connection.address] += 1
        if self._timer is None:
            self._timer = connection.loop.call_later(_LOOK_SECONDS, self._look)
        if len(self.open) > self.most:
            return 503
        if self.per_address[connection.address] > self.limits.connections_per_address:
            return 429
        return None

    def forget(self, connection: LimitedConnection) -> None:
        """It is closed."""
        if connection in self.open:
            self.open.discard(connection)
            self.per_address[connection.address] -= 1
            if not self.per_address[connection.address]:
                del self.per_address[connection.address]

    def _look(self) -> None:
        self._timer = None
        for connection in list(self.open):
            connection.close_if_overdue()
        if self.open:
            self._timer = next(iter(self.open)).loop.call_later(_LOOK_SECONDS, self._look)


class LimitedConnection(HttpToolsProtocol):
    """One connection: uvicorn's own, with an end to every wait for the caller."""

    table: ClassVar[Connections]

    def connection_made(self, transport: Any) -> None:
        """A caller connected."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._since = self.loop.time()
        self._phase = _HEADER
        self._header_bytes = self._body_bytes = 0
        self._stalled: float | None = None
        self._refused = False
        self._heads: dict[bytes, Head] = {}  # of requests that came before
        self._begun = self._ended = 0  # requests within the bytes that came last
        self._short = self._closing = False  # a request is on the short way; the server is to stop
        self._held = b""  # what came meanwhile
        status = self.table.admit(self)
        if status is not None:
            self.table.refused += 1
            self._refuse(status)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self.table.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._refused:
            return
        if self._short:
            self._held += data
            self.transport.pause_reading()
            return
        at_start = self._phase == _IDLE or (self._phase == _HEADER and not self._header_bytes)
        if self._phase == _IDLE and self._heads and self._begin_short(data):
            return
        if self._phase == _HEADER:
            self._header_bytes += len(data)
        self._begun = self._ended = 0
        super().data_received(data)
        # What came with the end of the header may be body: only a header that goes on is too long.
        if self._phase == _HEADER and self._header_bytes > self.table.limits.header_bytes:
            self._refuse(431)
        elif at_start and self._begun == self._ended == 1 and len(self._heads) < _HEADS:
            found = self.table.short_way and self.table.short_way.head(self.scope, data)
            if found:
                self._heads[found[0]] = found[1]

    def _begin_short(self, data: bytes) -> bool:
        """Answer a whole request whose head came before, byte for byte; whether it is one."""
        end = data.find(b"\r\n\r\n") + 4
        head = self._heads.get(data[:end])
        way = self.table.short_way
        if (
            head is None
            or way is None
            or len(data) != end + head.length
            or not self.cycle.response_complete
            or self.flow.write_paused
            or not way.serves(head)
        ):
            return False
        self._unset_keepalive_if_required()
        self._phase, self._short = _ANSWER, True
        head.app.begin(head.headers, head.form, head.params, data[end:], self.address, self._end_short)
        return True

    def _end_short(self, answer: Answer | None) -> None:
        self._phase, self._since, self._short = _IDLE, self.loop.time(), False
        if self.transport.is_closing():
            return
        self.server_state.total_requests += 1
        if answer is not None and self.table.short_way is not None:
            default = self.server_state.default_headers
            self.transport.write(self.table.short_way.as_bytes(answer, default, close=self._closing))
        if answer is None or self._closing:
            self.transport.close()
        elif self._held:
            data, self._held = self._held, b""
            self.transport.resume_reading()
            self.data_received(data)

    def shutdown(self) -> None:
        """The server is to stop."""
        if self._short:
            self._closing = True
        else:
            super().shutdown()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._begun += 1
        super().on_message_begin()
        if self._phase != _HEADER:
            self._phase, self._since, self._header_bytes = _HEADER, self.loop.time(), 0

    def on_headers_complete(self) -> None:
        """The header is there."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if self._refused or size > self.table.limits.header_bytes:
            self._refuse(431)
            return
        self._phase, self._since, self._body_bytes = _BODY, self.loop.time(), 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if self._refused:
            return
        self._body_bytes += len(body)
        # The application answers 413 at the limit; a caller that goes on all the same is cut off.
        if self._body_bytes > 2 * self.table.limits.body_bytes:
            self._refuse(413)
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The whole request is there."""
        self._ended += 1
        if self._refused:
            return
        super().on_message_complete()
        self._phase = _IDLE if self.cycle.response_complete else _ANSWER

    def on_response_complete(self) -> None:
        """The whole answer is sent."""
        if self._phase == _ANSWER:
            self._phase = _IDLE
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The caller does not read."""
        self._stalled = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The caller reads again."""
        self._stalled = None
        super().resume_writing()

    def close_if_overdue(self) -> None:
        """Close it where the caller took longer than allowed."""
        limits, now = self.table.limits, self.loop.time()
        if self._stalled is not None and now - self._stalled > _STALLED_SECONDS:
            self.table.cut += 1
            self.transport.abort()
            return
        if self._phase == _IDLE and self.timeout_keep_alive_task is None and self.cycle.response_complete:
            if now - self._since > limits.idle_seconds:  # after the short way, which sets no timer
                self.transport.close()
            return
        allowed = {_HEADER: limits.header_seconds, _BODY: limits.body_seconds}.get(self._phase)
        if allowed is not None and now - self._since > allowed:
            self.table.cut += 1
            if self._refused:  # it was told to go, and holds the connection open
                self.transport.abort()
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        """Answer with an error, unless an answer is under way, and close."""
        if not self._refused and (self.cycle is None or self.cycle.response_complete):
            reason, code, message = _REASONS[status]
            body = f'{{"error":{{"code":"{code}","message":"{message}","field":null}}}}'
            retry = "retry-after: 1\r\n" if status in (429, 503) else ""
            self.transport.write(
                f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\n{retry}"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()
            )
        self._refused = True
        self.transport.close()


def limited(limits: Limits, app: App | None = None) -> type[LimitedConnection]:
    """The class of the connections of one server; with its application, some requests go a short way to it."""
    way = None if app is None else ShortWay(app)
    return type("Connection", (LimitedConnection,), {"table": Connections(limits, way)})
