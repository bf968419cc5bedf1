"""Where jobs run: threads, processes of this machine, a Ray cluster, or any executor of `concurrent.futures`.

`simulation.play_many`, `simulation.compare`, `simulation.tune` and `rankloop reproduce` take an `executor`. The jobs
and their seeds are the same for each of them, and so is every result, byte by byte.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import io
import multiprocessing
import os
import pickle
import platform
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankloop.arguments import whole
from rankloop.extras import require
from rankloop.simulation.play import STOP
from rankloop.simulation.trace import code_fingerprint

__all__ = ["Executor", "NotSendable", "Processes", "RayCluster", "WorkerLost"]

NAMES = ("threads", "processes", "ray", "cuda")
_RETRIES = 3  # so often Ray begins a call again whose worker or machine is gone
_GLANCE = 0.1  # seconds between two looks at the executor
_LAST_PIECE = 1.0  # seconds that threads have for their present piece after an error or Ctrl-C


class WorkerLost(RuntimeError):
    """The process or the machine that computed a job has ended before the job did."""


class NotSendable(ValueError):
    """Something of a job cannot be sent to another process."""


class Executor(Protocol):
    """Whatever calls functions elsewhere, as every executor of `concurrent.futures` does.

    What `submit` returns needs `result()` and `add_done_callback`. An executor may have `workers`, the number of calls
    that it works on at once.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Call the function `fn`, which can be imported by its name, with `args`, which are bytes; gives a future."""


def is_threads(executor: Any) -> bool:
    """Whether `executor`, as `play_many` takes it, means threads of this process, which need nothing to be sent.

    ValueError where it is neither a known name nor something with `submit`.

    >>> is_threads("threads"), is_threads("processes")
    (True, False)
    """
    if isinstance(executor, str) and executor in NAMES:
        return executor == "threads"
    if isinstance(executor, str) or not callable(getattr(executor, "submit", None)):
        raise ValueError(
            f"executor must be {', '.join(map(repr, NAMES))} or an object with submit, got {executor!r}"
        )
    return False


@contextmanager
def opened(executor: str | Executor, *, workers: int | None = None) -> Iterator[tuple[Executor, int]]:
    """An `executor`, and how many jobs it works on at once: `workers`, or one for each core of machine or cluster.

    One that is named, "threads", "processes" or "ray", is started here and ended on the way out; one that is given
    stays as it is.
    """
    workers = None if workers is None else whole("workers", workers, at_least=1)
    cores = os.cpu_count() or 1
    if is_threads(executor) or executor == "cuda":  # threads play what a GPU cannot
        with Threads(workers or cores) as threads:
            yield threads, workers or cores
    elif isinstance(executor, str):
        with Processes(workers) if executor == "processes" else RayCluster(workers=workers) as started:
            yield started, started.workers
    else:
        yield executor, workers or getattr(executor, "workers", None) or cores


class Threads(concurrent.futures.Executor):
    """Threads of this process: compiled loops release the interpreter's lock, and threads share the compiled code.

    They are daemons, unlike those of the standard library: after Ctrl-C nothing waits for a job that takes no notice.
    """

    def __init__(self, workers: int) -> None:
        self.stop = threading.Event()  # set once nobody waits for a result any more
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._workers = workers
        self._threads: list[threading.Thread] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def call() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)

        self._calls.put(call)
        if len(self._threads) < self._workers:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.stop.set()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.shutdown(wait=kind is None)

    def _work(self) -> None:
        STOP.set(self.stop)
        while (call := self._calls.get()) is not None:
            call()


class Processes(ProcessPoolExecutor):
    """Worker processes on this machine, those of the standard library.

    Each is a fresh interpreter, started when it is first needed. It ends with the process that started it, even if
    that is killed. As with every pool of processes, a script that uses it needs ``if __name__ == "__main__":``.

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
        # Polars and compiled code have threads of their own, which a fork would leave behind.
        context = multiprocessing.get_context("spawn")
        alive, self._alive = context.Pipe(duplex=False)
        super().__init__(self.workers, mp_context=context, initializer=_end_with, initargs=(alive,))

    def close(self) -> None:
        """End every worker, whatever it is doing, and wait until it is gone."""
        self._alive.close()
        self.shutdown(cancel_futures=True)

    def __exit__(self, *_: object) -> None:
        self.close()


def _end_with(alive: Any) -> None:
    """In a worker: end at once when the one who began the work closes the pipe, or is no more."""
    # Ctrl-C in a terminal reaches every process of it; the one that began the work decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        try:
            alive.recv_bytes()
        except (EOFError, OSError):
            os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


class RayCluster(AbstractContextManager["RayCluster"]):
    """Workers on a Ray cluster, or on a small one that is started here for the purpose.

    Every machine needs rankloop and its libraries in the same versions; where a worker has others, the first result
    that it returns is refused. What a lost machine was computing, Ray computes again on another.

    Parameters
    ----------
    address : str, optional
        The address of a cluster, such as ``"10.0.0.7:6379"`` or ``"ray://head:10001"``. By default the one to which
        this process is connected, or that of the environment variable ``RAY_ADDRESS``, or else a new one on this
        machine.
    workers : int, optional
        How many calls run at once; None takes one for each core of the cluster.
    """

    def __init__(self, address: str | None = None, *, workers: int | None = None) -> None:
        workers = None if workers is None else whole("workers", workers, at_least=1)
        require("ray", extra="cluster", for_='executor="ray"')
        import ray

        self._ray = ray
        self._connected = not ray.is_initialized()
        if self._connected:
            _connect(ray, address, workers)
        elif address is not None and address != ray.get_runtime_context().gcs_address:
            raise ValueError(
                f"address must be {ray.get_runtime_context().gcs_address}, to which this process is connected, "
                f"got {address!r}"
            )
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._call = ray.remote(num_cpus=1, max_retries=_RETRIES)(_call)
        self._running: set[Any] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Call the function `fn` with `args` in a worker; a future of what it returns."""
        reference = self._call.remote(fn, *args)
        self._running.add(reference)
        future = reference.future()
        future.add_done_callback(lambda _: self._running.discard(reference))
        return future

    def close(self) -> None:
        """End what is running, and the connection if it was made here."""
        for reference in list(self._running):
            # By force: compiled code hears of nothing until it returns.
            self._ray.cancel(reference, force=True)
        if self._connected:
            self._ray.shutdown()

    def __exit__(self, *_: object) -> None:
        self.close()


def _call(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*args)


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address is None and not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        here = {"num_cpus": workers or os.cpu_count(), "include_dashboard": False}
        ray.init(**options, **here, address="local", _node_ip_address="127.0.0.1")
        return
    try:
        ray.init(**options, address=address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = address or os.environ["RAY_ADDRESS"]
        raise ConnectionError(f"no Ray cluster answers at {where}: {error}") from error


class Dispatch:
    """The jobs of one run, on their way to an executor and back.

    `work` takes a job and returns its result, elsewhere. Jobs begin in their order, so many `workers` at once; `names`
    are what errors call them.
    """

    def __init__(
        self,
        work: Callable[[Any], Any],
        jobs: Sequence[Any],
        *,
        names: Sequence[str],
        executor: Executor,
        workers: int,
    ) -> None:
        self.work, self.jobs, self.names = work, jobs, names
        self.executor, self.workers = executor, workers
        self.finished: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def run(
        self, ended: Callable[[int, Any, float], None], glance: Callable[[], None] = lambda: None
    ) -> None:
        """Run all jobs; in this thread, tell each one's place, result and seconds as soon as it has `ended`.

        `glance` is called about ten times a second. What a job raised is raised here, with a note that names it.
        """
        sent: dict[int, Any] = {}
        todo = iter(range(len(self.jobs)))
        left = len(self.jobs)
        try:
            while left:
                # Two for each worker, so that none waits for this thread.
                while len(sent) < 2 * self.workers and (place := next(todo, None)) is not None:
                    sent[place] = self._send(place)
                for place, future in self._returned():
                    del sent[place]
                    left -= 1
                    answer = self._answer(place, future)
                    if answer.error is not None:
                        answer.error.add_note(f"while running {self.names[place]}")
                        raise answer.error
                    ended(place, answer.result, answer.seconds)
                glance()
        except BaseException:
            for future in sent.values():
                future.cancel()
            if isinstance(self.executor, Threads):
                self.executor.stop.set()
                wait(sent.values(), timeout=_LAST_PIECE)
            raise

    def _send(self, place: int) -> Any:
        job = self.jobs[place]
        try:
            if isinstance(self.executor, Threads):
                future: Any = self.executor.submit(_timed, self.work, job)
            else:
                future = self.executor.submit(run_sent, pack(self.work, job, name=self.names[place]))
        except BrokenExecutor as error:
            raise WorkerLost(
                f"{type(self.executor).__name__} is broken and takes no more jobs: {error}"
            ) from error
        if not hasattr(future, "add_done_callback"):
            raise ValueError(
                "executor must return futures with add_done_callback, got "
                f"{type(future).__name__} from {type(self.executor).__name__}.submit"
            )
        future.add_done_callback(lambda done: self.finished.put((place, done)))
        return future

    def _returned(self) -> list[tuple[int, Any]]:
        # A wait without a timeout could not be interrupted on every system.
        returned = []
        try:
            returned.append(self.finished.get(timeout=_GLANCE))
            while True:
                returned.append(self.finished.get_nowait())
        except queue.Empty:
            return returned

    def _answer(self, place: int, future: Future[Any]) -> Answer:
        try:
            result = future.result()
        except Exception as error:  # never of the job itself: its own error is part of the answer
            raise WorkerLost(
                f"{self.names[place]} has lost its worker: {error}; does it need more memory than there is? "
                'A script needs if __name__ == "__main__": for processes'
            ) from error
        answer: Answer = result if isinstance(self.executor, Threads) else unpack(result)
        return answer


class Answer(NamedTuple):
    """What a job came to: its result, or the error that ended it."""

    result: Any
    error: BaseException | None
    seconds: float


def _timed(work: Callable[[Any], Any], job: Any) -> Answer:
    begun = time.perf_counter()
    try:
        result = work(job)
    except BaseException as error:  # Ctrl-C of a job, too: the thread that waits raises it
        return Answer(None, error, time.perf_counter() - begun)
    return Answer(result, None, time.perf_counter() - begun)


@cache
def versions() -> dict[str, str]:
    """What decides the bytes of a result; both sides must have the same."""
    return {
        "rankloop": code_fingerprint(),
        "numpy": np.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
    }


def pack(work: Callable[[Any], Any], job: Any, *, name: str) -> bytes:
    """A job as bytes, for `run_sent`; NotSendable, with its name, where that cannot be."""
    # Where real data lies; a worker that has a place of its own keeps it.
    data = os.environ.get("RANKLOOP_DATA")
    place = {"RANKLOOP_DATA": str(Path(data).expanduser().absolute())} if data else {}
    return dumps((work, job, place), what=name)


def run_sent(data: bytes) -> bytes:
    """Run a job, wherever this is called, and return what `unpack` reads."""
    work, job, surroundings = pickle.loads(data)
    for name, value in surroundings.items():
        os.environ.setdefault(name, value)
    answer = _timed(work, job)
    if answer.error is None:
        try:
            return dumps((versions(), answer), what="the result of a job")
        except NotSendable as error:
            answer = Answer(None, error, answer.seconds)
    assert answer.error is not None
    answer.error.add_note("".join(traceback.format_exception(answer.error)))
    return dumps((versions(), answer._replace(error=_sendable(answer.error))))


def _sendable(error: BaseException) -> BaseException:
    try:
        pickle.loads(dumps(error))
    except Exception:  # an exception with arguments of its own often cannot be made again
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def unpack(data: bytes) -> Answer:
    """What `run_sent` returned; RuntimeError where other versions computed there than here."""
    theirs, answer = pickle.loads(data)
    for name, here in versions().items():
        if theirs[name] != here:
            raise RuntimeError(
                f"a worker has {name} {theirs[name]}, here is {here}: install the same versions on every machine"
            )
    return Answer(*answer)


def dumps(value: Any, *, what: str = "this") -> bytes:
    """A value as bytes for `pickle.loads`; NotSendable where something in it cannot be sent, such as an open file.

    Functions and classes of a notebook or a script are written by value, so nobody needs to import them. Kernels
    travel by name, so that whoever receives them uses its own compiled ones.
    """
    file = io.BytesIO()
    try:
        _pickler()(file, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    except RecursionError as error:
        raise NotSendable(f"{what} cannot be sent to another process: it is nested too deeply") from error
    except Exception as error:  # whatever a __reduce__ of somebody raises
        raise NotSendable(
            f"{what} cannot be sent to another process: {type(error).__name__}: {error}; "
            'executor="threads" sends nothing'
        ) from error
    return file.getvalue()


class _ByName:
    def reducer_override(self, value: Any) -> Any:
        if hasattr(value, "py_func"):  # a kernel, or what numba makes of a function
            function: Any = value.py_func
            module = sys.modules.get(function.__module__)
            if function.__module__ != "__main__" and getattr(module, function.__name__, None) is value:
                return _kernel, (function.__module__, function.__name__)
        parent: Any = super()
        return parent.reducer_override(value) if hasattr(parent, "reducer_override") else NotImplemented


@cache
def _pickler() -> Any:
    # cloudpickle writes functions of a notebook or a script by value; without it these cannot be sent.
    with suppress(ImportError):
        return type("Pickler", (_ByName, importlib.import_module("cloudpickle").Pickler), {})
    return type("Pickler", (_ByName, pickle.Pickler), {})


def _kernel(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)
