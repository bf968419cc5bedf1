"""What stands before the applications of several databases: a request goes to the one that has its ranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from rankloop.serving.databases.directory import Directory
from rankloop.serving.engine import Engine
from rankloop.serving.errors import RequestError, Unavailable
from rankloop.serving.http.app import App
from rankloop.serving.http.endpoints import MOVING, Receive, Scope, Send, headers_of, receive_body, send_error
from rankloop.serving.owners.front import Front
from rankloop.serving.owners.routing import again, ranker_of
from rankloop.serving.stores.contract import StoreError


class Part(NamedTuple):
    """What serves the rankers of one database."""

    app: App | Front
    engine: Engine
    label: str


class _Named(msgspec.Struct):
    name: str


class Switch:
    """An ASGI application in front of those of several databases.

    What is about no single ranker goes to the first, which knows the engines of all.
    """

    def __init__(self, first: App, parts: Sequence[Part], directory: Directory) -> None:
        self._first = first
        self._parts = list(parts)
        self._directory = directory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._parts[0].app(scope, receive, send)
            return
        try:
            name = ranker_of(scope)
            if name is not None:
                await self._serve(name, scope, receive, send)
            elif scope["method"] == "POST" and scope["path"] == "/v1/rankers":
                await self._create(scope, receive, send)
            else:
                await self._parts[0].app(scope, receive, send)
        except RequestError as error:
            await send_error(send, error)
        except StoreError as error:
            await send_error(send, Unavailable(str(error)))

    async def _create(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        body = await receive_body(headers, receive, self._first.engine.limits.body_bytes)
        number = 0  # whoever may not create anything is told so there, and what is wrong with a body
        if self._first.admits(scope, "admin") and (name := _name(body)) is not None:
            number = await self._directory.claim(name)
        await self._part(number).app(scope, again(body, receive), send)

    async def _serve(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        number = self._directory.known(name)
        if number < 0:
            found = await self._directory.look(name) if self._first.admits(scope, "reader") else None
            number = 0 if found is None else found
        held = _Held(receive, send)
        await self._part(number).app(scope, held.receive, held.send)
        if held.refused is None:
            return
        # There is no such ranker there, or not any more.
        found = await self._directory.look(name)
        if found in (None, number):
            await held.release()
        else:
            await self._part(found).app(scope, again(held.body, receive), send)

    def _part(self, number: int) -> Part:
        part = self._parts[number]
        if not part.engine.opened:
            raise Unavailable(f"{part.label} cannot be reached")
        return part


def _name(body: bytes) -> str | None:
    """The name in a request for a new ranker, in either format; None where it cannot be read."""
    for decode in (msgspec.json.decode, msgspec.msgpack.decode):
        try:
            return decode(body, type=_Named).name
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    return None


class _Held:
    """Keeps back an answer that says that a ranker is not there, and the body of the request that it answers."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.refused: list[Any] | None = None
        self.body = b""

    async def receive(self) -> Any:
        message = await self._receive()
        self.body += message.get("body", b"")
        return message

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start" and _is_elsewhere(message):
            self.refused = []
        if self.refused is None:
            await self._send(message)
        else:
            self.refused.append(message)

    async def release(self) -> None:
        """Send it after all."""
        for message in self.refused or ():
            await self._send(message)


def _is_elsewhere(start: Any) -> bool:
    return start["status"] == 404 or (start["status"] == 503 and MOVING in start["headers"])
