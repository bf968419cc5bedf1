"""The bar shown while jobs run: jobs done, speed and time left. Nothing outside a terminal and a notebook."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from rankloop.experiments.experiment import Job
from rankloop.kernels.jit import muted
from rankloop.notebook import Line, in_notebook

_FIRST = "until the first ends (new code compiles once)"


def duration(seconds: float) -> str:
    """A length of time in words.

    >>> duration(0.04), duration(75), duration(7260)
    ('0.0 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def rate(done: int, seconds: float) -> str:
    """Jobs per second, or seconds per job where that reads better.

    >>> rate(20, 2.0), rate(2, 20.0)
    ('10.0 jobs/s', '10.0 s/job')
    """
    if done == 0 or seconds <= 0.0:
        return ""
    if done >= seconds:
        return f"{done / seconds:.1f} jobs/s"
    return f"{seconds / done:.1f} s/job"


@contextmanager
def job_bar(name: str, jobs: Sequence[Job], *, console: Console) -> Iterator[Callable[[Job], None]]:
    """Yield a function to call with each finished job; draws on `console` if that is a terminal, or in a notebook.

    The time left is estimated from the jobs' costs, since costly jobs come first and say little about the rest.
    """
    start = time.perf_counter()
    total = sum(job.cost for job in jobs)
    finished, work = 0, 0.0

    def counted(job: Job) -> tuple[str, str]:
        nonlocal finished, work
        finished, work = finished + 1, work + job.cost
        seconds = time.perf_counter() - start
        left = duration(seconds * (total - work) / work) + " left" if work > 0.0 else ""
        return rate(finished, seconds), left

    if not console.is_terminal:
        if not in_notebook():
            yield lambda job: None
            return
        line = Line()
        line.show(0.0, f"{name}: {_FIRST}")

        def move(job: Job) -> None:
            told = ", ".join(part for part in counted(job) if part)
            line.show(work / total if total else 1.0, f"{name}: {finished}/{len(jobs)} jobs, {told}")

        try:
            yield move
        finally:
            line.clear()
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}/" + f"{len(jobs)} jobs"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]}"),
        console=console,
        transient=True,
        # Jobs import libraries that take hold of the standard streams; they should find the real ones.
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with muted(), bar:
        task = bar.add_task(name, total=total, count=0, rate="", left=_FIRST)

        def advance(job: Job) -> None:
            speed, left = counted(job)
            bar.update(task, completed=work, count=finished, rate=speed, left=left)

        yield advance
