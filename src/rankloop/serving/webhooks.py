"""Events of other systems as feedback: signed requests, of which each hook says where the parts of feedback stand.

A hook is a table of a TOML file, `rankloop serve --webhooks FILE`. What it gets takes the way of all feedback: the same
event again counts once. Its header `Rankloop-Signature` is `t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256 of
`SECONDS.BODY`, so that neither time nor body can be changed, nor sent again later.
"""

from __future__ import annotations

import hashlib
import hmac
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from rankloop.serving.admission import Malformed, NotFound, RequestError, Unauthorized
from rankloop.serving.api import EventAnswer, FeedbackRequest
from rankloop.serving.engine import Engine

HEADER = "rankloop-signature"
TOLERANCE = 300  # seconds between the time in a signature and now
_SHORTEST = 16  # bytes of a secret


def sign(secret: bytes, body: bytes, *, at: int) -> str:
    """The header for a body that is sent at `at`, in seconds since 1970.

    Examples
    --------
    >>> sign(b"0123456789abcdef", b"{}", at=1)[:20]
    't=1,v1=2af693cb56b22'
    """
    return f"t={at},v1={_digest(secret, body, at)}"


def check(secret: bytes, header: str, body: bytes, *, now: float, tolerance: float = TOLERANCE) -> None:
    """Refuse a body that whoever has the secret did not sign, or not lately."""
    at, signature = read_header(header, now=now, tolerance=tolerance)
    # As bytes: text that is compared in constant time may have ASCII only, and a header may have anything.
    if not hmac.compare_digest(_digest(secret, body, at).encode(), signature.encode()):
        raise ValueError("the signature does not fit the body")


def read_header(header: str, *, now: float, tolerance: float = TOLERANCE) -> tuple[int, str]:
    """The time and the signature in a header; ValueError where it has none, or not a present one."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at = parts.get("t", "")
    if not at.isascii() or not at.isdigit() or len(at) > 12:
        raise ValueError(f"the header {HEADER} must be t=SECONDS,v1=HEX")
    if abs(now - int(at)) > tolerance:
        raise ValueError(f"the signature is {now - int(at):.0f} s old, more than {tolerance:g}")
    return int(at), parts.get("v1", "")


def _digest(secret: bytes, body: bytes, at: int) -> str:
    return hmac.new(secret, b"%d." % at + body, hashlib.sha256).hexdigest()


def read_secret(path: Path) -> bytes:
    """The secret in a file, without space around it; ValueError where there is none, or one that is too short."""
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise ValueError(f"the secret {path} cannot be read: {error.strerror}") from None
    if len(secret) < _SHORTEST:
        raise ValueError(f"the secret in {path} must have {_SHORTEST} bytes or more, it has {len(secret)}")
    return secret


class Hook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the parts of feedback stand in an event, as names with dots between them.

    ranker: whose feedback it is. secret_file: a file with the secret that signs events. clicks, relevance: numbers by
    position; or item: the name of an item that was clicked. event_id: by default that of the decision.
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
        (answer,) = await engine.feedback(hook.ranker, [_feedback(hook, event)])
        return answer


def _feedback(hook: Hook, event: Any) -> FeedbackRequest:
    parts: dict[str, Any] = {"decision_id": _text(event, hook.decision_id)}
    if hook.event_id is not None:
        parts["event_id"] = _text(event, hook.event_id)
    for form in ("clicks", "relevance"):
        if getattr(hook, form) is not None:
            parts[form] = _part(event, getattr(hook, form))
    if hook.item is not None:
        parts["item"] = _text(event, hook.item)
    try:
        return msgspec.convert(parts, FeedbackRequest)
    except msgspec.ValidationError as error:
        raise RequestError(str(error)) from None


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
