"""What follows a failure: another try after a pause, or an error in words. No input or output here."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from rankloop.serving.client.calls import Call
from rankloop.serving.client.errors import RankloopError, Unreachable

Answer = TypeVar("Answer")
_REPEATED = frozenset({429, 500, 502, 503, 504})
_MOST_MOVES = 5  # replicas may disagree for a moment about who owns a ranker
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_IDLE_SECONDS = 20.0  # the service closes a connection after 30 idle seconds: the client lets go of it first


class Connection:
    """Where the service is and how it is talked to, checked once."""

    def __init__(self, url: str, *, key: str | None, timeout: float, retries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be http://... or https://..., got {url!r}")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise ValueError(f"retries must be a whole number, 0 or more, got {retries!r}")
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.retries = retries
        # Loading all certificate authorities takes longer than a hundred calls: only where they are needed.
        secure = parts.scheme == "https"
        self.context = ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "rankloop"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self.settings: dict[str, Any] = {
            "base_url": self.url,
            "headers": headers,
            "timeout": httpx.Timeout(timeout, pool=None),  # waiting for a free connection is no failure
            "trust_env": False,
        }

    def limits(self, connections: int | None) -> httpx.Limits:
        """How many connections at most, and how long an idle one is kept."""
        return httpx.Limits(max_connections=connections, keepalive_expiry=_IDLE_SECONDS)


class Tries:
    """The tries of one call: how many are left, and how long to wait before the next."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._left = connection.retries
        self._moves = _MOST_MOVES
        self._pause = _FIRST_PAUSE

    def after_failure(self, error: httpx.RequestError) -> float:
        """Return the seconds to wait after there was no answer, or raise `Unreachable`."""
        if not self._left:
            raise Unreachable(0, "unreachable", self._in_words(error)) from error
        return self._next(0.0)

    def after_refusal(self, response: httpx.Response, *, moved: bool = False) -> float:
        """Return the seconds to wait after an answer that is an error, or raise it.

        moved: the answer says where to send it instead.
        """
        if moved and self._moves:
            self._moves -= 1
            return 0.0
        if response.status_code not in _REPEATED or not self._left:
            raise _refusal(response)
        after = response.headers.get("Retry-After", "")
        return self._next(float(after) if after.isdigit() else 0.0)

    def read(self, call: Call[Answer], response: httpx.Response) -> Answer:
        """Return the answer, or raise `RankloopError` if it is none of a rankloop service."""
        return _understood(response, call.read)

    def _next(self, at_least: float) -> float:
        pause = max(self._pause, at_least)
        self._left -= 1
        self._pause = min(2 * pause, _LONGEST_PAUSE)
        return pause

    def _in_words(self, error: httpx.RequestError) -> str:
        url = self._connection.url
        if isinstance(error, httpx.TimeoutException):
            return f"{url} did not answer within {self._connection.timeout:g} seconds"
        if isinstance(error, httpx.ConnectError):
            return f"{url} cannot be reached: {error}. Is the service running there?"
        return f"{url} broke the connection off: {str(error) or type(error).__name__}"


def _understood(response: httpx.Response, read: Callable[[Any], Answer]) -> Answer:
    try:
        return read(json.loads(response.content))
    except (ValueError, TypeError) as error:
        message = f"{response.request.url} did not answer as a rankloop service does: {error}"
        raise RankloopError(response.status_code, "unreadable", message) from error


def _refusal(response: httpx.Response) -> RankloopError:
    try:
        told = json.loads(response.content)["error"]
        return RankloopError(response.status_code, told["code"], told["message"], told.get("field"))
    except (ValueError, TypeError, KeyError):  # a proxy's page, perhaps
        return RankloopError(response.status_code, "unknown", response.text[:200].strip() or "no message")
