"""What stands before the application of a replica: requests go to owners, and what is about all rankers is gathered."""

from __future__ import annotations

from typing import Any

import msgspec

from rankloop.serving.http.app import App
from rankloop.serving.http.endpoints import Receive, Scope, Send, send_bytes
from rankloop.serving.owners.merged_stream import merged_stream
from rankloop.serving.owners.routing import FORWARDED, Router, ranker_of

_STREAM = "/v1/stream"
_GATHERED = frozenset({"/v1/rankers", "/v1/sparks", _STREAM})
_FORWARDED = FORWARDED.encode()


class Front:
    """An ASGI application: that of one replica of many."""

    def __init__(self, app: App, router: Router) -> None:
        self._app = app
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http":
            here = await self._router.route(scope, receive, send)
            if here is None:
                return
            receive = here
            if _about_all(scope):
                if scope["path"] == _STREAM:
                    await merged_stream(self._app, self._router, scope, receive, send)
                else:
                    await self._gather(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _gather(self, scope: Scope, receive: Receive, send: Send) -> None:
        told: list[Any] = []

        async def keep(message: Any) -> None:
            told.append(message)

        await self._app(scope, receive, keep)
        kind = dict(told[0]["headers"]).get(b"content-type")
        if told[0]["status"] != 200 or kind != b"application/json":
            for message in told:
                await send(message)
            return
        mine = msgspec.json.decode(b"".join(message.get("body", b"") for message in told[1:]))
        answers = [(self._router.ownership.address, mine), *await self._router.ask_others(scope)]
        merged = {key: self._merged([(who, one.get(key)) for who, one in answers]) for key in mine}
        await send_bytes(send, 200, msgspec.json.encode(merged), b"application/json")

    def _merged(self, parts: list[tuple[str, Any]]) -> Any:
        """One value of the answers: rankers by name, as their owner tells them; sentences once."""
        kind = type(parts[0][1])
        if kind is list and any(isinstance(value, dict) for _, part in parts for value in part or ()):
            by_name = [(who, {value["name"]: value for value in part or ()}) for who, part in parts]
            return list(self._merged(by_name).values())
        if kind is list:
            return list(dict.fromkeys(value for _, part in parts for value in part or ()))
        if kind is not dict:
            return parts[0][1]
        found: dict[str, Any] = {}
        for who, part in parts:
            for name, value in (part or {}).items():
                if name not in found or self._router.ownership.owner(name).address == who:
                    found[name] = value
        return found


def _about_all(scope: Scope) -> bool:
    """Whether a request is about all rankers, and comes from a client rather than from another replica."""
    about_all = scope["method"] == "GET" and scope["path"] in _GATHERED and ranker_of(scope) is None
    return about_all and all(name != _FORWARDED for name, _ in scope["headers"])
