"""Hands jobs to an executor in chunks, takes the results as they come, and sends again what was lost with a worker."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any, Protocol

from rankloop.simulation.executors.chunk import Answer, pack, run_chunk, unpack
from rankloop.simulation.executors.lost import WorkerLost
from rankloop.simulation.executors.pickling import loads

LOSSES = 3  # so often a job may lose its worker; once more ends the run
CHUNK_SECONDS = 1.0  # of work in a chunk, at least: what it costs to send one is then nothing
CHUNKS_PER_SECOND = 100  # at most so many come back to this process, however many workers there are
_GLANCE = 0.1  # seconds between two looks at the executor


class Executor(Protocol):
    """Whatever calls functions elsewhere.

    What `submit` returns needs `result()` and either `add_done_callback` or `done()`, as every future has. An
    executor may have `workers`, the number of calls that it works on at once, and `is_lost(error)`, which says of an
    error of a future whether another try is worthwhile.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Call a function with arguments, and return a future of its result.

        Parameters
        ----------
        fn : callable
            The function; it can be imported by its name.
        *args : Any
            Its arguments: bytes.

        Returns
        -------
        Any
            A future.
        """


class Dispatch:
    """The jobs of one run, on their way to an executor and back.

    Parameters
    ----------
    work : callable
        Takes a job and returns its result. It is called elsewhere.
    jobs : sequence
        The jobs, in the order in which they begin.
    names : sequence of str
        What each job is called in an error.
    costs : sequence of float
        A guess of the work in each, in any unit.
    executor : Executor
        Where they run.
    workers : int
        How many run at once.
    """

    def __init__(
        self,
        work: Callable[[Any], Any],
        jobs: Sequence[Any],
        *,
        names: Sequence[str],
        costs: Sequence[float],
        executor: Executor,
        workers: int,
    ) -> None:
        self.work, self.jobs, self.names, self.costs = work, jobs, names, costs
        self.executor, self.workers = executor, workers
        self.todo = deque(range(len(jobs)))
        self.again: deque[int] = deque()  # lost with a worker; sent one by one, so that a culprit is found
        self.losses = dict.fromkeys(range(len(jobs)), 0)
        self.pace: float | None = None  # seconds for one unit of cost, as the last chunk took
        self.sent: dict[int, tuple[Any, list[int]]] = {}
        self.finished: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.count = 0

    def run(
        self, ended: Callable[[int, Any, float], None], glance: Callable[[], None] = lambda: None
    ) -> None:
        """Run all jobs.

        Parameters
        ----------
        ended : callable
            Called in this thread as soon as a job has ended, once for each: its place, its result, and the seconds it
            took.
        glance : callable, optional
            Called in this thread about ten times a second.

        Raises
        ------
        NotSendable
            Where a job cannot be sent.
        WorkerLost
            Where a job has lost its worker too often.
        Exception
            What a job raised, with a note that names it.
        """
        try:
            while self.todo or self.again or self.sent:
                while (self.todo or self.again) and len(self.sent) < 2 * self.workers:
                    self._send()
                for number in self._returned():
                    future, places = self.sent.pop(number)
                    for place, answer in zip(places, self._answers(future, places), strict=False):
                        self._take(place, answer, ended)
                glance()
        finally:
            for future, _ in self.sent.values():
                if hasattr(future, "cancel"):
                    future.cancel()

    def _send(self) -> None:
        places = [self.again.popleft()] if self.again else self._next_chunk()
        data = pack(self.work, [self.jobs[i] for i in places], [self.names[i] for i in places])
        try:
            future = self.executor.submit(run_chunk, data)
        except BrokenExecutor as error:
            raise WorkerLost(
                f"{type(self.executor).__name__} is broken and takes no more jobs: {error}"
            ) from error
        number, self.count = self.count, self.count + 1
        self.sent[number] = future, places
        if hasattr(future, "add_done_callback"):
            future.add_done_callback(lambda _: self.finished.put(number))
        elif not hasattr(future, "done"):
            raise ValueError(
                "executor must return futures with add_done_callback or done, got "
                f"{type(future).__name__} from {type(self.executor).__name__}.submit"
            )

    def _next_chunk(self) -> list[int]:
        # One job at first; then as many as fill a second, by the pace of the jobs before.
        wanted = max(CHUNK_SECONDS, self.workers / CHUNKS_PER_SECOND)
        places = [self.todo.popleft()]
        seconds = self._expected(places[0])
        while self.todo and seconds + self._expected(self.todo[0]) / 2 < wanted:
            seconds += self._expected(self.todo[0])
            places.append(self.todo.popleft())
        return places

    def _expected(self, place: int) -> float:
        return float("inf") if self.pace is None else self.pace * self.costs[place]

    def _returned(self) -> list[int]:
        # A wait without a timeout could not be interrupted on every system.
        polled = [
            number
            for number, (future, _) in self.sent.items()
            if not hasattr(future, "add_done_callback") and future.done()
        ]
        found = polled
        try:
            found.append(self.finished.get(timeout=0.0 if polled else _GLANCE))
            while True:
                found.append(self.finished.get_nowait())
        except queue.Empty:
            return found

    def _answers(self, future: Any, places: list[int]) -> list[Answer]:
        try:
            answers = unpack(future.result())
        except Exception as error:
            if not self._is_lost(error):
                raise
            for place in places:
                self.losses[place] += 1
                if self.losses[place] > LOSSES:
                    raise WorkerLost(
                        f"{self.names[place]} has lost its worker {self.losses[place]} times, the last time: {error}; "
                        "does it need more memory than there is?"
                    ) from error
            self.again.extend(places)
            return []
        cost = sum(self.costs[place] for place in places)
        self.pace = sum(answer.seconds for answer in answers) / cost if cost > 0 else None
        return answers

    def _is_lost(self, error: Exception) -> bool:
        if isinstance(error, WorkerLost | BrokenExecutor):
            return True
        return hasattr(self.executor, "is_lost") and bool(self.executor.is_lost(error))

    def _take(self, place: int, answer: Answer, ended: Callable[[int, Any, float], None]) -> None:
        if answer.error is not None:
            answer.error.add_note(f"while running {self.names[place]}")
            raise answer.error
        assert answer.result is not None
        ended(place, loads(answer.result), answer.seconds)
