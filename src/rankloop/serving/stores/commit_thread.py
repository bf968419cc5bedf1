"""A thread that waits for the disk while the event loop goes on: a leaner `run_in_executor`, for one caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]", Callable[[], object]]


class CommitThread:
    """Runs one call after the other, off the event loop."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, call: Callable[[], object]) -> None:
        """Wait until `call` is done; what it raises is raised here."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="commit", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._jobs.put((loop, future, call))
        await future

    def stop(self, seconds: float = 10.0) -> bool:
        """Finish what was begun; whether that was possible within `seconds`, on a disk that may hang."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(seconds)
            if self._thread.is_alive():
                return False
            self._thread = None
        return True

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, call = job
            error: BaseException | None = None
            try:
                call()
            except BaseException as caught:
                error = caught
            loop.call_soon_threadsafe(_finish, future, error)


def _finish(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
