"""One line on the terminal when compiling takes long, so that nobody waits for a silent program.

Compiled code is kept on disk, so a line is shown the first time only, and again after rankloop or numba has changed.
It is shown where standard error is a terminal or RANKLOOP_PROGRESS is set; RANKLOOP_PROGRESS=0 switches it off.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

PATIENCE = 2.0  # seconds of compiling before a word is said


class Notice(event.Listener):
    """Follows what numba compiles, outermost function by outermost function."""

    def __init__(self) -> None:
        self.depth = 0
        self.begun = 0.0
        self.what = ""
        self.told = False
        self.muted = 0
        self.lock = threading.Lock()

    def on_start(self, event: Any) -> None:
        with self.lock:
            if self.depth == 0:
                self.begun, self.what, self.told = time.perf_counter(), _name(event.data["dispatcher"]), False
            self.depth += 1
            self._speak()

    def on_end(self, event: Any) -> None:
        with self.lock:
            self._speak()
            self.depth -= 1

    def _speak(self) -> None:
        # Parts are compiled one after another, each with a start and an end: no clock of its own is needed.
        if self.told or self.muted or time.perf_counter() - self.begun < PATIENCE or not wanted():
            return
        self.told = True
        line = f"rankloop: compiling {self.what}; the first time takes up to half a minute, then it is kept on disk"
        print(line, file=sys.stderr, flush=True)


def wanted() -> bool:
    """Whether anybody is there to read it."""
    asked = os.environ.get("RANKLOOP_PROGRESS", "")
    return sys.stderr.isatty() if asked == "" else asked != "0"


@contextmanager
def muted() -> Iterator[None]:
    """Say nothing meanwhile, for those who draw on the terminal themselves and say so there."""
    NOTICE.muted += 1
    try:
        yield
    finally:
        NOTICE.muted -= 1


def _name(dispatcher: Any) -> str:
    function = dispatcher.py_func
    rank, arrive = (function.__globals__.get(role) for role in ("rank", "arrive"))
    if function.__name__ == "play_rounds" and rank is not None and arrive is not None:
        return f"the loop of {_module(rank)} and {_module(arrive)}"
    return f"{function.__module__}.{function.__name__}"


def _module(kernel: Any) -> str:
    return str(kernel.py_func.__module__).rpartition(".")[2]


NOTICE = Notice()


def listen() -> None:
    """Begin to follow what numba compiles."""
    register: Any = event.register
    register("numba:compile", NOTICE)
