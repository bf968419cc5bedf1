"""Tables for the terminal: what is available, how long experiments take, and what they found."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankloop.cli.settings import say
from rankloop.extras import MissingExtra, counted
from rankloop.simulation.play import duration

if TYPE_CHECKING:
    from rankloop.experiments.experiment import Experiment, Job
    from rankloop.experiments.harness.reproduce import Verdict
    from rankloop.measures import Measure


def tell(verdict: Verdict, *, console: Console) -> None:
    """The claims of one experiment: a table on a terminal, a line for each elsewhere."""
    held = sum(claim.holds for claim in verdict.claims)
    resumed = f", {verdict.resumed} of them resumed" if verdict.resumed else ""
    work = f"{verdict.ran + verdict.resumed} jobs{resumed}, {duration(verdict.seconds)} of computing"
    head = f"{verdict.experiment}: {held} of {len(verdict.claims)} claims hold ({work})"
    if not console.is_terminal:
        say(console, head)
        for claim in verdict.claims:
            word = "holds " if claim.holds else "BROKEN"
            say(console, f"  {word}  {claim.text}: {claim.measured} [{claim.name}, worded {claim.worded}]")
        for note in verdict.notes:
            say(console, f"  {note}")
        return
    table = Table(title=head, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "claim", "measured", "worded"):
        table.add_column(heading, overflow="fold")
    for claim in verdict.claims:
        mark = Text("✓", style="bold green") if claim.holds else Text("✗ broken", style="bold red")
        table.add_row(mark, Text(claim.text), Text(claim.measured), Text(claim.worded))
    console.print(table)
    for note in verdict.notes:
        console.print(note, markup=False)


def tell_times(
    chosen: Sequence[tuple[str, Experiment]],
    jobs: Mapping[str, Sequence[Job]],
    *,
    out: Path,
    fresh: bool,
    workers: int | None,
    always: bool,
    console: Console,
) -> None:
    """A line for each experiment: jobs that are left, seconds of computing, and about how long that takes.

    An experiment that is not among `jobs` lacks something. Nothing where nothing is recorded of any, unless `always`.
    """
    from rankloop.experiments.harness.expected_time import calibrate, expected, is_recorded
    from rankloop.experiments.harness.reproduce import unfinished

    if not (always or any(is_recorded(experiment) for _, experiment in chosen)):
        return
    cores = workers or os.cpu_count() or 1
    slowness = calibrate()
    rows: list[tuple[str, ...]] = []
    total = unknown = 0.0
    for name, experiment in chosen:
        if name not in jobs:
            rows.append((name, "", "", "skipped"))
            continue
        todo = jobs[name] if fresh else unfinished(experiment, jobs[name], out=out)
        work = expected(experiment, jobs[name], todo, slowness=slowness)
        left = f"{len(todo)} of {len(jobs[name])}"
        if work is None:
            unknown += 1
            rows.append((name, left, "not recorded", ""))
            continue
        total += work.seconds
        margin = f"{duration(work.seconds)} ± {duration(2.0 * work.error)}" if work.seconds else "none"
        rows.append((name, left, margin, duration(work.seconds / cores)))
    if len(rows) > 1:
        rows.append(("together", "", duration(total), duration(total / cores)))
    head = ("experiment", "jobs left", "computing", f"on {counted(cores, 'core')}")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(4)]
    for row in (head, *rows):
        line = f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}"
        say(console, line.rstrip())
    say(
        console,
        f"An estimate: from a sample of jobs on a machine that is {slowness:.2f} times as fast as this one"
        f" is now{', without what is not recorded' if unknown else ''}.",
    )


def describe(kind: str) -> dict[str, str]:
    """Everything of a kind, each with one line: rankers, environments, measures or experiments."""
    if kind == "rankers":
        from rankloop.rankers import registry

        return {name: _ranker_line(name) for name in registry.names()}
    if kind == "environments":
        from rankloop.cli.library import environment_names

        return environment_names()
    if kind == "measures":
        from rankloop import measures

        return dict(_measure_line(measures.get(name)) for name in measures.names())
    if kind == "experiments":
        from rankloop import experiments

        try:
            return {name: experiments.get(name).title for name in experiments.names()}
        except MissingExtra as missing:  # what there is can be listed all the same
            return dict.fromkeys(experiments.names(), str(missing))
    raise ValueError(f"kind must be one of rankers, environments, measures, experiments, got {kind!r}")


def _ranker_line(name: str) -> str:
    from rankloop.rankers import registry

    try:
        return (inspect.getdoc(registry.find(name)) or "").split("\n\n")[0].replace("\n", " ")
    except ValueError as error:  # of another package, which may be broken; the list is not
        return f"cannot be used: {error}"


def _measure_line(measure: Measure) -> tuple[str, str]:
    traits = [
        "loss" if measure.is_loss else "gain",
        "linear in the relevance" if measure.linear else "not linear in the relevance",
    ]
    if measure.binary:
        traits.append("binary relevance only")
    ending = {"none": "", "optional": "[@k]", "required": "@k"}[measure.cutoffs]
    return measure.family + ending, ", ".join(traits)
