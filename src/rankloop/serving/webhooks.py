"""Events of other systems as feedback: signed requests, of which each hook says where the parts of feedback stand.

A hook is a table of a TOML file, `rankloop serve --webhooks FILE`. What it gets takes the way of all feedback: the same
event again counts once.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from rankloop.serving.engine import Engine
from rankloop.serving.errors import Malformed, NotFound, RequestError, Unauthorized
from rankloop.serving.log.candidate_lists import feedback_length
from rankloop.serving.schemas import EventAnswer, FeedbackRequest
from rankloop.serving.signatures import check, read_header, read_secret


class Hook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the parts of feedback stand in an event, as names with dots between them.

    ranker: whose feedback it is. secret_file: a file with the secret that signs events. clicks, relevance: numbers by
    position; or item: the name of the one item that was clicked. event_id: by default that of the decision.
    """

    ranker: str
    secret_file: str
    decision_id: str
    event_id: str | None = None
    clicks: str | None = None
    relevance: str | None = None
    item: str | None = None


class Webhooks:
    """The hooks of a service, by name."""

    def __init__(self) -> None:
        self._hooks: dict[str, tuple[Hook, bytes]] = {}

    def load(self, path: Path) -> None:
        """Take the hooks in a file, whose secrets stand beside it."""
        try:
            hooks = msgspec.convert(tomllib.loads(path.read_text()), dict[str, Hook])
        except OSError as error:
            raise ValueError(f"webhooks {path} cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
            raise ValueError(f"webhooks {path}: {error}") from None
        for name, hook in hooks.items():
            if [hook.clicks, hook.relevance, hook.item].count(None) != 2:
                raise ValueError(f"webhooks {path}: {name} must have one of clicks, relevance and item")
            self._hooks[name] = (hook, read_secret(path.parent / hook.secret_file))

    def find(self, engine: Engine, ranker: str, name: str, header: str) -> tuple[Hook, bytes]:
        """The hook that a request is for, and its secret, before the body is read: the signature is a present one."""
        hook, secret = self._hooks.get(name, (None, b""))
        if hook is None or hook.ranker != ranker:
            raise NotFound(f"there is no webhook {name!r:.80} of ranker {ranker!r:.80}")
        try:
            read_header(header, now=engine.clock.time_of_day())
        except ValueError as error:
            raise Unauthorized(str(error)) from None
        return hook, secret

    async def take(self, engine: Engine, hook: Hook, secret: bytes, header: str, body: bytes) -> EventAnswer:
        """Turn an event for the hook that `find` gave into feedback; the answer is given once that is durable."""
        try:
            check(secret, header, body, now=engine.clock.time_of_day())
        except ValueError as error:
            raise Unauthorized(str(error)) from None
        try:
            event = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise Malformed(f"the event cannot be read: {error}") from None
        (answer,) = await engine.feedback(hook.ranker, [await _feedback(engine, hook, event)])
        return answer


async def _feedback(engine: Engine, hook: Hook, event: Any) -> FeedbackRequest:
    parts: dict[str, Any] = {"decision_id": _text(event, hook.decision_id)}
    if hook.event_id is not None:
        parts["event_id"] = _text(event, hook.event_id)
    for form in ("clicks", "relevance"):
        if getattr(hook, form) is not None:
            parts[form] = _part(event, getattr(hook, form))
    if hook.item is not None:
        parts["clicks"] = await _clicks(engine, hook.ranker, parts["decision_id"], _text(event, hook.item))
    try:
        return msgspec.convert(parts, FeedbackRequest)
    except msgspec.ValidationError as error:
        raise RequestError(str(error)) from None


async def _clicks(engine: Engine, ranker: str, decision_id: str, item: str) -> list[float]:
    """A click on one item of a list, by position."""
    served = await engine.find_to_write(ranker)
    state = await served.decision_state(decision_id)
    if state is None:
        raise NotFound(f"there is no decision {decision_id!r}", field="decision_id")
    shown = served.fold.names(state.decision)[: feedback_length(served.fold.ranker, state.decision)]
    if item not in shown:
        raise RequestError(
            f"{item!r} is not among the items of decision {decision_id!r} that feedback counts for"
        )
    return [float(name == item) for name in shown]


def _part(event: Any, path: str) -> Any:
    found = event
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            raise RequestError(f"the event has no {path}", field=path)
        found = found[name]
    return found


def _text(event: Any, path: str) -> str:
    found = _part(event, path)
    if not isinstance(found, str | int) or isinstance(found, bool):
        raise RequestError(f"{path} must be text, got {found!r:.40}", field=path)
    return str(found)
