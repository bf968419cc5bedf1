"""Coroutines that run at once, up to the future that they wait for, and go on when it is done: no task is made."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rankloop.serving.pending import Pending

Result = TypeVar("Result")
_running: set[asyncio.Task[Any]] = set()  # a loop keeps no tasks alive


def go_on(coroutine: Coroutine[Any, Any, Result], done: Callable[[Result | None], None]) -> None:
    """Run a coroutine that waits for nothing but futures, and that asks for no current task."""
    try:
        future = coroutine.send(None)
    except StopIteration as stop:
        done(stop.value)
    except BaseException:
        done(None)
        raise
    else:
        if type(future) is Pending:
            future.then = functools.partial(go_on, coroutine, done)
        else:
            future.add_done_callback(lambda _: go_on(coroutine, done))


def begin_task(coroutine: Coroutine[Any, Any, Result], done: Callable[[Result | None], None]) -> None:
    """Run any coroutine, as a task."""
    task = asyncio.get_running_loop().create_task(coroutine)
    _running.add(task)

    def finish(task: asyncio.Task[Result]) -> None:
        _running.discard(task)
        failed = task.cancelled() or task.exception() is not None
        done(None if failed else task.result())

    task.add_done_callback(finish)
