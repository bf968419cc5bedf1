"""What is sent piece by piece: news of the rankers as server-sent events, and logs as CSV or Parquet.

News are the state of each ranker whenever it has changed, and the health of the service, at most four times a second;
a slow reader gets the newest only: a listener holds one message per ranker. Logs have the rows of `rankloop export`.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from rankloop.extras import MissingExtra
from rankloop.serving import views
from rankloop.serving.admission import Busy, RequestError
from rankloop.serving.auth import EVERYTHING, Permission
from rankloop.serving.engine import Engine
from rankloop.serving.log.export import COLUMNS, answered_lists, export, positions, ubi_documents
from rankloop.serving.served_ranker import ServedRanker
from rankloop.serving.stores.contract import Store, StoreError

_PAUSE = 0.25
_HEARTBEAT = 5.0
_LISTS = 200  # lists in one piece of a table
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_PIECE_BYTES = 1 << 20  # of a file


class _Listener:
    def __init__(self, ranker: str | None, caller: Permission) -> None:
        self._ranker = ranker
        self.caller = caller
        self.news: dict[str, bytes] = {}
        self.woken = asyncio.Event()

    @property
    def wants_all(self) -> bool:
        return self._ranker is None

    def wants(self, ranker: str) -> bool:
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
        self._task = asyncio.create_task(self._watch())

    def release(self) -> None:
        self.closing.set()
        for listener in self._listeners:
            listener.woken.set()

    async def stop(self) -> None:
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
        health = {
            "ready": why is None,
            "why": why,
            "broken": engine.broken,
            "notices": [] if caller.rankers else engine.notices(),
            "waiting": engine.commit.waiting,
            "rankers": sum(map(caller.covers, engine.rankers)),
            "now": engine.now(),
        }
        return b"event: health\ndata: " + msgspec.json.encode(health) + b"\n\n"

    async def listen(
        self, ranker: str | None, caller: Permission = EVERYTHING, may: Callable[[], bool] = lambda: True
    ) -> AsyncIterator[bytes]:
        """Messages for one listener, the present state first, until the service stops, or `may` says no."""
        if len(self._listeners) >= self._engine.limits.streams:
            raise Busy(f"limit reached: {self._engine.limits.streams:,} streams")
        listener = _Listener(ranker, caller)
        self._listeners.add(listener)
        try:
            if listener.wants_all:
                await self._engine.find_all()
            for served in self._served():
                if listener.wants(served.name):
                    listener.news[served.name] = await _message(served)
            listener.woken.set()
            yield b"retry: 1000\n\n" + self._health(caller)
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(listener.woken.wait(), _HEARTBEAT)
                if self.closing.is_set() or not may():
                    return
                listener.woken.clear()
                news, listener.news = listener.news, {}
                yield b"".join(news.values()) or self._health(caller)
        finally:
            self._listeners.discard(listener)


async def _message(served: ServedRanker) -> bytes:
    answer = await views.ranker_answer(served)
    return b"event: ranker\ndata: " + msgspec.json.encode(answer) + b"\n\n"


async def csv_rows(store: Store, ranker: str) -> AsyncIterator[bytes]:
    """The table, in pieces. `at` is in milliseconds since 1970; what is not known is empty."""
    yield (",".join(COLUMNS) + "\r\n").encode()
    waiting: list[dict[str, Any]] = []
    n_lists = 0
    async for one in answered_lists(store, ranker):
        waiting += positions(one)
        n_lists += 1
        if n_lists % _LISTS == 0:
            yield _written(waiting)
            waiting = []
    yield _written(waiting)


def _written(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    csv.DictWriter(text, list(COLUMNS)).writerows(
        {name: _plain(value) if isinstance(value, str) else value for name, value in row.items()}
        for row in rows
    )
    return text.getvalue().encode()


def _plain(text: str) -> str:
    """Text that a spreadsheet takes for text: what would begin a formula gets an apostrophe before it."""
    return f"'{text}" if text.startswith(_FORMULA) else text


async def parquet_pieces(store: Store, ranker: str) -> AsyncIterator[bytes]:
    """The file in pieces; it is written as a whole first, because its end says where everything is."""
    with tempfile.TemporaryDirectory(prefix="rankloop-export-") as folder:
        path = Path(folder) / "export.parquet"
        try:
            await export(store, ranker, path)
        except MissingExtra as error:
            raise RequestError(str(error), field="format") from None
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece


async def ubi_lines(store: Store, ranker: str) -> AsyncIterator[bytes]:
    """Documents of UBI, in pieces, as a bulk request takes them."""
    lines = msgspec.json.Encoder().encode_lines
    yield b""
    async for one in answered_lists(store, ranker):
        yield lines(ubi_documents(one, ranker))


EXPORTS: dict[str, tuple[Callable[[Store, str], AsyncIterator[bytes]], str]] = {
    "csv": (csv_rows, "text/csv; charset=utf-8"),
    "ubi": (ubi_lines, "application/x-ndjson"),
    "parquet": (parquet_pieces, "application/vnd.apache.parquet"),
}
