"""Where clients of Azure Personalizer call: its paths, its key header, its statuses and errors."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from rankloop.serving.auth import Guard
from rankloop.serving.engine import Engine
from rankloop.serving.errors import NotFound, RequestError
from rankloop.serving.http.endpoints import (
    Receive,
    Scope,
    Send,
    as_request_error,
    decoded,
    error_headers,
    headers_of,
    peer_of,
    receive_body,
    send_bytes,
)
from rankloop.serving.personalizer import choosing
from rankloop.serving.personalizer import messages as m

PERSONALIZER = "personalizer"  # the ranker of a client whose address names none

_encode = msgspec.json.Encoder().encode
_VERSION = re.compile(r"^v[0-9][^/]*/")
_EVENTS = "events/"
_JSON = b"application/json"


class _Call(NamedTuple):
    handle: Callable[..., Awaitable[Any]]
    decode: Callable[[bytes], Any] | None = None


_CALLS = {
    "rank": _Call(choosing.choose, msgspec.json.Decoder(m.RankBody).decode),
    "reward": _Call(choosing.reward, msgspec.json.Decoder(m.RewardBody).decode),
    "activate": _Call(choosing.activate),
    "multislot/rank": _Call(choosing.choose_for_slots, msgspec.json.Decoder(m.SlotsBody).decode),
    "multislot/reward": _Call(choosing.reward_slots, msgspec.json.Decoder(m.SlotRewardsBody).decode),
    "multislot/activate": _Call(choosing.activate_slots),
}
_CODES = {404: "ResourceNotFound", 500: "InternalServerError", 503: "InternalServerError"}


class Door:
    """An ASGI application for all paths below `personalizer/`."""

    def __init__(self, engine: Engine, guard: Guard) -> None:
        self._engine = engine
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        headers = headers_of(scope)
        name = scope["path_params"].get("name", PERSONALIZER)
        try:
            self._guard.check(_with_key(headers), "writer", peer=peer_of(scope), ranker=name)
            call, given = _read_path(scope["path_params"]["rest"])
            if call.decode is not None:
                raw = await receive_body(headers, receive, self._engine.limits.body_bytes)
                given.append(decoded(call.decode, raw or b"{}"))
            answer = await call.handle(self._engine, name, *given)
        except Exception as error:
            await _refuse(send, as_request_error(error, f"{scope['method']} {scope['path']}"))
        else:
            await (_say_done(send) if answer is None else send_bytes(send, 201, _encode(answer), _JSON))


def _with_key(headers: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """The headers, with the key where the service looks for one."""
    key = headers.get(b"ocp-apim-subscription-key")
    return headers if key is None else headers | {b"authorization": b"Bearer " + key}


def _read_path(rest: str) -> tuple[_Call, list[Any]]:
    """What is called, and the event that it is about, if there is one.

    >>> _read_path("v1.0/events/a/b/reward")[1], _read_path("rank")[1]
    (['a/b'], [])
    """
    rest = _VERSION.sub("", rest)
    kind = "multislot/" if rest.startswith("multislot/") else ""
    what, event = rest[len(kind) :], []
    if what.startswith(_EVENTS):
        event_id, _, what = what[len(_EVENTS) :].rpartition("/")
        event = [_read_id(event_id)]
    call = _CALLS.get(kind + what)
    if call is None or bool(event) == (what == "rank"):
        raise NotFound(f"Personalizer has no call {rest!r} here; there are rank, events and multislot")
    return call, event


def _read_id(event_id: str) -> str:
    try:
        return msgspec.convert(event_id, m.Name)
    except msgspec.ValidationError as error:
        raise RequestError(f"eventId {event_id!r}: {error}", field="eventId") from None


async def _say_done(send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(send: Send, error: RequestError) -> None:
    status = 400 if error.status == 422 else error.status
    told = {"code": _CODES.get(status, "BadRequest"), "message": error.message, "target": error.field}
    more = [(name.encode(), value.encode()) for name, value in error_headers(error).items()]
    await send_bytes(send, status, _encode({"error": told}), _JSON, more)
