"""One endpoint as an ASGI application: reads JSON or msgpack, checks key and limits, answers in the same format."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
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
from rankloop.serving.http.stepping import begin_task, go_on
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
_NAMED = re.compile(r"^Object (?:missing required|contains unknown) field `([^`]*)`")


def peer_of(scope: Scope) -> str | None:
    """The address that the connection comes from, as the system says; None where there is none."""
    client = scope.get("client")
    return client[0] if client else None


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The headers, the last of each name."""
    return dict(scope["headers"])


class Answer(NamedTuple):
    """A whole answer: status, body, type, and headers beside the usual ones."""

    status: int
    body: bytes
    kind: bytes
    more: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """All its headers."""
        length = (b"content-length", str(len(self.body)).encode())
        return [(b"content-type", self.kind), length, _NOSNIFF, *self.more]


class Form(NamedTuple):
    """How a request is written, and whether its answer is msgpack."""

    sent: bytes
    packed: bool


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
        form = form_of(headers)
        try:
            caller = self._guard.check(
                headers, self._endpoint.role, peer=peer_of(scope), ranker=params.get("name")
            )
            asked = Asked(params | self._query(scope), caller)
            body = None
            if self._endpoint.request is not None:
                raw = await receive_body(headers, receive, self._engine.limits.body_bytes)
                body = self._decode(form.sent, raw)
        except RequestError as error:
            answer = error_answer(error, packed=form.packed)
        else:
            answer = await self._answer(asked, body, headers, packed=form.packed)
        await send_answer(send, answer)

    def begin(
        self,
        headers: dict[bytes, bytes],
        form: Form,
        params: dict[str, str],
        raw: bytes,
        peer: str | None,
        done: Callable[[Answer | None], None],
    ) -> None:
        """Answer a request that is there as a whole; `done` gets the answer, None where there is none.

        Where everything is at hand but the disk, no task is made for it: that is most of what a request costs.
        """
        try:
            caller = self._guard.check(headers, self._endpoint.role, peer=peer, ranker=params["name"])
            body = self._decode(form.sent, raw)
        except RequestError as error:
            done(error_answer(error, packed=form.packed))
            return
        at_hand = self._endpoint.at_hand(self._engine, params["name"], body) and tracing.tracer is None
        answer = self._answer(Asked(params, caller), body, headers, packed=form.packed, at_hand=at_hand)
        if at_hand:
            go_on(answer, done)
        else:
            begin_task(answer, done)

    async def _answer(
        self, asked: Asked, body: Any, headers: dict[bytes, bytes], *, packed: bool, at_hand: bool = False
    ) -> Answer:
        reach("after-decode")
        status = 200
        try:
            if at_hand:  # and nobody traces it
                answer = await self._endpoint.handle(self._engine, asked, body)
            else:
                with tracing.request(self._name, headers, asked.get("name")):
                    if not self._endpoint.reads_much:
                        answer = await self._endpoint.handle(self._engine, asked, body)
                    else:
                        async with asyncio.timeout(self._engine.limits.store_seconds):
                            answer = await self._endpoint.handle(self._engine, asked, body)
            if isinstance(answer, Created):
                status, answer = 201, answer.answer
        except Exception as error:
            return error_answer(as_request_error(error, self._name), packed=packed)
        if packed:
            return Answer(status, _msgpack(answer), b"application/msgpack")
        return Answer(status, _json(answer), b"application/json")

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
        if sent == _JSON:
            return decoded(self._from_json, body or b"{}")
        return decoded(self._from_msgpack, body or b"\x80")


class _Internal(RequestError):
    status, code = 500, "internal"


def decoded(decode: Callable[[bytes], Any], body: bytes) -> Any:
    """A body as `decode` reads it; `RequestError` with the field where it is not what is expected."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        inside, named = _FIELD.search(str(error)), _NAMED.search(str(error))
        parts = [found[1] for found in (inside, named) if found and found[1]]
        raise RequestError(_FIELD.sub("", str(error)), field=".".join(parts) or None) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Malformed(f"the body cannot be read: {error}") from None


def as_request_error(error: Exception, what: str) -> RequestError:
    """What a caller is told of an error in `what`; one that nobody expected is logged."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, StoreError | TimeoutError):
        return Unavailable(str(error) or "the store did not answer in time")
    _log.error("%s failed", what, exc_info=error)
    return _Internal("internal error; the service's log has the details")


def form_of(headers: dict[bytes, bytes]) -> Form:
    """How a request with these headers is written, and how it is answered."""
    sent = _sent(headers.get(b"content-type", b""))
    return Form(sent, _wants_msgpack(headers.get(b"accept", b"*/*"), sent))


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
    await send_answer(send, Answer(status, body, kind, tuple(more or ())))


async def send_answer(send: Send, answer: Answer) -> None:
    """Send a whole answer."""
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": answer.body})


def error_headers(error: RequestError) -> dict[str, str]:
    """What a caller is told about trying again."""
    more: dict[str, str] = {}
    if error.retry_after is not None:
        more["retry-after"] = str(error.retry_after)
    if isinstance(error, Unauthorized):
        more["www-authenticate"] = "Bearer"
    return more


def error_answer(error: RequestError, *, packed: bool = False) -> Answer:
    """An error in the common form."""
    told = ErrorAnswer(ErrorBody(error.code, error.message, error.field))
    more = tuple((name.encode(), value.encode()) for name, value in error_headers(error).items())
    if packed:
        return Answer(error.status, _msgpack(told), b"application/msgpack", more)
    return Answer(error.status, _json(told), b"application/json", more)


async def send_error(send: Send, error: RequestError) -> None:
    """Send an error in the common form."""
    await send_answer(send, error_answer(error))
