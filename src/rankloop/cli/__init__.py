"""The command `rankloop`: a thin layer. Each command imports what it needs when it is called, so that help is quick."""

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
from rankloop.cli import completion
from rankloop.cli import suite as suite_commands
from rankloop.cli.advise import advise
from rankloop.cli.claims import claims
from rankloop.cli.evaluate import evaluate
from rankloop.cli.fit_clicks_command import fit_clicks
from rankloop.cli.flags import Commands
from rankloop.cli.games import classify, rates, verify_proof
from rankloop.cli.reproduce_command import reproduce, run_experiments
from rankloop.cli.service import register
from rankloop.cli.tune import tune
from rankloop.cli.warm import warm
from rankloop.extras import MissingExtra, require

if TYPE_CHECKING:
    from rich.console import Console

Given = ParamSpec("Given")

app = typer.Typer(
    name="rankloop",
    cls=Commands,
    help="Rank lists and learn from partial feedback: simulate, reproduce papers, serve.",
    no_args_is_help=True,
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


def in_words(command: Callable[Given, None]) -> Callable[Given, None]:
    """A caller's mistake ends in a sentence and code 2, Ctrl-C in a sentence and code 130; neither in a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Given.args, **kwargs: Given.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, MissingExtra) as error:
            _fail(str(error))
        except BrokenPipeError:  # whoever read the output has enough
            raise
        except MemoryError as error:
            _fail(f"not enough memory for this: {str(error) or 'choose smaller numbers'}")
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
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


app.command()(in_words(reproduce))


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
    from rankloop.cli.tables import describe

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
    ranker: Annotated[
        str,
        typer.Option(
            help="A ranker, see [b]rankloop list rankers[/b], or one of yours: package.module:Class.",
            autocompletion=completion.rankers,
        ),
    ] = "TopFTRL",
    environment: Annotated[
        str,
        typer.Option(
            help="An environment, see [b]rankloop list environments[/b].",
            autocompletion=completion.environments,
        ),
    ] = "noisy-halves",
    items: Annotated[
        int | None,
        typer.Option(help="Number of items.", show_default="10, or those that the environment has"),
    ] = None,
    rounds: Annotated[str, typer.Option(metavar="N", help="Rounds to play; 1e5 will do.")] = "1e5",
    measure: Annotated[
        str | None,
        typer.Option(
            help="The measure of a ranking, such as dcg or precision@3.",
            show_default="dcg, or clicks where users click",
            autocompletion=completion.measures,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed: the same seed gives the same run.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An argument of the ranker; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON, for programs.")] = False,
) -> None:
    """Play one ranker in one environment and report its value and regret.

    [b]Examples[/b]

      rankloop simulate --ranker TopFTRL --environment noisy-halves --items 10 --rounds 1e6

      rankloop simulate --ranker RTop1F --set explore=random --set k=2 --seed 7 --json

      rankloop simulate --environment adversary-ndcg --items 3 --measure ndcg --set measure=dcg

      rankloop simulate --ranker FTRLPBM --environment yandex-periodic-1 --rounds 1e6

      rankloop simulate --ranker mypackage.rankers:Mine --rounds 1e5
    """
    from rankloop.cli.simulate import read_settings, simulate_one, whole_number

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


app.command("fit-clicks")(in_words(fit_clicks))
app.command()(in_words(advise))
app.command()(in_words(tune))
app.command()(in_words(evaluate))
app.command()(in_words(classify))
app.command()(in_words(verify_proof))
app.command()(in_words(rates))
app.command()(in_words(claims))
app.command()(in_words(warm))
suite_commands.register(app, in_words)


@app.command()
@in_words
def demo(out: OutOption = Path("results/demo")) -> None:
    """Watch TopFTRL learn from a million simulated users, then reproduce two figures and write the report.

    Takes half a minute.

    [b]Examples[/b]

      rankloop demo --out results/demo
    """
    from rankloop import experiments

    experiments.check_installed()
    from rankloop.cli.demo import play_demo

    play_demo(console=_console())
    verdicts = run_experiments(["top1-2015-fig1", "top1-2015-fig2"], quick=True, out=str(out))
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


def _console() -> Console:
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _served(command: Callable[Given, None]) -> Callable[Given, None]:
    @functools.wraps(command)
    def wrapped(*args: Given.args, **kwargs: Given.kwargs) -> None:
        require("apsw", "asyncpg", "msgspec", "starlette", "uvicorn", extra="serve", for_="the service")
        command(*args, **kwargs)

    return in_words(wrapped)


register(app, _served)
