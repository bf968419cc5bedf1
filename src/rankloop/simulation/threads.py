"""Runs on several threads: compiled loops release the interpreter's lock, and threads share the compiled code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from rankloop.simulation.bar import Bar
from rankloop.simulation.run import CHUNK_SECONDS, Run


def finish_all(
    makers: Sequence[Callable[[], Run]],
    *,
    workers: int,
    bar: Bar,
    before: int = 0,
    ended: Callable[[int, Run], None] = lambda place, run: None,
) -> None:
    """Make every run in a thread and play it to its end.

    `ended` is called in the thread of the caller, the one that Ctrl-C interrupts, as soon as a run has ended. After an
    error or Ctrl-C the other runs stop after their present piece, and nothing more is told of them.

    Parameters
    ----------
    makers : sequence of callable
        One for each run.
    workers : int
        How many play at once.
    bar : Bar
        Shows the rounds played.
    before : int, optional
        Rounds that the bar has shown before.
    ended : callable, optional
        Takes the place of a run among `makers`, and the run.
    """
    stop = threading.Event()
    playing: dict[int, Run] = {}

    def finish(place: int) -> None:
        if stop.is_set():
            return
        run = playing[place] = makers[place]()
        for _ in run.pieces():
            if stop.is_set():
                return

    with ThreadPoolExecutor(workers) as pool:
        places: dict[Future[None], int] = {pool.submit(finish, i): i for i in range(len(makers))}
        waiting = set(places)
        played = 0
        try:
            while waiting:
                # A wait without a timeout could not be interrupted; and the bar moves meanwhile.
                done, waiting = wait(waiting, timeout=CHUNK_SECONDS, return_when=FIRST_COMPLETED)
                for one in sorted(done, key=places.__getitem__):
                    one.result()
                    run = playing.pop(places[one])
                    played += run.t
                    ended(places[one], run)
                bar.show(before + played + sum(run.t for run in list(playing.values())))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
