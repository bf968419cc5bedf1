"""One experiment from jobs to verdict: run them, keep their rows, test the claims, draw, and write the results.

Under ``<out>/<name>``: ``jobs/`` with the rows of each, ``results.parquet`` with all of them, figures, and
``claims.json``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypedDict, Unpack, cast

import polars as pl
from rich.console import Console

from rankloop.experiments.experiment import Claim, Experiment, Job, Plain, shared_settings
from rankloop.extras import sweep, write_text, write_whole
from rankloop.simulation import runs
from rankloop.simulation.executors import Executor
from rankloop.simulation.play import in_notebook
from rankloop.simulation.report import save_figure
from rankloop.simulation.trace import machine, now, versions


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reproduction found."""

    experiment: str
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]
    ran: int
    resumed: int
    seconds: float

    @property
    def holds(self) -> bool:
        return not any(claim.broken for claim in self.claims)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The jobs, the rows of all of them in the same order, and what it took to get them."""

    jobs: Sequence[Job]
    results: pl.DataFrame
    ran: int
    resumed: int
    seconds: float
    """Work of all jobs together, resumed ones included, as measured when they ran."""


class Running(TypedDict, total=False):
    """How `run_jobs` is to run them."""

    jobs: Sequence[Job] | None
    workers: int | None
    fresh: bool
    console: Console | None
    executor: str | Executor


def reproduce(
    experiment: Experiment,
    *,
    out: Path,
    quick: bool = False,
    pdf: bool = False,
    titles: bool = True,
    **running: Unpack[Running],
) -> Verdict:
    """Run `experiment` and write ``results.parquet``, figures as PNG and SVG, and ``claims.json`` under `out`.

    `pdf` writes the figures as PDF, too; without `titles` neither the title nor the caption is part of them.
    """
    outcome = run_jobs(experiment, out=out, quick=quick, **running)
    folder = out / experiment.name
    write_whole(folder / "results.parquet", outcome.results.write_parquet)
    claims = tuple(experiment.claims(outcome.results, quick=quick))
    if len({claim.name for claim in claims}) < len(claims):
        raise ValueError(f"experiment {experiment.name!r} has two claims of the same name")
    notes = experiment.notes(outcome.results)
    pictures: list[Plain] = []
    endings = ("png", "svg", "pdf") if pdf else ("png", "svg")
    for name, figure in experiment.figures(outcome.results, quick=quick).items():
        caption, share = save_figure(figure, folder / name, endings=endings, titles=titles)
        pictures.append({"name": name, "caption": caption, "caption_share": round(share, 6)})
    table = experiment.summary(outcome.results)
    record: dict[str, Plain] = {
        "experiment": experiment.name,
        "version": experiment.version,
        "title": experiment.title,
        "paper": experiment.paper,
        "caption": experiment.caption,
        "departures": list(experiment.departures),
        "quick": quick,
        "holds": not any(claim.broken for claim in claims),
        "claims": [claim.record() for claim in claims],
        "notes": list(notes),
        "figures": pictures,
        "summary": [] if table is None else [dict(row) for row in table.iter_rows(named=True)],
        "settings": shared_settings(outcome.jobs),
        "seeds": sorted({job.seed for job in outcome.jobs}),  # type: ignore[dict-item]
        "jobs": len(outcome.jobs),
        "seconds": round(outcome.seconds, 3),
        "command": " ".join(["rankloop reproduce", experiment.name, *(["--quick"] if quick else [])]),
        "versions": versions(),  # type: ignore[dict-item]
        "machine": machine(),
        "made": now(),
    }
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    # Last, because the report shows an experiment as soon as it finds this file.
    write_text(folder / "claims.json", text)
    return Verdict(experiment.name, claims, notes, outcome.ran, outcome.resumed, outcome.seconds)


def run_jobs(
    experiment: Experiment,
    *,
    out: Path,
    quick: bool = False,
    jobs: Sequence[Job] | None = None,
    workers: int | None = None,
    fresh: bool = False,
    console: Console | None = None,
    executor: str | Executor = "threads",
) -> Outcome:
    """Run what is not yet in `out` and return everything.

    `jobs` are those of the experiment, for who has listed them already; `quick` is the small version. One job runs on
    each core, or so many as `workers` says; `fresh` runs every job again. Progress goes to `console`, by default to
    standard error, and only if that is a terminal. `executor` is that of `simulation.play_many` and changes no row.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    console = console or Console(stderr=True)
    jobs = experiment.jobs(quick=quick) if jobs is None else jobs
    sweep(out / experiment.name)
    kept, pieces = _pieces(experiment, jobs, out)
    done = 0 if fresh else sum(kept.has(piece.identity) for piece in pieces)
    if done and console.is_terminal:
        resumed = f"{done} of {len(pieces)} jobs were finished earlier and are resumed"
        console.print(f"{experiment.name}: {resumed}", highlight=False)
    finished = runs.run_jobs(
        _rows,
        pieces,
        kept=kept,
        executor=executor,
        workers=workers,
        fresh=fresh,
        progress=console.is_terminal or in_notebook(),
        label=experiment.name,
        stream=cast("TextIO", console.file),
    )
    frames = [
        each.rows.select(
            pl.lit(job.name).alias("job"), pl.lit(job.seed, dtype=pl.Int64).alias("seed"), pl.all()
        )
        for job, each in zip(jobs, finished, strict=True)
    ]
    return Outcome(
        jobs=jobs,
        results=pl.concat(frames),
        ran=sum(not each.resumed for each in finished),
        resumed=sum(each.resumed for each in finished),
        seconds=sum(each.seconds for each in finished),
    )


def unfinished(experiment: Experiment, jobs: Sequence[Job], *, out: Path) -> list[Job]:
    """Those of `jobs` whose rows are not in `out` yet."""
    kept, pieces = _pieces(experiment, jobs, out)
    return [job for job, piece in zip(jobs, pieces, strict=True) if not kept.has(piece.identity)]


def _pieces(experiment: Experiment, jobs: Sequence[Job], out: Path) -> tuple[runs.Kept, list[runs.Job]]:
    if not jobs:
        raise ValueError(f"experiment {experiment.name!r} has no jobs")
    if len({job.name for job in jobs}) < len(jobs):
        raise ValueError(f"experiment {experiment.name!r} has two jobs of the same name")
    pieces = [
        runs.Job(
            f"job {job.name!r} of {experiment.name}",
            job.identity(experiment=experiment.name, version=experiment.version),
            (experiment, job),
            job.cost,
        )
        for job in jobs
    ]
    return runs.Kept(out / experiment.name / "jobs"), pieces


def _rows(argument: tuple[Experiment, Job]) -> pl.DataFrame:
    experiment, job = argument
    return experiment.run(job)
