"""The commands about the papers: `reproduce` runs their experiments, `claims` lists their statements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from rankloop.cli.settings import (
    AddressOption,
    JsonFlag,
    Where,
    WhereOption,
    check_address,
    interruption_told,
    offer_experiments,
    plain_console,
    say,
    started,
)
from rankloop.extras import counted, local_folder

if TYPE_CHECKING:
    from rich.console import Console

    from rankloop.claims import Statement
    from rankloop.experiments.experiment import Experiment, Job
    from rankloop.experiments.harness.reproduce import Verdict


@dataclass(frozen=True)
class Reproduction:
    """How experiments are run, and what becomes of their results."""

    quick: Annotated[bool, Option("--quick", help="A small version that takes seconds.")] = False
    listed: Annotated[bool, Option("--list", help="Only tell how many jobs of each are left.")] = False
    out: Annotated[str, Option(help="Folder for results and report.")] = "results"
    jobs: Annotated[int | None, Option(help="Jobs to run at once.", show_default="one for each core")] = None
    fresh: Annotated[bool, Option("--fresh", help="Run finished jobs again, too.")] = False
    executor: WhereOption = Where.THREADS
    address: AddressOption = None
    also: Annotated[
        list[str] | None,
        Option(metavar="RANKER", help="A further ranker for a comparison, such as mypkg.rankers:Mine."),
    ] = None
    pdf: Annotated[bool, Option("--pdf", help="Figures as PDF, too.")] = False
    no_titles: Annotated[
        bool, Option("--no-titles", help="Figures without title and caption, for a paper.")
    ] = False


def reproduce(
    names: Annotated[
        list[str] | None,
        Argument(metavar="NAME", help="Experiments to run, or [b]all[/b].", autocompletion=offer_experiments),
    ] = None,
    *,
    how: Reproduction,
) -> None:
    """Reproduce experiments of the papers and test their claims.

    Finished jobs are kept: after Ctrl-C the same command goes on where it stopped.


    Exits with 1 when a claim does not hold.

    [b]Examples[/b]

      rankloop reproduce top1-2015-fig1 --quick

      rankloop reproduce --list

      rankloop reproduce all --out results

      rankloop reproduce all --executor ray --address 10.0.0.7:6379 --out results

      rankloop reproduce pbm-2022-fig1 --quick --also mypkg.rankers:Mine

      rankloop reproduce top1-2015-fig1 --pdf --no-titles
    """
    from rankloop import experiments

    if how.jobs is not None and how.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {how.jobs}")
    check_address(how.executor, how.address)
    if not names and not how.listed:
        raise ValueError(f"name an experiment: {', '.join(experiments.names())}, or all")
    chosen = list(dict.fromkeys(names or ["all"]))
    unknown = [name for name in chosen if name not in {*experiments.names(), "all"}]
    if unknown:
        raise ValueError(f"no experiment {unknown[0]!r}; there are {', '.join(experiments.names())}, and all")
    run_experiments(experiments.names() if "all" in chosen else chosen, how)


def run_experiments(names: list[str], how: Reproduction) -> None:
    """Run experiments, tell what each found, and write the report; exits with 1 where a claim does not hold."""
    from rankloop import experiments

    experiments.check_installed()
    from rankloop.experiments.harness.report import write_report
    from rankloop.experiments.harness.reproduce import reproduce as run

    console = plain_console()
    # All of them first: what one refuses is told before another has run.
    chosen = [(name, experiments.get(name, also=how.also or ())) for name in names]
    jobs = {name: one.jobs(quick=how.quick) for name, one in chosen if one.missing() is None}
    folder = local_folder(how.out)
    if how.listed:
        tell_jobs(chosen, jobs, out=folder, fresh=how.fresh, console=console)
        return
    with started(how.executor, how.address, workers=how.jobs) as executor:
        all_hold = True
        for name, experiment in chosen:
            if name not in jobs:
                say(console, f"{name}: skipped, {experiment.missing()}")
                continue
            with interruption_told(f"{name}: finished jobs are kept, the same command goes on from there."):
                verdict = run(
                    experiment,
                    out=folder,
                    quick=how.quick,
                    jobs=jobs[name],
                    workers=how.jobs,
                    fresh=how.fresh,
                    executor=executor,
                    pdf=how.pdf,
                    titles=not how.no_titles,
                )
            tell(verdict, console=console)
            all_hold = all_hold and verdict.holds
        say(console, f"Report: {write_report(folder)}")
    if not all_hold:
        raise typer.Exit(1)


def tell(verdict: Verdict, *, console: Console) -> None:
    """The claims of one experiment, a line for each."""
    from rankloop.simulation.play import duration

    held = sum(claim.holds for claim in verdict.claims)
    resumed = f", {verdict.resumed} of them resumed" if verdict.resumed else ""
    work = f"{verdict.ran + verdict.resumed} jobs{resumed}, {duration(verdict.seconds)} of computing"
    say(console, f"{verdict.experiment}: {held} of {len(verdict.claims)} claims hold ({work})")
    for claim in verdict.claims:
        say(
            console,
            f"  {claim.verdict:<6}  {claim.text}: {claim.measured} [{claim.name}, worded {claim.worded}]",
        )
    for note in verdict.notes:
        say(console, f"  {note}")


def tell_jobs(
    chosen: Sequence[tuple[str, Experiment]],
    jobs: Mapping[str, Sequence[Job]],
    *,
    out: Path,
    fresh: bool,
    console: Console,
) -> None:
    """A line for each experiment: how many of its jobs are left; one that is not among `jobs` lacks something."""
    from rankloop.experiments.harness.reproduce import unfinished

    width = max(len(name) for name, _ in chosen)
    for name, experiment in chosen:
        if name not in jobs:
            say(console, f"{name:<{width}}  skipped, {experiment.missing()}")
        else:
            todo = jobs[name] if fresh else unfinished(experiment, jobs[name], out=out)
            say(console, f"{name:<{width}}  {len(todo)} of {counted(len(jobs[name]), 'job')} left")


def claims(
    word: Annotated[
        str | None, Argument(help="Only statements with this text in them.", show_default="all")
    ] = None,
    paper: Annotated[
        str | None, Option(help="Only of this paper: 2015, 2016 or 2022.", show_default="all")
    ] = None,
    status: Annotated[
        str | None,
        Option(help="Only verified, corrected, background or 'cannot be judged here'.", show_default="all"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Every statement of the papers, and the test that decides it.

    [b]Examples[/b]

      rankloop claims "Theorem 7"

      rankloop claims --paper 2022 --status corrected

      rankloop claims --json
    """
    from rankloop.claims import statements

    stated = statements(paper=paper, status=status, word=word)
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in stated], indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_lines(stated)))


def _lines(stated: list[Statement]) -> Iterator[str]:
    for paper, own in groupby(stated, key=lambda each: each.paper):
        yield paper
        for each in own:
            yield ""
            yield f"{each.id}  {each.place}  {claim_status(each)}"
            yield f"  {each.statement}"
            yield f"  {'how' if each.decided else 'why not'}: {each.how}"
            yield from (f"  where: {judge}" for judge in each.where)
        yield ""
    yield count_statements(stated)


def claim_status(each: Statement) -> str:
    """What became of a statement, with the errata that say more."""
    return f"{each.status} ({', '.join(each.errata)})" if each.errata else each.status


def count_statements(stated: list[Statement]) -> str:
    """How many there are, in all and of each status."""
    from rankloop.claims import STATUSES

    counts = {status: sum(each.status == status for each in stated) for status in STATUSES}
    words = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{len(stated)} statements" + (f": {words}" if words else "")
