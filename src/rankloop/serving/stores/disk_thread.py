"""A thread that waits for the disk while the event loop goes on: a leaner `run_in_executor`, for one caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from rankloop.serving.stores.errors import StoreError

Result = TypeVar("Result")
_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class DiskThread:
    """Runs one call after the other, off the event loop."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._current: asyncio.Future[Any] | None = None  # of the call that is under way
        self._waited_for: asyncio.Future[Any] | None = (
            None  # the call that somebody did not want to wait for longer
        )

    @property
    def stuck(self) -> bool:
        """Whether the call that is under way has lasted longer than somebody would wait."""
        current = self._current
        return current is not None and current is self._waited_for

    async def run(self, call: Callable[[], Result], *, seconds: float | None = None) -> Result:
        """Wait until `call` is done, and return what it returns; what it raises is raised here."""
        if seconds is not None and self.stuck:
            raise _late(seconds)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, self._give_up, future, seconds)
        self._jobs.put((loop, future, call))
        try:
            return await future
        finally:
            if timer is not None:
                timer.cancel()

    def _give_up(self, future: asyncio.Future[Any], seconds: float) -> None:
        if not future.done():
            future.set_exception(_late(seconds))
        # Only then: a call that begins from here on finds that nobody waits for it.
        self._waited_for = self._current

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
            self._current = future
            if future.done():  # nobody waits for it any more
                self._current = None
                continue
            error: BaseException | None = None
            result = None
            try:
                result = call()
            except BaseException as caught:
                error = caught
            self._current = None
            try:
                loop.call_soon_threadsafe(_finish, future, result, error)
            except RuntimeError:
                return  # the loop was closed while the disk hung: nobody is there to be told


def _finish(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _late(seconds: float) -> StoreError:
    return StoreError(f"the disk did not answer within {seconds:g} s")
