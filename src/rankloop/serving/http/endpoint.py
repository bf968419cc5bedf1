"""One endpoint as an ASGI application: reads JSON or msgpack, checks key and limits, answers in the same format."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from rankloop.serving.auth import Guard
from rankloop.serving.engine import Engine
from rankloop.serving.errors import (
    Malformed,
    RequestError,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unsupported,
)
from rankloop.serving.failpoints import reach
from rankloop.serving.http.asked import Asked
from rankloop.serving.http.endpoints import Created, Endpoint
from rankloop.serving.schemas import ErrorAnswer, ErrorBody
from rankloop.serving.stores.contract import StoreError
from rankloop.serving.tracing import tracing

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

_log = logging.getLogger("rankloop.serving")
_json = msgspec.json.Encoder().encode
_msgpack = msgspec.msgpack.Encoder().encode
_MSGPACK = (b"application/msgpack", b"application/x-msgpack", b"application/vnd.msgpack")
_JSON = b"application/json"
_SPOKEN = (_JSON, *_MSGPACK)
_NOSNIFF = (b"x-content-type-options", b"nosniff")
_FIELD = re.compile(r" - at `\$\.?([^`]*)`$")


def peer_of(scope: Scope) -> str | None:
    """The address that the connection comes from, as the system says; None where there is none."""
    client = scope.get("client")
    return client[0] if client else None


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The headers, the last of each name."""
    return dict(scope["headers"])


class EndpointApp:
    """Serves one endpoint."""

    def __init__(self, endpoint: Endpoint, engine: Engine, guard: Guard) -> None:
        self._endpoint = endpoint
        self._engine = engine
        self._guard = guard
        self._name = f"{endpoint.method} {endpoint.path}"
        if endpoint.request is not None:
            self._from_json = msgspec.json.Decoder(endpoint.request).decode
            self._from_msgpack = msgspec.msgpack.Decoder(endpoint.request).decode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        await self.serve(scope, receive, send, scope["path_params"])

    async def serve(self, scope: Scope, receive: Receive, send: Send, params: dict[str, str]) -> None:
        """Answer one request."""
        headers = headers_of(scope)
        sent = _sent(headers.get(b"content-type", b""))
        packed = _wants_msgpack(headers.get(b"accept", b"*/*"), sent)
        try:
            caller = self._guard.check(
                headers, self._endpoint.role, peer=peer_of(scope), ranker=params.get("name")
            )
            asked = Asked(params | self._query(scope), caller)
            body = None
            if self._endpoint.request is not None:
                raw = await receive_body(headers, receive, self._engine.limits.body_bytes)
                body = self._decode(sent, raw)
            reach("after-decode")
            with tracing.request(self._name, headers, params.get("name")):
                answer = await self._handle(asked, body)
            status = 200
            if isinstance(answer, Created):
                status, answer = 201, answer.answer
        except RequestError as error:
            await send_error(send, error, packed=packed)
            return
        except (StoreError, TimeoutError) as error:
            await send_error(
                send, Unavailable(str(error) or "the store did not answer in time"), packed=packed
            )
            return
        except Exception:
            _log.exception("%s %s failed", scope["method"], self._endpoint.path)
            await send_error(
                send, _Internal("internal error; the service's log has the details"), packed=packed
            )
            return
        if packed:
            await send_bytes(send, status, _msgpack(answer), b"application/msgpack")
        else:
            await send_bytes(send, status, _json(answer), b"application/json")

    async def _handle(self, asked: Asked, body: Any) -> Any:
        if not self._endpoint.reads_much:
            return await self._endpoint.handle(self._engine, asked, body)
        async with asyncio.timeout(self._engine.limits.store_seconds):
            return await self._endpoint.handle(self._engine, asked, body)

    def _query(self, scope: Scope) -> dict[str, str]:
        """What the query says; names that mean nothing here are refused where there are any that do."""
        known = self._endpoint.query
        if not known:
            return {}
        found = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
        for name in found:
            if name not in {one for one, _ in known}:
                raise RequestError(f"there is no {name!r} here", field=name)
        return found

    def _decode(self, sent: bytes, body: bytes) -> Any:
        if sent not in _SPOKEN:
            raise Unsupported("Content-Type must be application/json or application/msgpack")
        try:
            if sent == _JSON:
                return self._from_json(body or b"{}")
            return self._from_msgpack(body or b"\x80")
        except msgspec.ValidationError as error:
            found = _FIELD.search(str(error))
            raise RequestError(
                _FIELD.sub("", str(error)), field=(found[1] or None) if found else None
            ) from None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise Malformed(f"the body cannot be read: {error}") from None


class _Internal(RequestError):
    status, code = 500, "internal"


@functools.lru_cache(maxsize=256)
def _sent(content_type: bytes) -> bytes:
    return content_type.split(b";")[0].strip().lower()


@functools.lru_cache(maxsize=256)
def _wants_msgpack(accept: bytes, sent: bytes) -> bool:
    accept = accept.lower()
    if any(kind in accept for kind in _MSGPACK):
        return True
    return b"json" not in accept and sent in _MSGPACK


async def receive_body(headers: dict[bytes, bytes], receive: Receive, most: int) -> bytes:
    """The body, as long as it is not too long."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > most:
        raise TooLarge(f"a body may have {most} bytes, this one says {int(length)}")
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Malformed("the caller closed the connection")
        body += message.get("body", b"")
        if len(body) > most:
            raise TooLarge(f"a body may have {most} bytes, this one has more")
        if not message.get("more_body", False):
            return body


async def send_bytes(
    send: Send, status: int, body: bytes, kind: bytes, more: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send a whole answer."""
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        _NOSNIFF,
        *(more or ()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def error_headers(error: RequestError) -> dict[str, str]:
    """What a caller is told about trying again."""
    more: dict[str, str] = {}
    if error.retry_after is not None:
        more["retry-after"] = str(error.retry_after)
    if isinstance(error, Unauthorized):
        more["www-authenticate"] = "Bearer"
    return more


async def send_error(send: Send, error: RequestError, *, packed: bool = False) -> None:
    """Send an error in the common form."""
    answer = ErrorAnswer(ErrorBody(error.code, error.message, error.field))
    more = [(name.encode(), value.encode()) for name, value in error_headers(error).items()]
    if packed:
        await send_bytes(send, error.status, _msgpack(answer), b"application/msgpack", more)
    else:
        await send_bytes(send, error.status, _json(answer), b"application/json", more)
