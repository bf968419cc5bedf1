"""The command `rankloop`: a thin skin. Each command imports what it needs when it is called, so that help is quick."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec

import typer

from rankloop import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from rankloop.experiments.reproducing import Verdict

Given = ParamSpec("Given")

app = typer.Typer(
    name="rankloop",
    help="Rank a list, hear back about only a sliver of it, learn, rank better.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Kind(StrEnum):
    """What `rankloop list` can list."""

    RANKERS = "rankers"
    ENVIRONMENTS = "environments"
    MEASURES = "measures"
    EXPERIMENTS = "experiments"


OutOption = Annotated[Path, typer.Option(help="Folder for results and report.")]


def main() -> None:
    """Run the command line."""
    app(prog_name="rankloop")


def in_words(command: Callable[Given, None]) -> Callable[Given, None]:
    """A caller's mistake ends in a sentence and code 2, Ctrl-C in a sentence and code 130; neither in a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Given.args, **kwargs: Given.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except ValueError as error:
            _fail(str(error))
        except KeyboardInterrupt:
            typer.echo("\nInterrupted.", err=True)
            raise typer.Exit(130) from None

    return wrapped


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2) from None


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rankloop {__version__}")
        raise typer.Exit


@app.callback()
def _rankloop(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


@app.command()
@in_words
def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Experiments to run, or [b]all[/b].")],
    quick: Annotated[bool, typer.Option("--quick", help="A small version that takes seconds.")] = False,
    out: OutOption = Path("results"),
    jobs: Annotated[
        int | None, typer.Option(help="Jobs to run at once.", show_default="one for each core")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished jobs again, too.")] = False,
) -> None:
    """Replay experiments of the papers and judge their claims.

    Finished jobs are kept: after Ctrl-C the same command goes on where it stopped. Exits with 1 when a claim breaks.

    [b]Examples[/b]

      rankloop reproduce top1-2015-fig1 --quick

      rankloop reproduce all --out results
    """
    from rankloop import experiments

    unknown = [name for name in names if name not in {*experiments.names(), "all"}]
    if unknown:
        raise ValueError(f"no experiment {unknown[0]!r}; there are {', '.join(experiments.names())}, and all")
    chosen = experiments.names() if "all" in names else list(dict.fromkeys(names))
    verdicts = _reproduce(chosen, quick=quick, out=out, jobs=jobs, fresh=fresh)
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


def _reproduce(names: list[str], *, quick: bool, out: Path, jobs: int | None, fresh: bool) -> list[Verdict]:
    from rich.console import Console

    from rankloop import experiments
    from rankloop.experiments.report import write_report
    from rankloop.experiments.reproducing import reproduce as run
    from rankloop.experiments.telling import tell

    console = Console(highlight=False)
    verdicts = []
    for name in names:
        experiment = experiments.get(name)
        lack = experiment.missing()
        if lack is not None:
            console.print(f"{name}: skipped, {lack}", soft_wrap=True, markup=False)
            continue
        try:
            verdict = run(experiment, out=out, quick=quick, workers=jobs, fresh=fresh)
        except KeyboardInterrupt:
            typer.echo(f"\n{name}: finished jobs are kept, the same command goes on from there.", err=True)
            raise
        tell(verdict, console=console)
        verdicts.append(verdict)
    console.print(f"Report: {write_report(out)}", soft_wrap=True, markup=False)
    return verdicts


@app.command("list")
@in_words
def list_things(
    kind: Annotated[Kind | None, typer.Argument(help="What to list.", show_default="everything")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """List rankers, environments, measures and experiments, a line for each.

    [b]Examples[/b]

      rankloop list

      rankloop list measures --json
    """
    from rankloop.experiments.telling import describe

    found = {each.value: describe(each.value) for each in ([kind] if kind else list(Kind))}
    if as_json:
        typer.echo(json.dumps(found[kind.value] if kind else found, indent=2, ensure_ascii=False))
        return
    console = _console()
    width = max(len(name) for entries in found.values() for name in entries)
    for heading, entries in found.items():
        console.print(f"[bold]{heading}[/bold]")
        for name, description in entries.items():
            console.print(f"  {name:<{width}}  {description}", soft_wrap=True, markup=False)


@app.command()
@in_words
def simulate(
    ranker: Annotated[str, typer.Option(help="A ranker, see [b]rankloop list rankers[/b].")] = "RTop1F",
    environment: Annotated[
        str, typer.Option(help="Who comes, see [b]rankloop list environments[/b].")
    ] = "noisy-halves",
    items: Annotated[int, typer.Option(help="Number of items.")] = 10,
    rounds: Annotated[str, typer.Option(metavar="N", help="Rounds to play; 1e5 will do.")] = "1e5",
    measure: Annotated[
        str, typer.Option(help="What a ranking is worth, such as dcg or precision@3.")
    ] = "dcg",
    seed: Annotated[int, typer.Option(help="The same seed tells the same story.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An argument of the ranker; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON, for programs.")] = False,
) -> None:
    """Play one ranker against one environment and tell how it did.

    [b]Examples[/b]

      rankloop simulate --ranker RTop1F --environment noisy-halves --items 10 --rounds 1e6

      rankloop simulate --ranker RTop1F --set explore=random --set k=2 --seed 7 --json

      rankloop simulate --environment adversary-ndcg --items 3 --measure ndcg --set measure=dcg
    """
    from rankloop.experiments.simulating import read_settings, simulate_one, whole_number

    result = simulate_one(
        ranker=ranker,
        environment=environment,
        n_items=items,
        rounds=whole_number("rounds", rounds),
        measure=measure,
        seed=seed,
        settings=read_settings(settings or []),
        console=None if as_json else _console(),
    )
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    width = max(len(key) for key in result)
    for key, value in result.items():
        typer.echo(f"{key.replace('_', ' '):<{width}}  {_plain(value)}")


@app.command()
@in_words
def classify(
    measure: Annotated[
        str | None, typer.Option(help="What a ranking is worth, such as dcg or ndcg@10.", show_default=False)
    ] = None,
    items: Annotated[int, typer.Option(help="Number of items.")] = 10,
    top: Annotated[int, typer.Option(help="How many items, from the top, reveal their relevance.")] = 1,
    grades: Annotated[int, typer.Option(help="Number of grades: 2 for relevance 0 and 1.")] = 2,
    game: Annotated[
        Path | None,
        typer.Option(help="A game of your own, CSV or npz, instead of a measure.", show_default=False),
    ] = None,
    route: Annotated[
        str, typer.Option(help="How to find out: auto, cells (all orders, few items) or structure.")
    ] = "auto",
    witness: Annotated[
        Path | None, typer.Option(help="Write the proof, as JSON, to this file.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as JSON, for programs.")] = False,
) -> None:
    """Can it be learnt, how fast, and if not, why not? Before a single user is spent on it.

    A game in a CSV file is the rows of its losses, an empty line, and the rows of its signals.

    [b]Examples[/b]

      rankloop classify --measure dcg --items 10 --top 1

      rankloop classify --measure ndcg@10 --items 50 --top 5 --json

      rankloop classify --game pennies.csv --witness proof.json
    """
    from rankloop import games
    from rankloop.experiments.telling_games import plain_verdict, tell_verdict
    from rankloop.games.reading import read_game
    from rankloop.games.saving import save

    if (measure is None) == (game is None):
        raise ValueError("say either --measure NAME or --game FILE")
    if game is not None:
        asked = read_game(game)
    else:
        asked = games.ranking_game(measure=measure or "", n_items=items, k=top, grades=grades)
    verdict = games.classify(asked, route=route)
    if witness is not None:
        try:
            save(verdict, witness)
        except OSError as problem:
            raise ValueError(f"cannot write {witness}: {problem.strerror}") from None
    if as_json:
        typer.echo(json.dumps(plain_verdict(verdict), indent=2, ensure_ascii=False))
    else:
        tell_verdict(verdict, console=_console())


@app.command()
@in_words
def rates(
    items: Annotated[int, typer.Option(help="Number of items.")] = 4,
    measure: Annotated[
        list[str] | None, typer.Option(help="Only these measures; repeatable.", show_default="the usual ones")
    ] = None,
    grades: Annotated[int, typer.Option(help="Number of grades: 2 for relevance 0 and 1.")] = 2,
    route: Annotated[str, typer.Option(help="structure, or cells for a few items.")] = "structure",
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the table to this file (png or svg).", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """How fast each measure can be learnt, for every number of items that reveal their relevance.

    [b]Examples[/b]

      rankloop rates --items 4

      rankloop rates --items 8 --measure ndcg --measure dcg@3 --picture rates.png
    """
    from rankloop.experiments.telling_games import tell_rates
    from rankloop.games.rates import rates as find

    rows = find(n_items=items, names=measure, grades=grades, route=route)
    if picture is not None:
        from rankloop.experiments.rates_picture import save_rates

        save_rates(rows, picture)
    if as_json:
        told = [{"measure": row.measure, "classes": row.classes, "sources": row.sources} for row in rows]
        typer.echo(json.dumps({"items": items, "grades": grades, "rates": told}, indent=2))
        return
    tell_rates(rows, console=_console())


@app.command()
@in_words
def demo(out: OutOption = Path("results/demo")) -> None:
    """Watch RTop-1F learn from a million simulated people, then replay two figures and write the report.

    Takes half a minute.
    """
    from rankloop.experiments.demo import play_demo

    play_demo(console=_console())
    verdicts = _reproduce(["top1-2015-fig1", "top1-2015-fig2"], quick=True, out=out, jobs=None, fresh=False)
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


def _console() -> Console:
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
