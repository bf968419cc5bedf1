"""What follows a failure: another try after a pause, or an error in words. No input or output here."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from rankloop.serving.client.calls import Call
from rankloop.serving.client.errors import RankloopError, Unreachable

Answer = TypeVar("Answer")
_REPEATED = frozenset({429, 500, 502, 503, 504})
_GOES_ELSEWHERE = frozenset({502, 503, 504})  # what another replica may be able to answer
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_IDLE_SECONDS = 20.0  # the service closes a connection after 30 idle seconds: the client lets go of it first


class Connection:
    """Where the service is and how it is talked to, checked once.

    Of several addresses the one that answered last is asked first. Nothing is ever sent anywhere else, whatever an
    answer says.
    """

    def __init__(self, url: str | Sequence[str], *, key: str | None, timeout: float, retries: int) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        parts = [urlsplit(one) for one in urls]
        for one, part in zip(urls, parts, strict=True):
            if part.scheme not in ("http", "https") or not part.hostname:
                raise ValueError(f"url must be http://... or https://..., got {one!r}")
        if not urls:
            raise ValueError("url must be an address or several, got none")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise ValueError(f"retries must be a whole number, 0 or more, got {retries!r}")
        self.urls = [one.rstrip("/") for one in urls]
        self.current = 0  # the address that answered last
        self.timeout = timeout
        self.retries = retries
        # Loading all certificate authorities takes longer than a hundred calls: only where they are needed.
        secure = any(part.scheme == "https" for part in parts)
        self.context = ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "rankloop"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self.settings: dict[str, Any] = {
            "headers": headers,
            "timeout": httpx.Timeout(timeout, pool=None),  # waiting for a free connection is no failure
            "trust_env": False,
            "follow_redirects": False,
        }

    def limits(self, connections: int | None) -> httpx.Limits:
        """How many connections at most, and how long an idle one is kept."""
        return httpx.Limits(max_connections=connections, keepalive_expiry=_IDLE_SECONDS)


class Tries:
    """The tries of one call: how many are left, and how long to wait before the next."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._left = connection.retries
        self._pause = _FIRST_PAUSE
        self._place = connection.current
        self._others = len(connection.urls) - 1  # that were not asked in this round

    def url(self, call: Call[Answer]) -> str:
        """Where the next try goes."""
        return self._connection.urls[self._place] + call.path

    def after_failure(self, error: httpx.RequestError) -> float:
        """Return the seconds to wait after there was no answer, or raise `Unreachable`."""
        message = self._in_words(error)
        if self._ask_another():
            return 0.0
        if not self._left:
            raise Unreachable(0, "unreachable", message) from error
        return self._next(0.0)

    def after_refusal(self, response: httpx.Response) -> float:
        """Return the seconds to wait after an answer that is an error, or raise it."""
        if response.status_code in _GOES_ELSEWHERE and self._ask_another():
            return 0.0
        if response.status_code not in _REPEATED or not self._left:
            raise _refusal(response)
        after = response.headers.get("Retry-After", "")
        return self._next(float(after) if after.isdigit() else 0.0)

    def read(self, call: Call[Answer], response: httpx.Response) -> Answer:
        """Return the answer, or raise `RankloopError` if it is none of a rankloop service."""
        self._connection.current = self._place
        return _understood(response, call.read)

    def _ask_another(self) -> bool:
        """Go on to the next address; whether it was not asked in this round."""
        self._place = (self._place + 1) % len(self._connection.urls)
        self._others -= 1
        return self._others >= 0

    def _next(self, at_least: float) -> float:
        self._others = len(self._connection.urls) - 1
        pause = max(self._pause, at_least)
        self._left -= 1
        self._pause = min(2 * pause, _LONGEST_PAUSE)
        return pause

    def _in_words(self, error: httpx.RequestError) -> str:
        url = self._connection.urls[self._place]
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
