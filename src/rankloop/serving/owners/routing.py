"""A request reaches the owner of its ranker: it is forwarded there, or the caller is told where that is."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs

import httpx
from starlette.responses import Response, StreamingResponse

from rankloop.serving.errors import RequestError, Unavailable
from rankloop.serving.http.endpoint import Receive, Scope, Send, headers_of, receive_body, send_error
from rankloop.serving.limits import Limits
from rankloop.serving.owners.ownership import Ownership
from rankloop.serving.stores.contract import Member

OWNER = "x-rankloop-owner"
FORWARDED = "x-rankloop-forwarded"
_PREFIX = "/v1/rankers/"
_STREAM = "/v1/stream"
# What may be sent to another replica although the first may have done it: their rows are there once.
_REPEATABLE = frozenset({"rank", "activate", "feedback"})
_KEPT = ("content-type", "retry-after", "www-authenticate", "x-content-type-options")
_HOP = frozenset({b"host", b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"upgrade"})
_SENT_ON = FORWARDED.encode()


class Router:
    """Stands before the application of one replica.

    Parameters
    ----------
    ownership : Ownership
        Who owns what.
    limits : Limits
        How long a body may be.
    forward : bool
        Whether to forward a request that another replica should get; otherwise it is answered with 307.
    transport : httpx.AsyncBaseTransport, optional
        Another way to reach the other replicas, for tests.
    """

    def __init__(
        self,
        ownership: Ownership,
        *,
        limits: Limits,
        forward: bool,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.ownership = ownership
        self.forwarded = 0
        self._limits = limits
        self._forward = forward
        self._http = httpx.AsyncClient(
            transport=transport,
            timeout=httpx.Timeout(ownership.seconds, connect=min(1.0, ownership.seconds)),
            limits=httpx.Limits(max_connections=256, keepalive_expiry=20.0),
            trust_env=False,
        )

    async def close(self) -> None:
        """Close all connections to other replicas."""
        await self._http.aclose()

    async def route(self, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Answer a request that another replica should get.

        Parameters
        ----------
        scope : mapping
            The request, as ASGI has it.
        receive : callable
            Gives its body.
        send : callable
            Takes the answer.

        Returns
        -------
        callable or None
            What gives the body to the application of this replica, which is to answer; None where that is done.
        """
        name = ranker_of(scope)
        if name is None:
            return receive
        headers = headers_of(scope)
        if _SENT_ON in headers or self.ownership.owns(name):
            if not self.ownership.owns(name):
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
        return _again(body, receive)

    async def _redirect(self, scope: Scope, receive: Receive, send: Send, owner: Member) -> None:
        headers = {"location": _target(owner, scope), OWNER: owner.address, "cache-control": "no-store"}
        await Response(b"", 307, headers)(scope, receive, send)

    async def _try(self, owner: Member, scope: Scope, body: bytes, receive: Receive, send: Send) -> bool:
        """Send it to the owner, and its answer back; whether there was one, or may have been."""
        request = self._http.build_request(
            scope["method"], _target(owner, scope), content=body, headers=self._headers(scope)
        )
        try:
            if scope["path"] == _STREAM:
                await self._stream(request, owner, scope, receive, send)
            else:
                await self._answer(await self._http.send(request), owner, send)
        except httpx.RequestError as error:
            self.ownership.did_not_answer(owner.address)
            never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            if never_sent or scope["method"] == "GET" or _action(scope["path"]) in _REPEATABLE:
                return False
            await send_error(
                send, Unavailable(f"the owner of this ranker, {owner.address}, did not answer: try again")
            )
        return True

    async def _answer(self, response: httpx.Response, owner: Member, send: Send) -> None:
        self.forwarded += 1
        headers = [
            (name.encode(), response.headers[name].encode()) for name in _KEPT if name in response.headers
        ]
        headers += [
            (b"content-length", str(len(response.content)).encode()),
            (OWNER.encode(), owner.address.encode()),
        ]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": response.content})

    async def _stream(
        self, request: httpx.Request, owner: Member, scope: Scope, receive: Receive, send: Send
    ) -> None:
        request.extensions["timeout"] = httpx.Timeout(None, connect=1.0).as_dict()
        response = await self._http.send(request, stream=True)

        async def parts() -> AsyncIterator[bytes]:
            with contextlib.suppress(httpx.RequestError):  # the page connects again, and is routed anew
                async for part in response.aiter_raw():
                    yield part
            await response.aclose()

        headers = {name: response.headers[name] for name in _KEPT if name in response.headers}
        told = StreamingResponse(parts(), response.status_code, {**headers, OWNER: owner.address})
        await told(scope, receive, send)

    async def ask_others(self, scope: Scope) -> list[Any]:
        """What the other replicas answer to the same GET, decoded from JSON; those that do not are left out.

        Parameters
        ----------
        scope : mapping
            The request, as ASGI has it.

        Returns
        -------
        list of tuple of (str, object)
            The address of each replica, and its answer.
        """
        found = []
        headers = {**self._headers(scope), "accept": "application/json"}
        for member in self.ownership.members:
            if member.address == self.ownership.address:
                continue
            with contextlib.suppress(httpx.RequestError, ValueError):
                response = await self._http.get(_target(member, scope), headers=headers)
                if response.is_success:
                    found.append((member.address, response.json()))
        return found

    def _headers(self, scope: Scope) -> dict[str, str]:
        kept = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name not in _HOP
        }
        return {**kept, FORWARDED: self.ownership.replica}


def ranker_of(scope: Scope) -> str | None:
    """The ranker that a request is about; None where it is about none, or about all.

    Parameters
    ----------
    scope : mapping
        The request, as ASGI has it.

    Returns
    -------
    str or None
        Its name.

    Examples
    --------
    >>> ranker_of({"path": "/v1/rankers/unwind/rank", "query_string": b""})
    'unwind'
    >>> ranker_of({"path": "/v1/rankers", "query_string": b""})
    """
    path: str = scope["path"]
    if path.startswith(_PREFIX):
        return path[len(_PREFIX) :].partition("/")[0] or None
    if path == _STREAM:
        return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get("ranker", [])), None)
    return None


def _action(path: str) -> str:
    return path[len(_PREFIX) :].partition("/")[2]


def _target(owner: Member, scope: Scope) -> str:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return owner.address + path.decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was received already, and then whatever comes after it."""
    given = False

    async def replayed() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
