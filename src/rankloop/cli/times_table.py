"""The table of how long experiments take, shown before they begin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rankloop.experiments.harness.expected_time import calibrate, expected, is_recorded
from rankloop.experiments.harness.job_runner import unfinished
from rankloop.experiments.harness.progress import duration

if TYPE_CHECKING:
    from rankloop.experiments.experiment import Experiment


def tell_times(
    chosen: Sequence[tuple[str, Experiment]],
    *,
    out: Path,
    fresh: bool,
    workers: int | None,
    always: bool,
    console: Console,
) -> None:
    """A line for each experiment: jobs that are left, seconds of computing, and about how long that takes.

    Nothing where nothing is recorded of any of them, unless `always`.
    """
    if not (always or any(is_recorded(experiment) for _, experiment in chosen)):
        return
    cores = workers or os.cpu_count() or 1
    slowness = calibrate()
    rows: list[tuple[str, ...]] = []
    total = unknown = 0.0
    for name, experiment in chosen:
        lack = experiment.missing()
        if lack is not None:
            rows.append((name, "", "", "skipped"))
            continue
        jobs = experiment.jobs(quick=False)
        todo = jobs if fresh else unfinished(experiment, jobs, out=out)
        work = expected(experiment, jobs, todo, slowness=slowness)
        left = f"{len(todo)} of {len(jobs)}"
        if work is None:
            unknown += 1
            rows.append((name, left, "not recorded", ""))
            continue
        total += work.seconds
        margin = f"{duration(work.seconds)} ± {duration(2.0 * work.error)}" if work.seconds else "none"
        rows.append((name, left, margin, duration(work.seconds / cores)))
    if len(rows) > 1:
        rows.append(("together", "", duration(total), duration(total / cores)))
    head = ("experiment", "jobs left", "computing", f"on {cores} core{'s' if cores > 1 else ''}")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(4)]
    for row in (head, *rows):
        line = f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}"
        console.print(line.rstrip(), soft_wrap=True, markup=False)
    console.print(
        f"An estimate: from a sample of jobs on a machine that is {slowness:.2f} times as fast as this one"
        f" is now{', without what is not recorded' if unknown else ''}.",
        soft_wrap=True,
        markup=False,
    )
