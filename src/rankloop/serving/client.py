"""The typed client. It retries safely: every call that changes something carries an id, and the same id counts once."""

from __future__ import annotations

import asyncio
import http.client
import time
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from rankloop.base import numbers, whole
from rankloop.serving import schemas as m
from rankloop.serving.log.randomness import new_id

Answer = TypeVar("Answer")
_PACKED = "application/msgpack"
_AGAIN = frozenset({429, 500, 502, 503, 504})


class RankloopError(Exception):
    """The service said no: `status` of HTTP, `code` for programs, `field` of the request that is to blame."""

    def __init__(self, status: int, code: str, message: str, field: str | None) -> None:
        super().__init__(f"{status} {code}: {message}" + (f" ({field})" if field else ""))
        self.status = status
        self.code = code
        self.message = message
        self.field = field


class Unreachable(RankloopError):
    """The service did not answer, however often it was asked."""


class Client:
    """Talks to a rankloop service. May be shared by threads.

    Parameters
    ----------
    url : where the service is, such as "http://127.0.0.1:8000".
    key : an API key, where the service wants one.
    timeout : seconds to wait for an answer.
    retries : how often a call is repeated when the service cannot be reached or is too busy.

    Examples
    --------
    client = Client("http://127.0.0.1:8000")
    client.create("unwind", algorithm="RTop1F", items=["walk", "meditate", "music"])
    shown = client.rank("unwind")
    client.feedback("unwind", shown.decision_id, relevance=[1])
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be http://... or https://..., got {url!r}")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/")
        self._timeout = timeout
        self._retries = whole("retries", retries, at_least=0)
        self._headers = {"Accept": _PACKED, "Content-Type": _PACKED}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle: SimpleQueue[http.client.HTTPConnection] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all connections."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    def create(
        self,
        name: str,
        *,
        algorithm: str,
        items: list[str] | None = None,
        parameters: dict[str, Any] | None = None,
        policy: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> m.RankerAnswer:
        """Make a ranker. The same again changes nothing; the same name with anything else is an error."""
        body: dict[str, Any] = {"name": name, "algorithm": algorithm, "parameters": parameters or {}}
        body |= {"policy": policy} if policy else {}
        body |= {"items": items} if items is not None else {}
        body |= {"seed": seed} if seed is not None else {}
        return self._call("POST", "/v1/rankers", m.RankerAnswer, body)

    def ranker(self, name: str) -> m.RankerAnswer:
        """One ranker as it stands."""
        return self._call("GET", _of(name), m.RankerAnswer)

    def rankers(self) -> list[m.RankerAnswer]:
        """All rankers."""
        return self._call("GET", "/v1/rankers", m.RankersAnswer).rankers

    def rank(
        self,
        name: str,
        *,
        decision_id: str | None = None,
        items: list[str] | None = None,
        features: ArrayLike | None = None,
        context: Any = None,
    ) -> m.RankAnswer:
        """A list to show. `features`: a row for each item, sent as packed float32."""
        body: dict[str, Any] = {"decision_id": decision_id or new_id()}
        body |= {"items": items} if items is not None else {}
        body |= {"context": context} if context is not None else {}
        if features is not None:
            matrix = numbers("features", features).astype("<f4")
            if matrix.ndim != 2:
                raise ValueError(f"features must be items x features, got shape {matrix.shape}")
            body["features"] = {"shape": matrix.shape, "data": np.ascontiguousarray(matrix).tobytes()}
        return self._call("POST", f"{_of(name)}/rank", m.RankAnswer, body)

    def activate(self, name: str, decision_id: str) -> m.EventAnswer:
        """The list was really shown."""
        return self._call("POST", f"{_of(name)}/activate", m.EventAnswer, {"decision_id": decision_id})

    def feedback(
        self,
        name: str,
        decision_id: str,
        *,
        relevance: list[float] | None = None,
        clicks: list[float] | None = None,
        event_id: str | None = None,
    ) -> m.EventAnswer:
        """What came back about a list: the relevance of its first items, or clicks by position."""
        body = _feedback(decision_id, relevance, clicks, event_id)
        return self._call("POST", f"{_of(name)}/feedback", m.EventAnswer, body)

    def feedback_many(self, name: str, answers: list[dict[str, Any]]) -> list[m.EventAnswer]:
        """Many at once, each with `decision_id` and `relevance` or `clicks`."""
        return self._call("POST", f"{_of(name)}/feedback", list[m.EventAnswer], answers)

    def change_items(
        self, name: str, *, add: list[str] | None = None, retire: list[str] | None = None
    ) -> m.EventAnswer:
        """Items come and go."""
        body = {"add": add or [], "retire": retire or [], "event_id": new_id()}
        return self._call("POST", f"{_of(name)}/items", m.EventAnswer, body)

    def freeze(self, name: str, frozen: bool = True) -> m.EventAnswer:
        """Stop learning, or go on."""
        body = {"frozen": frozen, "event_id": new_id()}
        return self._call("POST", f"{_of(name)}/freeze", m.EventAnswer, body)

    def rollback(self, name: str, to_seq: int) -> m.EventAnswer:
        """Back to what the snapshot at `to_seq` knew."""
        body = {"to_seq": to_seq, "event_id": new_id()}
        return self._call("POST", f"{_of(name)}/rollback", m.EventAnswer, body)

    def reset(self, name: str, *, parameters: dict[str, Any] | None = None) -> m.EventAnswer:
        """Forget what was learnt, perhaps with other parameters; the log stays."""
        body: dict[str, Any] = {"event_id": new_id()}
        body |= {"parameters": parameters} if parameters is not None else {}
        return self._call("POST", f"{_of(name)}/reset", m.EventAnswer, body)

    def snapshots(self, name: str) -> list[m.SnapshotAnswer]:
        """Snapshots that can be rolled back to."""
        return self._call("GET", f"{_of(name)}/snapshots", m.SnapshotsAnswer).snapshots

    def take_snapshot(self, name: str) -> list[m.SnapshotAnswer]:
        """Take one now; all that are kept."""
        return self._call("POST", f"{_of(name)}/snapshots", m.SnapshotsAnswer).snapshots

    def decision(self, name: str, decision_id: str) -> m.DecisionAnswer:
        """The whole story of one list."""
        return self._call("GET", f"{_of(name)}/decisions/{quote(decision_id, safe='')}", m.DecisionAnswer)

    def series(self, name: str) -> m.SeriesAnswer:
        """Roll-ups over time."""
        return self._call("GET", f"{_of(name)}/series", m.SeriesAnswer)

    def _call(self, method: str, path: str, answer: type[Answer], body: Any = None) -> Answer:
        sent = None if body is None else msgspec.msgpack.encode(body)
        pause = 0.05
        for attempt in range(self._retries + 1):
            try:
                status, told, wait = self._ask(method, self._path + path, sent)
            except (OSError, http.client.HTTPException) as error:
                if attempt == self._retries:
                    raise Unreachable(0, "unreachable", f"{self._host}: {error}", None) from error
            else:
                if status < 300:
                    return msgspec.msgpack.decode(told, type=answer)
                if status not in _AGAIN or attempt == self._retries:
                    raise _error(status, told)
                pause = max(pause, wait)
            time.sleep(pause)
            pause = min(2 * pause, 2.0)
        raise AssertionError("unreachable")

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        connection, used = self._connection()
        try:
            connection.request(method, path, body, self._headers)
            response = connection.getresponse()
            told = response.read()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            connection.close()
            if not used:
                raise
            return self._ask(method, path, body)  # it was closed while it was idle
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)
        wait = response.headers.get("Retry-After", "")
        return response.status, told, float(wait) if wait.isdigit() else 0.0

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        try:
            return self._idle.get_nowait(), True
        except Empty:
            make = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            return make(self._host, self._port, timeout=self._timeout), False


class AsyncClient:
    """The same calls as `Client`, each to be awaited: `await client.rank("unwind")`."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
        connections: int = 16,
    ) -> None:
        self._client = Client(url, key=key, timeout=timeout, retries=retries)
        # The standard library has no asynchronous HTTP; a few threads that wait are as good here.
        self._threads = ThreadPoolExecutor(whole("connections", connections, at_least=1))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of all connections."""
        self._threads.shutdown(wait=False)
        self._client.close()

    async def _run(self, name: str, *args: Any, **kwargs: Any) -> Any:
        call = getattr(self._client, name)
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: call(*args, **kwargs))

    async def create(self, name: str, **settings: Any) -> m.RankerAnswer:
        """As `Client.create`."""
        answer: m.RankerAnswer = await self._run("create", name, **settings)
        return answer

    async def ranker(self, name: str) -> m.RankerAnswer:
        """As `Client.ranker`."""
        answer: m.RankerAnswer = await self._run("ranker", name)
        return answer

    async def rankers(self) -> list[m.RankerAnswer]:
        """As `Client.rankers`."""
        answer: list[m.RankerAnswer] = await self._run("rankers")
        return answer

    async def rank(
        self,
        name: str,
        *,
        decision_id: str | None = None,
        items: list[str] | None = None,
        features: ArrayLike | None = None,
        context: Any = None,
    ) -> m.RankAnswer:
        """As `Client.rank`."""
        answer: m.RankAnswer = await self._run(
            "rank", name, decision_id=decision_id, items=items, features=features, context=context
        )
        return answer

    async def activate(self, name: str, decision_id: str) -> m.EventAnswer:
        """As `Client.activate`."""
        answer: m.EventAnswer = await self._run("activate", name, decision_id)
        return answer

    async def feedback(
        self,
        name: str,
        decision_id: str,
        *,
        relevance: list[float] | None = None,
        clicks: list[float] | None = None,
        event_id: str | None = None,
    ) -> m.EventAnswer:
        """As `Client.feedback`."""
        answer: m.EventAnswer = await self._run(
            "feedback", name, decision_id, relevance=relevance, clicks=clicks, event_id=event_id
        )
        return answer

    async def feedback_many(self, name: str, answers: list[dict[str, Any]]) -> list[m.EventAnswer]:
        """As `Client.feedback_many`."""
        answer: list[m.EventAnswer] = await self._run("feedback_many", name, answers)
        return answer

    async def decision(self, name: str, decision_id: str) -> m.DecisionAnswer:
        """As `Client.decision`."""
        answer: m.DecisionAnswer = await self._run("decision", name, decision_id)
        return answer


def _of(name: str) -> str:
    return f"/v1/rankers/{quote(name, safe='')}"


def _feedback(
    decision_id: str, relevance: list[float] | None, clicks: list[float] | None, event_id: str | None
) -> dict[str, Any]:
    # Without an event id the decision's own is taken: a decision has one answer, so a retry is a duplicate.
    body: dict[str, Any] = {"decision_id": decision_id}
    body |= {"relevance": relevance} if relevance is not None else {}
    body |= {"clicks": clicks} if clicks is not None else {}
    return body | ({"event_id": event_id} if event_id is not None else {})


def _error(status: int, told: bytes) -> RankloopError:
    try:
        error = msgspec.msgpack.decode(told, type=m.ErrorAnswer).error
    except msgspec.DecodeError:
        return RankloopError(status, "unknown", told[:200].decode(errors="replace"), None)
    return RankloopError(status, error.code, error.message, error.field)
