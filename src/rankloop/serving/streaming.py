"""Sends what happens to rankers to a webhook or a file: in order for each ranker, at least once, from where it stopped.

How far it came is kept in a file, written after the receiver has acknowledged. A crash in between repeats events, which
have IDs, and loses none. One page of one log is in memory at a time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import httpx
import msgspec

from rankloop.extras import write_whole
from rankloop.serving.news import Event, RankerNews
from rankloop.serving.signatures import HEADER, sign
from rankloop.serving.stores.contract import Store

BATCH = 100  # events in a request
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds between two tries
_LOOK_SECONDS = 0.5
_AGAIN = (408, 425, 429)  # and everything from 500 on


class Refused(Exception):
    """The receiver does not want an event, and would not want it later."""


class Sink(Protocol):
    """Where events go."""

    async def send(self, events: list[Event]) -> None:
        """Return when they are acknowledged; `Refused` where they never will be."""

    async def close(self) -> None:
        """Let go of it."""


class Webhook:
    """Posts events as JSON, signed, and again with growing pauses until they are acknowledged with 2xx."""

    def __init__(
        self,
        url: str,
        secret: bytes | None,
        *,
        tell: Callable[[str], object] = lambda problem: None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url = url
        self._secret = secret
        self._tell = tell
        self._sleep = sleep
        self._clock = clock
        self._http = httpx.AsyncClient(transport=transport, timeout=30.0, trust_env=False)

    async def send(self, events: list[Event]) -> None:
        """Return when they are acknowledged; `Refused` where they never will be."""
        body = msgspec.json.encode({"events": events})
        pause = _FIRST_PAUSE
        while True:
            headers = {"content-type": "application/json"}
            if self._secret is not None:
                headers[HEADER] = sign(self._secret, body, at=int(self._clock()))
            wait = pause
            try:
                answer = await self._http.post(self._url, content=body, headers=headers)
            except httpx.RequestError as error:
                problem = f"{self._url} cannot be reached: {error or type(error).__name__}"
            else:
                if answer.is_success:
                    return
                problem = f"{self._url} answered {answer.status_code}"
                if answer.status_code < 500 and answer.status_code not in _AGAIN:
                    raise Refused(problem)
                asked = answer.headers.get("retry-after", "")
                if asked.isdigit():
                    wait = min(max(pause, float(asked)), _LONGEST_PAUSE)
            self._tell(f"{problem}; tried again in {wait:g} s")
            await self._sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()


class LinesFile:
    """Appends events to a file, one JSON object a line, and waits until they are on disk; None is standard output."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else path.open("ab")

    async def send(self, events: list[Event]) -> None:
        """Write them."""
        lines = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
        if self._file is None:
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()
        else:
            self._file.write(lines)
            self._file.flush()
            os.fsync(self._file.fileno())

    async def close(self) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()


class Cursor:
    """How far each ranker was sent, and which alerts were told: in a file, whole on disk before `save` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[str, tuple[int, str]] = {}  # by ranker: the row and its link
        self.alerts: list[str] = []
        try:
            told = json.loads(path.read_text())
            self.rows = {name: (int(seq), str(link)) for name, (seq, link) in told["rows"].items()}
            self.alerts = [str(one) for one in told["alerts"]]
        except FileNotFoundError:
            pass
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ValueError(f"{path} does not say how far was sent: delete it to begin anew") from None

    def save(self) -> None:
        """Write it."""
        told = json.dumps({"rows": self.rows, "alerts": self.alerts}).encode()

        def write(part: Path) -> None:
            with part.open("wb") as file:
                file.write(told)
                file.flush()
                os.fsync(file.fileno())

        write_whole(self._path, write)


class Stream:
    """Sends the news of rankers to a sink."""

    def __init__(
        self,
        store: Store,
        sink: Sink,
        cursor: Cursor,
        *,
        rankers: list[str] | None = None,
        alerts: Callable[[], Any] | None = None,
    ) -> None:
        self._store = store
        self._sink = sink
        self._cursor = cursor
        self._rankers = rankers
        self._alerts = alerts
        self._news: dict[str, RankerNews] = {}
        self.sent = 0

    async def follow(self, *, stop: Callable[[], bool] = lambda: False) -> None:
        """Send what there is and whatever comes, until `stop`."""
        while not stop():
            if not await self.send_new():
                await asyncio.sleep(_LOOK_SECONDS)

    async def send_new(self) -> int:
        """Send what is there and was not sent yet; how many events that were."""
        before = self.sent
        for name in self._rankers or await self._store.rankers():
            await self._send_ranker(name)
        await self._send_alerts()
        return self.sent - before

    async def _send_ranker(self, name: str) -> None:
        news = self._news.get(name)
        if news is None or not await news.is_current():
            seq, link = self._cursor.rows.get(name, (0, "")) if news is None else (0, "")
            news = self._news[name] = await RankerNews.begin(
                self._store, name, seq=seq, link=bytes.fromhex(link)
            )
        while True:
            before = news.seq
            events = await news.next_page()
            if news.seq == before:
                return
            for first in range(0, len(events), BATCH):
                part = events[first : first + BATCH]
                await self._sink.send(part)
                self.sent += len(part)
            self._cursor.rows[name] = (news.seq, news.link.hex())
            self._cursor.save()

    async def _send_alerts(self) -> None:
        if self._alerts is None:
            return
        now = sorted(await self._alerts())
        events = [
            {"kind": "alert", "sentence": one, "begins": one in now, "at": int(time.time() * 1000)}
            for one in sorted({*now} ^ {*self._cursor.alerts})
        ]
        if events:
            await self._sink.send(events)
            self.sent += len(events)
            self._cursor.alerts = now
            self._cursor.save()
