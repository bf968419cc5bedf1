"""The command `rankloop tune`: searches for the arguments of a ranker, and writes a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankloop.cli import completion
from rankloop.cli.where import AddressOption, Where, WhereOption, check_address, started
from rankloop.extras import require
from rankloop.remote_folder import is_address, opened_folder

if TYPE_CHECKING:
    from rankloop.compiled import CompiledEnvironment


def tune(
    ranker: Annotated[
        str,
        typer.Option(
            help="A ranker, see [b]rankloop list rankers[/b], or one of yours: package.module:Class.",
            autocompletion=completion.rankers,
        ),
    ],
    environment: Annotated[
        str | None,
        typer.Option(
            help="An environment, see [b]rankloop list environments[/b].",
            autocompletion=completion.environments,
            show_default=False,
        ),
    ] = None,
    letor: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Instead: queries in LETOR text, files or a folder.", show_default=False
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="The published set that the files are of, such as mslr.", show_default=False),
    ] = None,
    held_out: Annotated[
        float, typer.Option(help="Share of the queries that only the evaluation at the end meets.")
    ] = 0.25,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARGUMENT",
            help="Search only this argument; repeatable.",
            show_default="all that it declares",
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An argument of the ranker that stays; repeatable."),
    ] = None,
    rounds: Annotated[str, typer.Option(metavar="N", help="Rounds of every run; 1e5 will do.")] = "1e4",
    settings: Annotated[int, typer.Option(help="How many settings are tried.")] = 16,
    final_runs: Annotated[int, typer.Option(help="Runs of the evaluation at the end.")] = 8,
    items: Annotated[
        int | None,
        typer.Option(help="Number of items.", show_default="10, or those that the environment has"),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            help="The measure of a ranking, such as dcg or precision@3.",
            show_default="dcg; clicks where users click; ndcg@10 of queries",
            autocompletion=completion.measures,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed: the same seed gives the same answer.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Runs to play at once.", show_default="one for each core")
    ] = None,
    executor: WhereOption = Where.THREADS,
    address: AddressOption = None,
    out: Annotated[
        str, typer.Option(help="Folder for runs and report, or an address such as s3://bucket/tune.")
    ] = "results/tune",
    as_json: Annotated[bool, typer.Option("--json", help="The answer as JSON, for programs.")] = False,
) -> None:
    """Search for the arguments with which a ranker does best, by successive halving, and evaluate what was found.

    Runs that have ended are kept: after Ctrl-C the same command goes on where it stopped, and gives the same answer.

    [b]Examples[/b]

      rankloop tune --ranker RTop1F --environment noisy-halves --rounds 1e5

      rankloop tune --ranker FTRLPBM --environment gap-0.03 --only estimator --only regulariser

      rankloop tune --ranker RTopKF --letor train.txt --set k=2 --rounds 2e5 --out results/tune-rtopkf

      rankloop tune --ranker FTRLPBM --environment gap-0.03 --executor ray --address 10.0.0.7:6379
    """
    require("matplotlib", "polars", "pyarrow", extra="data,plot", for_="tune")
    from rankloop import simulation
    from rankloop.cli.simulate import make_ranker, read_settings, whole_number
    from rankloop.experiments.tuning_report import write_tuning_report
    from rankloop.simulation.tuning import jsonable

    people, fresh = _environments(
        environment, letor or [], preset=preset, held_out=held_out, n_items=items, measure=measure, seed=seed
    )
    count = whole_number("rounds", rounds)
    template = make_ranker(ranker, people=people, rounds=count, settings=read_settings(fixed or []))
    ranges = dict(template.tunable())
    for name in only or []:
        if name not in ranges:
            known = ", ".join(ranges) or "nothing"
            raise ValueError(f"--only must name what {ranker} declares, {known}, got {name!r}")
    check_address(executor, address)
    try:
        with opened_folder(out) as folder, started(executor, address, workers=jobs) as where:
            found = simulation.tune(
                template,
                people,
                rounds=count,
                ranges={name: ranges[name] for name in only} if only else None,
                settings=settings,
                final_runs=final_runs,
                held_out=fresh,
                seed=seed,
                folder=folder,
                workers=jobs,
                executor=where,
            )
            page = write_tuning_report(found, folder)
    except KeyboardInterrupt:
        typer.echo("\nRuns that have ended are kept, the same command goes on from there.", err=True)
        raise
    shown = f"{out.rstrip('/')}/{page.name}" if is_address(out) else str(page)
    if as_json:
        gain, error = found.gain
        told = {
            "arguments": jsonable(found.arguments),
            "gain": gain,
            "standard_error": error,
            "report": shown,
        }
        typer.echo(json.dumps(told, indent=2))
        return
    typer.echo(str(found))
    typer.echo(f"Report: {shown}")


def _environments(
    name: str | None,
    letor: list[Path],
    *,
    preset: str | None,
    held_out: float,
    n_items: int | None,
    measure: str | None,
    seed: int,
) -> tuple[CompiledEnvironment, CompiledEnvironment | None]:
    from rankloop.cli.environments import environment

    if (name is None) == (not letor):
        raise ValueError("give either --environment or --letor")
    if name is not None:
        if preset is not None:
            raise ValueError(f"--preset is of --letor files, got {preset!r} with --environment {name}")
        return environment(name, n_items=n_items, measure=measure), None
    from rankloop import data, environments

    if not 0.0 < held_out < 1.0:
        raise ValueError(f"--held-out must be above 0 and below 1, got {held_out}")
    if n_items is not None:
        raise ValueError(f"--items is of --environment, queries bring their own documents, got {n_items}")
    files = letor[0] if len(letor) == 1 else letor
    queries = data.read_letor(files, preset=preset).bounded()
    train, test = queries.split(train=1.0 - held_out, seed=seed)
    judged = measure or "ndcg@10"
    return environments.QueryStream(train, measure=judged), environments.QueryStream(test, measure=judged)
