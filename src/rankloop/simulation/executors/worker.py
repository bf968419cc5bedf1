"""A worker process: reads calls from standard input, answers on standard output, and ends with whoever started it."""

from __future__ import annotations

import os
import queue
import signal
import struct
import sys
import threading
from typing import IO

from rankloop.simulation.executors.pickling import dumps, loads

_LENGTH = struct.Struct("<Q")


def write_frame(pipe: IO[bytes], data: bytes) -> None:
    """Write bytes with their length in front."""
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes:
    """Read what `write_frame` wrote; EOFError where the other side has ended."""
    return _exactly(pipe, _LENGTH.unpack(_exactly(pipe, _LENGTH.size))[0])


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


def main() -> None:
    """Answer calls until standard input ends."""
    # Ctrl-C in a terminal reaches every process of it; the one that began the work decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # What a job prints must not come between the answers.
    with open(os.devnull) as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(calls, waiting), daemon=True).start()
    while True:
        data = waiting.get()
        try:
            call, args = loads(data)
            answer = dumps((call(*args), None))
        except Exception as error:
            answer = dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        write_frame(answers, answer)


def _read(calls: IO[bytes], waiting: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            waiting.put(read_frame(calls))
    except EOFError:
        sys.stderr.flush()
        os._exit(0)  # whoever started this has ended, in whatever way; nobody waits for an answer
