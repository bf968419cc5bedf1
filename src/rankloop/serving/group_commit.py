"""Group commit: whatever came while the disk was busy goes to it together, and is answered once it is there.

The window is adaptive. A single event is written at once. Where the last batches were larger, the next waits
a little, at most a third of what a commit takes, for as many to come again: one fsync for all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from rankloop.serving.admission import Busy, NotFound, Unavailable
from rankloop.serving.failpoints import reach
from rankloop.serving.log.decision_state import Outcome
from rankloop.serving.log.records import Entry, Row
from rankloop.serving.messages import tracing
from rankloop.serving.stores.contract import Stale

MOST_IN_A_BATCH = 512


class Written(NamedTuple):
    """An entry that is durable: its row, whether it is new, and what it came to (None where it is not new).

    failed: it could not be folded, and what it came to is not known.
    """

    row: Row
    new: bool
    outcome: Outcome | None
    failed: bool = False


Write = Callable[[list[Entry]], Awaitable[list[Written]]]
Queued = tuple[list[Entry], asyncio.Future[list[Written]]]
Results = list[list[Written] | Exception]  # what each of a batch comes to


class GroupCommit:
    """A queue in front of `write`."""

    def __init__(self, write: Write, *, most_waiting: int, seconds: float = 10.0) -> None:
        self._write = write
        self._most = most_waiting
        self._seconds = seconds  # that anybody waits for the store
        self._queue: deque[Queued] = deque()
        self._come = asyncio.Event()
        self._enough = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._usual = 1.0  # events in a batch
        self._takes = 0.004  # seconds for a commit
        self._target = 1
        self.overdue = False  # the store has not answered in that time, and has not since
        self.waiting = 0
        self.batches = 0
        self.events = 0
        self.seconds = 0.0

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is None:
            return
        end = time.monotonic() + self._seconds
        while self.waiting and not self._task.done() and time.monotonic() < end:
            await asyncio.sleep(0.002)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def submit(self, entries: list[Entry]) -> asyncio.Future[list[Written]]:
        """Queue them, to be written together; `Busy` where there is no room."""
        if self._task is None or self._task.done():
            raise Unavailable("the service is stopping")
        if self.overdue:
            raise self._late()
        if self.waiting + len(entries) > self._most:
            raise Busy(f"limit reached: {self._most:,} events that wait for the disk; try again in a second")
        future: asyncio.Future[list[Written]] = asyncio.get_running_loop().create_future()
        self._queue.append((entries, future))
        self.waiting += len(entries)
        self._come.set()
        if self.waiting >= self._target:
            self._enough.set()
        reach("after-enqueue")
        return future

    async def _run(self) -> None:
        while True:
            await self._come.wait()
            await self._gather()
            batch: list[Queued] = []
            entries: list[Entry] = []
            while self._queue and len(entries) < MOST_IN_A_BATCH:
                one = self._queue.popleft()
                batch.append(one)
                entries += one[0]
            if not self._queue:
                self._come.clear()
            began = time.perf_counter()
            timer = asyncio.get_running_loop().call_later(self._seconds, self._give_up, batch)
            results: Results
            try:
                with tracing.commit(len(entries)):
                    results = _apart(batch, await self._write(entries))
            except (NotFound, Stale) as error:
                results = await self._write_apart(batch, error)
            except Exception as error:
                results = [error] * len(batch)
            timer.cancel()
            self.overdue = False
            self.waiting -= len(entries)
            took = time.perf_counter() - began
            self.batches += 1
            self.events += len(entries)
            self.seconds += took
            self._usual += 0.2 * (len(entries) - self._usual)
            self._takes += 0.2 * (took - self._takes)
            for (_, future), found in zip(batch, results, strict=True):
                _settle(future, found)

    async def _write_apart(self, batch: list[Queued], error: Exception) -> Results:
        """A ranker of the batch is gone, or was changed, and nothing was written: only who asked for it is refused."""
        if len(batch) == 1:
            return [error]
        results: Results = []
        for entries, _ in batch:
            try:
                results.append(await self._write(entries))
            except Exception as refused:
                results.append(refused)
        return results

    def _late(self) -> Unavailable:
        return Unavailable(
            f"the store has not answered for {self._seconds:g} s; what was sent may yet be written: send it again"
        )

    def _give_up(self, batch: list[Queued]) -> None:
        """Nobody waits longer. The batch may be written yet; what was queued behind it is not."""
        self.overdue = True
        queued = list(self._queue)
        self.waiting -= sum(len(entries) for entries, _ in queued)
        self._queue.clear()
        self._come.clear()
        for _, future in (*batch, *queued):
            _settle(future, self._late())

    async def _gather(self) -> None:
        self._target = min(MOST_IN_A_BATCH, int(0.9 * self._usual))
        if self._target > 1 and self.waiting < self._target:
            self._enough.clear()
            patience = min(0.3 * self._takes, 0.005)
            timer = asyncio.get_running_loop().call_later(patience, self._enough.set)
            await self._enough.wait()
            timer.cancel()


def _settle(future: asyncio.Future[list[Written]], found: list[Written] | Exception) -> None:
    if future.done():  # the caller has gone, or was told that it is late
        return
    if isinstance(found, Exception):
        future.set_exception(found)
    else:
        future.set_result(found)


def _apart(batch: list[Queued], written: list[Written]) -> Results:
    """What was written together, for each who asked; nobody asks for nothing."""
    if len(written) == len(batch):
        return [[one] for one in written]
    rest = iter(written)
    return [list(itertools.islice(rest, len(entries))) for entries, _ in batch]
