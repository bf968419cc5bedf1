"""Runs the jobs of an experiment on all cores, keeps each one's rows as soon as it ends, and resumes.

By default in threads: the compiled loops release the interpreter lock, and threads share the compiled code.
Workers only compute; files are written by the thread that called `run_jobs`, the one that Ctrl-C interrupts, so
that an interrupted run leaves whole files only.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from rich.console import Console

from rankloop.experiments.experiment import Experiment, Job
from rankloop.experiments.harness.progress import job_bar
from rankloop.experiments.harness.results_folder import ResultFolder
from rankloop.simulation.code_version import code_fingerprint
from rankloop.simulation.executors import Dispatch, Executor, is_threads, opened
from rankloop.whole_file import write_whole

_GLANCE = 0.2  # seconds between updates while waiting for a job


@dataclass(frozen=True, slots=True)
class Outcome:
    """The jobs, the rows of all of them in the same order, and what it took to get them."""

    jobs: Sequence[Job]
    results: pl.DataFrame
    ran: int
    resumed: int
    seconds: float
    """Work of all jobs together, resumed ones included, as measured when they ran."""


def run_jobs(
    experiment: Experiment,
    *,
    out: Path,
    quick: bool = False,
    workers: int | None = None,
    fresh: bool = False,
    console: Console | None = None,
    executor: str | Executor = "threads",
) -> Outcome:
    """Run what is not yet in `out` and return everything.

    Parameters
    ----------
    out : Path
        Folder of all results; this experiment's part is ``<out>/<experiment.label>``.
    quick : bool, optional
        The small version.
    workers : int, optional
        How many jobs run at once; by default one for each core.
    fresh : bool, optional
        Run every job again, whatever is stored.
    console : Console, optional
        Where progress goes; by default standard error. Silent unless it is a terminal.
    executor : str or Executor, optional
        Where jobs run, as in `simulation.play_many`. It changes no row.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    console = console or Console(stderr=True)
    folder = ResultFolder(out=out, experiment=experiment.label)
    folder.sweep()
    jobs = experiment.jobs(quick=quick)
    files = _files(experiment, folder, jobs)
    todo = [job for job, file in files if fresh or not _is_usable(file)]
    resumed = len(files) - len(todo)
    if resumed and console.is_terminal:
        told = f"{experiment.label}: {resumed} of {len(files)} jobs were finished earlier and are resumed"
        console.print(told, highlight=False)
    if todo:
        # The costliest first, so that no core is left alone with a long job at the end.
        todo.sort(key=lambda job: -job.cost)
        paths = {job.name: file for job, file in files}
        if is_threads(executor):
            _run(experiment, todo, paths, workers=workers or os.cpu_count() or 1, console=console)
        else:
            _run_elsewhere(experiment, todo, paths, executor, workers=workers, console=console)
    frames, seconds = [], 0.0
    for job, file in files:
        frame = pl.read_parquet(file)
        seconds += float(pl.read_parquet_metadata(file)["seconds"])
        frames.append(
            frame.select(
                pl.lit(job.name).alias("job"), pl.lit(job.seed, dtype=pl.Int64).alias("seed"), pl.all()
            )
        )
    return Outcome(jobs=jobs, results=pl.concat(frames), ran=len(todo), resumed=resumed, seconds=seconds)


def unfinished(experiment: Experiment, jobs: Sequence[Job], *, out: Path) -> list[Job]:
    """Those of `jobs` whose rows are not in `out` yet."""
    folder = ResultFolder(out=out, experiment=experiment.label)
    return [job for job, file in _files(experiment, folder, jobs) if not _is_usable(file)]


def _files(experiment: Experiment, folder: ResultFolder, jobs: Sequence[Job]) -> list[tuple[Job, Path]]:
    if not jobs:
        raise ValueError(f"experiment {experiment.name!r} has no jobs")
    if len({job.name for job in jobs}) < len(jobs):
        raise ValueError(f"experiment {experiment.name!r} has two jobs of the same name")
    return [
        (job, folder.job(job.identity(experiment=experiment.name, version=experiment.version)))
        for job in jobs
    ]


def _is_usable(file: Path) -> bool:
    try:
        told = pl.read_parquet_metadata(file)
    except (OSError, pl.exceptions.PolarsError):
        return False  # absent, or not written by us
    return told.get("code") == code_fingerprint() and "seconds" in told


@dataclass(frozen=True, slots=True)
class _Done:
    job: Job
    rows: pl.DataFrame | BaseException
    seconds: float


def _run(
    experiment: Experiment, todo: list[Job], paths: dict[str, Path], *, workers: int, console: Console
) -> None:
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in todo:
        waiting.put(job)
    done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            start = time.perf_counter()
            rows: pl.DataFrame | BaseException
            try:
                rows = experiment.run(job)
            except BaseException as error:  # handed to the caller's thread, which raises it
                rows = error
            done.put(_Done(job, rows, time.perf_counter() - start))

    # Daemons: after Ctrl-C nothing waits for a compiled loop to end, and nothing of it is written.
    for _ in range(min(workers, len(todo))):
        threading.Thread(target=work, daemon=True).start()
    try:
        with job_bar(experiment.label, todo, console=console) as advance:
            for _ in todo:
                finished = _next(done)
                if isinstance(finished.rows, BaseException):
                    finished.rows.add_note(f"while running job {finished.job.name!r} of {experiment.name}")
                    raise finished.rows
                _keep(paths[finished.job.name], finished.rows, finished.seconds)
                advance(finished.job)
    finally:
        stop.set()


def _run_elsewhere(
    experiment: Experiment,
    todo: list[Job],
    paths: dict[str, Path],
    executor: str | Executor,
    *,
    workers: int | None,
    console: Console,
) -> None:
    with (
        opened(executor, workers=workers) as (chosen, count),
        job_bar(experiment.label, todo, console=console) as advance,
    ):

        def ended(place: int, rows: pl.DataFrame, seconds: float) -> None:
            _keep(paths[todo[place].name], rows, seconds)
            advance(todo[place])

        Dispatch(
            _run_one,
            [(experiment, job) for job in todo],
            names=[f"job {job.name!r} of {experiment.name}" for job in todo],
            costs=[job.cost for job in todo],
            executor=chosen,
            workers=count,
        ).run(ended)


def _run_one(given: tuple[Experiment, Job]) -> pl.DataFrame:
    experiment, job = given
    return experiment.run(job)


def _next(done: queue.SimpleQueue[_Done]) -> _Done:
    while True:
        try:
            # A wait without a timeout cannot be interrupted by Ctrl-C on every system.
            return done.get(timeout=_GLANCE)
        except queue.Empty:
            continue


def _keep(file: Path, rows: pl.DataFrame, seconds: float) -> None:
    told = {"seconds": repr(seconds), "code": code_fingerprint()}
    write_whole(file, lambda part: rows.write_parquet(part, metadata=told))
