"""Requests that come by the thousand over one connection, with the same head: parsed once, answered without ASGI."""

from __future__ import annotations

from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from rankloop.serving.http.app import App
from rankloop.serving.http.endpoint import Answer, EndpointApp, Form, form_of

_ACTIONS = ("rank", "feedback")
_LONGEST_HEAD = 2_000  # bytes
_NEVER = frozenset({b"transfer-encoding", b"upgrade", b"expect", b"connection"})


class Head(NamedTuple):
    """The head of a request that was parsed before; the same bytes mean the same."""

    app: EndpointApp
    params: dict[str, str]  # in the path: the name of the ranker
    headers: dict[bytes, bytes]
    form: Form
    length: int  # of the body


class ShortWay:
    """Knows which requests can go the short way."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._default: list[tuple[bytes, bytes]] = []
        self._first: dict[tuple[int, bytes], bytes] = {}  # by status and type: answers up to their length

    def head(self, scope: Any, data: bytes) -> tuple[bytes, Head] | None:
        """The bytes of the head of a whole request, and what they mean; None where it goes the usual way."""
        end = data.find(b"\r\n\r\n") + 4
        length = len(data) - end
        headers = dict(scope["headers"])
        if (
            end > _LONGEST_HEAD
            or length > self._app.engine.limits.body_bytes
            or scope["method"] != "POST"
            or scope["http_version"] != "1.1"
            or scope["query_string"]
            or len(headers) != len(scope["headers"])
            or headers.get(b"content-length") != str(length).encode()
            or not _NEVER.isdisjoint(headers)
        ):
            return None
        found = self._app.short(scope)
        if found is None or found[1] not in _ACTIONS:
            return None
        endpoint_app, _, name = found
        return data[:end], Head(endpoint_app, {"name": name}, headers, form_of(headers), length)

    def serves(self, head: Head) -> bool:
        """Whether the ranker is still where it was."""
        return True

    def as_bytes(self, answer: Answer, default: list[tuple[bytes, bytes]], *, close: bool) -> bytes:
        """An answer as it goes over the wire."""
        if default is not self._default:
            self._default, self._first = default, {}
        status, body, kind, more = answer
        first = self._first.get((status, kind))
        if first is None:
            first = b"%b%bcontent-type: %b\r\ncontent-length: " % (STATUS_LINE[status], _lines(default), kind)
            self._first[status, kind] = first
        rest = _lines(more) if more else b""
        if close:
            rest += b"connection: close\r\n"
        return b"%b%d\r\nx-content-type-options: nosniff\r\n%b\r\n%b" % (first, len(body), rest, body)


def _lines(headers: list[tuple[bytes, bytes]] | tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join(b"%b: %b\r\n" % one for one in headers)
