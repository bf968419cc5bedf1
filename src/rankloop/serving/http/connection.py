"""Connections with limits: how many, from one address too, how long a header and a body may be and may take."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rankloop.serving.limits import Limits

_HEADER, _BODY, _ANSWER, _IDLE = range(4)
_LOOK_SECONDS = 1.0
_STALLED_SECONDS = 30.0  # a caller that does not read its answer
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

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
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
        if self._phase == _HEADER:
            self._header_bytes += len(data)
        super().data_received(data)
        # What came with the end of the header may be body: only a header that goes on is too long.
        if self._phase == _HEADER and self._header_bytes > self.table.limits.header_bytes:
            self._refuse(431)

    def on_message_begin(self) -> None:
        """A request begins."""
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


def limited(limits: Limits) -> type[LimitedConnection]:
    """The class of the connections of one server."""
    return type("Connection", (LimitedConnection,), {"table": Connections(limits)})
