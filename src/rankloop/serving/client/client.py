"""The clients: `Client` for ordinary code and threads, `AsyncClient` for asyncio, and what both do after a failure.

In every call `name` is the name of a ranker.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import ssl
import time
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from rankloop.serving.client import calls
from rankloop.serving.client.calls import Call, RankloopError, Unreachable

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Method = TypeVar("Method", bound=Callable[..., Any])
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


def _understood(response: httpx.Response, read: Callable[[bytes], Answer]) -> Answer:
    try:
        return read(response.content)
    except (msgspec.DecodeError, ValueError) as error:
        message = f"{response.request.url} did not answer as a rankloop service does: {error}"
        raise RankloopError(response.status_code, "unreadable", message) from error


def _refusal(response: httpx.Response) -> RankloopError:
    try:
        told = json.loads(response.content)["error"]
        return RankloopError(response.status_code, told["code"], told["message"], told.get("field"))
    except (ValueError, TypeError, KeyError):  # a proxy's page, perhaps
        return RankloopError(response.status_code, "unknown", response.text[:200].strip() or "no message")


def _documented(method: Method, build: Callable[..., Any], *, owner: str) -> Method:
    """Give a method of the class named `owner` the name, the docstring and the arguments of `build`, after `self`."""
    signature = inspect.signature(build)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    answer = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    shown = signature.replace(parameters=[this, *signature.parameters.values()], return_annotation=answer)
    method.__name__ = build.__name__
    method.__qualname__ = f"{owner}.{build.__name__}"
    method.__doc__ = build.__doc__
    vars(method)["__signature__"] = shown
    return method


def _sends(build: Callable[Arguments, Call[Answer]]) -> Callable[Concatenate[Client, Arguments], Answer]:
    def method(self: Client, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return self._send(build(*args, **kwargs))

    return _documented(method, build, owner="Client")


class Client:
    """Talks to a rankloop service. One client may be shared by threads.

    Every call that changes something carries an ID, and the same ID counts once, so that calls are repeated safely.

    Parameters
    ----------
    url : str or sequence of str, optional
        Where the service is, such as "http://127.0.0.1:8000"; of several replicas, the addresses of all: where one does
        not answer, the next is asked.
    key : str, optional
        An API key, where the service wants one.
    timeout : float, optional
        Seconds to wait for an answer.
    retries : int, optional
        How often a call is repeated when the service cannot be reached or is too busy.
    transport : httpx.BaseTransport, optional
        Another way to reach the service: through a proxy, with certificates of your own, or to a test.

    Raises
    ------
    RankloopError
        By every call that the service refuses.
    Unreachable
        By every call that the service does not answer.

    Examples
    --------
    ::

        client = Client("http://127.0.0.1:8000")
        client.create("unwind", algorithm="TopFTRL", items=["walk", "meditate", "music"])
        shown = client.rank("unwind")
        client.feedback("unwind", shown.decision_id, relevance=[1])
    """

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, key=key, timeout=timeout, retries=retries)
        if transport is None:
            transport = httpx.HTTPTransport(
                verify=self._connection.context, limits=self._connection.limits(None), trust_env=False
            )
        self._http = httpx.Client(transport=transport, **self._connection.settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _send(self, call: Call[Answer]) -> Answer:
        tries = Tries(self._connection)
        while True:
            try:
                response = self._http.request(call.method, tries.url(call), content=call.body)
            except httpx.RequestError as error:
                pause = tries.after_failure(error)
            else:
                if response.is_success:
                    return tries.read(call, response)
                pause = tries.after_refusal(response)
            time.sleep(pause)

    create = _sends(calls.create)
    ranker = _sends(calls.ranker)
    rankers = _sends(calls.rankers)
    rank = _sends(calls.rank)
    rank_many = _sends(calls.rank_many)
    activate = _sends(calls.activate)
    feedback = _sends(calls.feedback)
    feedback_many = _sends(calls.feedback_many)
    change_items = _sends(calls.change_items)
    item_features = _sends(calls.item_features)
    change_policy = _sends(calls.change_policy)
    freeze = _sends(calls.freeze)
    promote = _sends(calls.promote)
    stop = _sends(calls.stop)
    import_lists = _sends(calls.import_lists)
    import_state = _sends(calls.import_state)
    rollback = _sends(calls.rollback)
    reset = _sends(calls.reset)
    delete = _sends(calls.delete)
    snapshots = _sends(calls.snapshots)
    take_snapshot = _sends(calls.take_snapshot)
    decision = _sends(calls.decision)
    explain = _sends(calls.explain)
    events = _sends(calls.events)
    series = _sends(calls.series)


def _awaits(
    build: Callable[Arguments, Call[Answer]],
) -> Callable[Concatenate[AsyncClient, Arguments], Coroutine[Any, Any, Answer]]:
    async def method(self: AsyncClient, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return await self._send(build(*args, **kwargs))

    return _documented(method, build, owner="AsyncClient")


class AsyncClient:
    """The calls of `Client`, to be awaited: `await client.rank("unwind")`.

    `url`, `key`, `timeout`, `retries` and `transport` are as of `Client`, and so is what calls raise. `connections`:
    how many at most; further calls wait for a free one.
    """

    def __init__(
        self,
        url: str | Sequence[str] = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
        connections: int = 16,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, key=key, timeout=timeout, retries=retries)
        if isinstance(connections, bool) or not isinstance(connections, int) or connections < 1:
            raise ValueError(f"connections must be a whole number, 1 or more, got {connections!r}")
        if transport is None:
            transport = httpx.AsyncHTTPTransport(
                verify=self._connection.context, limits=self._connection.limits(connections), trust_env=False
            )
        self._http = httpx.AsyncClient(transport=transport, **self._connection.settings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _send(self, call: Call[Answer]) -> Answer:
        tries = Tries(self._connection)
        while True:
            try:
                response = await self._http.request(call.method, tries.url(call), content=call.body)
            except httpx.RequestError as error:
                pause = tries.after_failure(error)
            else:
                if response.is_success:
                    return tries.read(call, response)
                pause = tries.after_refusal(response)
            await asyncio.sleep(pause)

    create = _awaits(calls.create)
    ranker = _awaits(calls.ranker)
    rankers = _awaits(calls.rankers)
    rank = _awaits(calls.rank)
    rank_many = _awaits(calls.rank_many)
    activate = _awaits(calls.activate)
    feedback = _awaits(calls.feedback)
    feedback_many = _awaits(calls.feedback_many)
    change_items = _awaits(calls.change_items)
    item_features = _awaits(calls.item_features)
    change_policy = _awaits(calls.change_policy)
    freeze = _awaits(calls.freeze)
    promote = _awaits(calls.promote)
    stop = _awaits(calls.stop)
    import_lists = _awaits(calls.import_lists)
    import_state = _awaits(calls.import_state)
    rollback = _awaits(calls.rollback)
    reset = _awaits(calls.reset)
    delete = _awaits(calls.delete)
    snapshots = _awaits(calls.snapshots)
    take_snapshot = _awaits(calls.take_snapshot)
    decision = _awaits(calls.decision)
    explain = _awaits(calls.explain)
    events = _awaits(calls.events)
    series = _awaits(calls.series)
