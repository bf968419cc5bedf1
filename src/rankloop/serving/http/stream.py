"""Server-sent events: the state of each ranker whenever it has changed, and the health of the service.

At most four times a second; a slow reader gets the newest only: a listener holds one message per ranker.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec

from rankloop.serving import views
from rankloop.serving.engine import Engine
from rankloop.serving.errors import Busy, RequestError
from rankloop.serving.http.readiness import notices
from rankloop.serving.permissions import EVERYTHING, Permission
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import StoreError

_PAUSE = 0.25
_HEARTBEAT = 5.0


class _Listener:
    def __init__(self, ranker: str | None, caller: Permission) -> None:
        self._ranker = ranker
        self.caller = caller
        self.news: dict[str, bytes] = {}
        self.woken = asyncio.Event()

    @property
    def wants_all(self) -> bool:
        """Whether it listens to all rankers."""
        return self._ranker is None

    def wants(self, ranker: str) -> bool:
        """Whether news of this ranker are for this listener."""
        return self._ranker in (None, ranker) and self.caller.covers(ranker)


class Broadcast:
    """Tells all listeners."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._listeners: set[_Listener] = set()
        self._told: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None
        self.closing = asyncio.Event()

    def start(self) -> None:
        """Begin to watch."""
        self._task = asyncio.create_task(self._watch())

    def release(self) -> None:
        """Let all listeners go."""
        self.closing.set()
        for listener in self._listeners:
            listener.woken.set()

    async def stop(self) -> None:
        """Let all go, and watch no longer."""
        self.release()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        while True:
            await self._engine.changed.wait()
            self._engine.changed.clear()
            if self._listeners:
                await self._look()
                for served in self._served():
                    if self._told.get(served.name) != served.fold.applied:
                        with contextlib.suppress(StoreError):  # it is told when it can be read again
                            await self._tell(served)
                            self._told[served.name] = served.fold.applied
            await asyncio.sleep(_PAUSE)

    async def _look(self) -> None:
        """See what other replicas wrote to the rankers that somebody listens to."""
        engine = self._engine
        if any(listener.wants_all for listener in self._listeners):
            await engine.find_all()
        for name in [name for name in engine.rankers if not engine.is_at_hand(name)]:
            if any(listener.wants(name) for listener in self._listeners):
                with contextlib.suppress(RequestError):
                    await engine.find(name)

    def _served(self) -> list[ServedRanker]:
        """All rankers that are here."""
        return list(self._engine.rankers.values())

    async def _tell(self, served: ServedRanker) -> None:
        message = await _message(served)
        for listener in self._listeners:
            if listener.wants(served.name):
                listener.news[served.name] = message
                listener.woken.set()

    def _health(self, caller: Permission) -> bytes:
        engine = self._engine
        why = engine.trouble
        told = {
            "ready": why is None,
            "why": why,
            "broken": engine.broken,
            "notices": [] if caller.rankers else notices(engine),
            "waiting": engine.commit.waiting,
            "rankers": sum(map(caller.covers, engine.rankers)),
            "now": engine.now(),
        }
        return b"event: health\ndata: " + msgspec.json.encode(told) + b"\n\n"

    async def listen(self, ranker: str | None, caller: Permission = EVERYTHING) -> AsyncIterator[bytes]:
        """Messages for one listener, the present state first, until the service stops."""
        if len(self._listeners) >= self._engine.limits.streams:
            raise Busy(f"limit reached: {self._engine.limits.streams:,} streams")
        listener = _Listener(ranker, caller)
        if listener.wants_all:
            await self._engine.find_all()
        for served in self._served():
            if listener.wants(served.name):
                listener.news[served.name] = await _message(served)
        listener.woken.set()
        self._listeners.add(listener)
        try:
            yield b"retry: 1000\n\n" + self._health(caller)
            while not self.closing.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(listener.woken.wait(), _HEARTBEAT)
                listener.woken.clear()
                news, listener.news = listener.news, {}
                yield b"".join(news.values()) or self._health(caller)
        finally:
            self._listeners.discard(listener)


async def _message(served: ServedRanker) -> bytes:
    answer = await views.ranker_answer(served)
    return b"event: ranker\ndata: " + msgspec.json.encode(answer) + b"\n\n"
