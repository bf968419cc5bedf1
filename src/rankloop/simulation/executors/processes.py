"""Workers on this machine: interpreters of their own, each fed by a thread."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Self

from rankloop.arguments import whole
from rankloop.simulation.executors.lost import WorkerLost
from rankloop.simulation.executors.pickling import dumps, loads
from rankloop.simulation.executors.worker import read_frame, write_frame

_START = "import sys; sys.path[:] = {path!r}; from rankloop.simulation.executors.worker import main; main()"


class Processes:
    """Worker processes on this machine.

    Each is a fresh interpreter, started when it is first needed: nothing is forked, and the script that calls this
    is not imported again, so it needs no ``if __name__ == "__main__":``. Workers end with the process that started
    them, even if that is killed.

    Parameters
    ----------
    workers : int, optional
        How many; None takes one for each core.

    Examples
    --------
    >>> with Processes(workers=1) as executor:
    ...     executor.submit(divmod, 7, 2).result()
    (3, 1)
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = whole("workers", (os.cpu_count() or 1) if workers is None else workers, at_least=1)
        self._calls: queue.SimpleQueue[tuple[Future[Any], bytes] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._started: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Call a function in a worker.

        Parameters
        ----------
        fn : callable
            The function.
        *args : Any
            Its arguments.

        Returns
        -------
        concurrent.futures.Future
            What it returns; `WorkerLost` where the worker ended meanwhile.
        """
        future: Future[Any] = Future()
        call = dumps((fn, args), what="the call")
        with self._lock:
            if self._closed:
                raise RuntimeError("these processes are closed")
            self._calls.put((future, call))
            if len(self._threads) < self.workers:
                thread = threading.Thread(target=self._feed, daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """End every worker, whatever it is doing, and wait until it is gone."""
        with self._lock:
            self._closed = True
            processes = list(self._started)
            for _ in self._threads:
                self._calls.put(None)
        for process in processes:
            process.kill()
        for thread in self._threads:
            thread.join()
        with contextlib.suppress(queue.Empty):
            while True:
                left = self._calls.get_nowait()
                if left is not None:
                    left[0].cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _feed(self) -> None:
        process: subprocess.Popen[bytes] | None = None
        while (taken := self._calls.get()) is not None:
            future, call = taken
            if self._closed or not future.set_running_or_notify_cancel():
                continue
            try:
                if process is None:
                    process = self._start()
                assert process.stdin is not None
                assert process.stdout is not None
                write_frame(process.stdin, call)
                result, error = loads(read_frame(process.stdout))
            except (OSError, EOFError):
                future.set_exception(WorkerLost(f"a worker process ended ({_why(process)})"))
                self._end(process)
                process = None
            else:
                if error is None:
                    future.set_result(result)
                else:
                    future.set_exception(error)
        self._end(process)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise EOFError
            process = subprocess.Popen(
                [sys.executable, "-c", _START.format(path=sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self._started.append(process)
            return process

    def _end(self, process: subprocess.Popen[bytes] | None) -> None:
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what could not be written any more
                pipe.close()  # type: ignore[union-attr]
        with self._lock:
            self._started.remove(process)


def _why(process: subprocess.Popen[bytes] | None) -> str:
    if process is None:
        return "before it began"
    try:
        code = process.wait(timeout=5.0)
    except subprocess.TimeoutExpired:
        return "it closed its pipes"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
