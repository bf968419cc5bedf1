"""The command `rankloop reproduce`: runs experiments, tells beforehand how long they take, and writes the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankloop.cli import completion
from rankloop.cli.where import AddressOption, Where, WhereOption, check_address, started
from rankloop.remote_folder import is_address, opened_folder

if TYPE_CHECKING:
    from rankloop.experiments.experiment import Experiment
    from rankloop.experiments.harness.reproduce import Verdict


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Experiments to run, or [b]all[/b].",
            autocompletion=completion.experiments,
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version that takes seconds.")] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Only tell how long each would take on this machine.")
    ] = False,
    out: Annotated[
        str, typer.Option(help="Folder for results and report, or an address such as s3://bucket/results.")
    ] = "results",
    jobs: Annotated[
        int | None, typer.Option(help="Jobs to run at once.", show_default="one for each core")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished jobs again, too.")] = False,
    executor: WhereOption = Where.THREADS,
    address: AddressOption = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="RANKER", help="A further ranker for a comparison, such as mypkg.rankers:Mine."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="LETOR data, or for pbm-2022-fig2 a click log, to play instead. Repeat for several.",
        ),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Figures as PDF, too.")] = False,
    no_titles: Annotated[
        bool, typer.Option("--no-titles", help="Figures without title and caption, for a paper.")
    ] = False,
) -> None:
    """Reproduce experiments of the papers and test their claims.

    Finished jobs are kept: after Ctrl-C the same command goes on where it stopped.


    Exits with 1 when a claim does not hold.

    [b]Examples[/b]

      rankloop reproduce top1-2015-fig1 --quick

      rankloop reproduce --list

      rankloop reproduce all --out results

      rankloop reproduce all --executor ray --address 10.0.0.7:6379 --out s3://bucket/results

      rankloop reproduce pbm-2022-fig1 --quick --also mypkg.rankers:Mine

      rankloop reproduce oltr-comparison --dataset my=path/to/letor.txt

      rankloop reproduce pbm-2022-fig2 --dataset my=path/to/clicks.jsonl

      rankloop reproduce top1-2015-fig1 --pdf --no-titles
    """
    from rankloop import experiments

    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}")
    check_address(executor, address)
    if quick and listed:
        raise ValueError("--list tells of the full versions, --quick takes seconds: choose one of them")
    if not names and not listed:
        raise ValueError(f"name an experiment: {', '.join(experiments.names())}, or all")
    chosen = list(dict.fromkeys(names or ["all"]))
    unknown = [name for name in chosen if name not in {*experiments.names(), "all"}]
    if unknown:
        raise ValueError(f"no experiment {unknown[0]!r}; there are {', '.join(experiments.names())}, and all")
    verdicts = run_experiments(
        experiments.names() if "all" in chosen else chosen,
        quick=quick,
        out=out,
        jobs=jobs,
        fresh=fresh,
        where=executor,
        address=address,
        only_list=listed,
        look={"pdf": pdf, "titles": not no_titles},
        also=also or (),
        datasets=named_paths(dataset or ()),
    )
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


def named_paths(given: Sequence[str]) -> dict[str, str]:
    """Data sets from ``my=path/to/letor.txt``."""
    named: dict[str, str] = {}
    for words in given:
        name, equals, path = words.partition("=")
        if not (name and equals and path):
            raise ValueError(f"--dataset must be NAME=PATH, such as my=letor.txt, got {words!r}")
        if name in named:
            raise ValueError(f"--dataset names {name!r} twice")
        named[name] = path
    return named


def run_experiments(
    names: list[str],
    *,
    quick: bool,
    out: str,
    jobs: int | None = None,
    fresh: bool = False,
    where: Where = Where.THREADS,
    address: str | None = None,
    only_list: bool = False,
    look: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Verdict]:
    """Run experiments, tell what each found, and write the report."""
    from rich.console import Console

    from rankloop import experiments

    experiments.check_installed()
    from rankloop.cli.tables import tell
    from rankloop.cli.times_table import tell_times
    from rankloop.experiments.harness.report import write_report
    from rankloop.experiments.harness.reproduce import reproduce as run

    console = Console(highlight=False)
    verdicts: list[Verdict] = []
    # All of them first: what one refuses is told before another has run.
    chosen: list[tuple[str, Experiment]] = [(name, experiments.get(name, **options)) for name in names]
    with ExitStack() as stack:
        folder = stack.enter_context(opened_folder(out))
        if only_list:
            tell_times(chosen, out=folder, fresh=fresh, workers=jobs, always=True, console=console)
            return []
        executor = stack.enter_context(started(where, address, workers=jobs))
        if not quick:
            workers = jobs if isinstance(executor, str) else getattr(executor, "workers", jobs)
            tell_times(chosen, out=folder, fresh=fresh, workers=workers, always=False, console=console)
        for name, experiment in chosen:
            lack = experiment.missing()
            if lack is not None:
                console.print(f"{name}: skipped, {lack}", soft_wrap=True, markup=False)
                continue
            try:
                verdict = run(
                    experiment,
                    out=folder,
                    quick=quick,
                    workers=jobs,
                    fresh=fresh,
                    executor=executor,
                    **look or {},
                )
            except KeyboardInterrupt:
                typer.echo(
                    f"\n{name}: finished jobs are kept, the same command goes on from there.", err=True
                )
                raise
            tell(verdict, console=console)
            verdicts.append(verdict)
        page = write_report(folder)
        shown = f"{out.rstrip('/')}/{page.name}" if is_address(out) else str(Path(page))
        console.print(f"Report: {shown}", soft_wrap=True, markup=False)
    return verdicts
