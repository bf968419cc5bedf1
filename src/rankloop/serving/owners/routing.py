"""A request reaches the owner of its ranker: it is forwarded there, or the caller is told where that is."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.responses import Response, StreamingResponse

from rankloop.serving.errors import RequestError, Unavailable
from rankloop.serving.http.endpoints import Receive, Scope, Send, headers_of, receive_body, send_error
from rankloop.serving.limits import Limits
from rankloop.serving.owners.hop import Answer, Hops, NoAnswer, NotSent, Way, request_bytes
from rankloop.serving.owners.ownership import Ownership
from rankloop.serving.personalizer.door import PERSONALIZER
from rankloop.serving.stores.contract import Member

OWNER = "x-rankloop-owner"
FORWARDED = "x-rankloop-forwarded"
_PREFIX = "/v1/rankers/"
_STREAM = "/v1/stream"
_PERSONALIZER = f"/{PERSONALIZER}/"
# What may be sent to another replica although the first may have done it: their rows are there once.
_REPEATABLE = frozenset({"rank", "activate", "feedback"})
_KEPT = (b"content-type", b"retry-after", b"www-authenticate", b"x-content-type-options")
_HOP = frozenset({b"host", b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"upgrade"})
_SENT_ON = FORWARDED.encode()
_OWNER = OWNER.encode()


class Router:
    """Stands before the application of one replica."""

    def __init__(
        self,
        ownership: Ownership,
        *,
        limits: Limits,
        forward: bool,
        way: Way | None = None,
    ) -> None:
        self.ownership = ownership
        self.forwarded = 0
        self._limits = limits
        self._forward = forward
        self._way = way or Hops(seconds=ownership.seconds)

    async def close(self) -> None:
        """Close all connections to other replicas."""
        await self._way.close()

    async def route(self, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Answer a request that another replica should get."""
        name = ranker_of(scope)
        if name is None or self.ownership.owns(name):
            return receive
        headers = headers_of(scope)
        if _SENT_ON in headers:
            self.ownership.adopt(name)
            return receive
        if not self._forward:
            await self._redirect(scope, receive, send, self.ownership.owner(name))
            return None
        try:
            body = await receive_body(headers, receive, self._limits.body_bytes)
        except RequestError as error:
            await send_error(send, error)
            return None
        for _ in range(len(self.ownership.members)):
            owner = self.ownership.owner(name)
            if owner.address == self.ownership.address:
                break
            if await self._try(owner, scope, body, receive, send):
                return None
        if not self.ownership.owns(name):
            self.ownership.adopt(name)
        return again(body, receive)

    async def _redirect(self, scope: Scope, receive: Receive, send: Send, owner: Member) -> None:
        headers = {
            "location": owner.address + _path(scope),
            OWNER: owner.address,
            "cache-control": "no-store",
        }
        await Response(b"", 307, headers)(scope, receive, send)

    async def _try(self, owner: Member, scope: Scope, body: bytes, receive: Receive, send: Send) -> bool:
        """Send it to the owner, and its answer back; whether there was one, or may have been."""
        request = self._request(owner, scope, body)
        try:
            if scope["path"] == _STREAM:
                await self._stream(owner, request, scope, receive, send)
            else:
                await self._tell(await self._way.send(owner.address, request), owner, send)
        except (NotSent, NoAnswer) as error:
            self.ownership.did_not_answer(owner.address)
            may_be_done = isinstance(error, NoAnswer) and scope["method"] != "GET"
            if not may_be_done or _action(scope["path"]) in _REPEATABLE:
                return False
            await send_error(
                send, Unavailable(f"the owner of this ranker, {owner.address}, did not answer: try again")
            )
        return True

    async def _tell(self, answer: Answer, owner: Member, send: Send) -> None:
        self.forwarded += 1
        headers = [
            *((name, answer.headers[name]) for name in _KEPT if name in answer.headers),
            (b"content-length", str(len(answer.body)).encode()),
            (_OWNER, owner.address.encode()),
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _stream(
        self, owner: Member, request: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        parts = self._way.stream(owner.address, request)
        head = await anext(parts)
        assert isinstance(head, Answer)

        async def body() -> AsyncIterator[bytes]:
            with contextlib.suppress(NoAnswer):  # the page connects again, and is routed anew
                async for part in parts:
                    if isinstance(part, bytes):
                        yield part

        headers = {
            name.decode(): head.headers[name].decode("latin-1") for name in _KEPT if name in head.headers
        }
        await StreamingResponse(body(), head.status, {**headers, OWNER: owner.address})(scope, receive, send)

    async def ask_others(self, scope: Scope) -> list[tuple[str, Any]]:
        """What the other replicas answer to the same GET, decoded from JSON; those that do not are left out."""
        found = []
        for member in self.ownership.members:
            if member.address == self.ownership.address:
                continue
            with contextlib.suppress(NotSent, NoAnswer, ValueError):
                answer = await self._way.send(member.address, self._request(member, scope, b""))
                if answer.status == 200:
                    found.append((member.address, json.loads(answer.body)))
        return found

    async def stream_from(self, address: str, scope: Scope) -> AsyncIterator[bytes]:
        """What another replica answers to the same GET, as it comes; nothing where it refuses."""
        parts = self._way.stream(address, self._request(Member("", address), scope, b""))
        refused = False
        async for part in parts:
            if isinstance(part, Answer):
                refused = part.status != 200
            elif not refused:
                yield part

    def _request(self, owner: Member, scope: Scope, body: bytes) -> bytes:
        headers = [one for one in scope["headers"] if one[0] not in _HOP]
        headers.append((_SENT_ON, self.ownership.address.encode()))
        return request_bytes(scope["method"], _path(scope), urlsplit(owner.address).netloc, headers, body)


def ranker_of(scope: Scope) -> str | None:
    """The ranker that a request is about; None where it is about none, or about all.

    Examples
    --------
    >>> ranker_of({"path": "/v1/rankers/unwind/rank", "query_string": b""})
    'unwind'
    >>> ranker_of({"path": "/v1/rankers", "query_string": b""})
    """
    path: str = scope["path"]
    if path.startswith(_PREFIX):
        return path[len(_PREFIX) :].partition("/")[0] or None
    if path.startswith(_PERSONALIZER):
        return PERSONALIZER
    if path == _STREAM:
        return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get("ranker", [])), None)
    return None


def _action(path: str) -> str:
    return path[len(_PREFIX) :].partition("/")[2]


def _path(scope: Scope) -> str:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")


def again(body: bytes, receive: Receive) -> Receive:
    """A body that was received already, and then whatever comes after it."""
    given = False

    async def replayed() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
