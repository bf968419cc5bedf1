"""The command `rankloop advise`: asks what is known, and answers with a ranker."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import Annotated, Any

import typer

from rankloop.cli import completion


def advise(
    feedback: Annotated[
        str | None,
        typer.Option(help="top, clicks or labels; asked for where it is left out.", show_default=False),
    ] = None,
    items: Annotated[int, typer.Option(help="Number of items.")] = 10,
    positions: Annotated[
        int | None, typer.Option(help="Number of positions shown, for clicks.", show_default=False)
    ] = None,
    top: Annotated[int, typer.Option(help="How many items, from the top, reveal their relevance.")] = 1,
    features: Annotated[
        bool, typer.Option("--features", help="Each request brings its own documents with features.")
    ] = False,
    n_features: Annotated[
        int, typer.Option(help="How many features a document has, with [b]--features[/b].")
    ] = 20,
    users: Annotated[
        str | None,
        typer.Option(help="stay, change or unknown; asked for where it is left out.", show_default=False),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="The measure that matters.", autocompletion=completion.measures)
    ] = "dcg",
    per_day: Annotated[
        int | None, typer.Option(help="How many users come a day.", show_default=False)
    ] = None,
    examination: Annotated[
        str | None,
        typer.Option(help="Chance that each position is looked at, as 1,0.5,0.3.", show_default=False),
    ] = None,
    replicas: Annotated[bool, typer.Option("--replicas", help="Several processes will serve it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Which ranker to take: its arguments, its guarantee, its measured regret and the next best.

    [b]Examples[/b]

      rankloop advise

      rankloop advise --feedback clicks --items 40 --positions 8 --users unknown

      rankloop advise --feedback top --users stay --measure precision@5 --per-day 20000 --json

      rankloop advise --feedback clicks --features --n-features 136 --users unknown
    """
    from rankloop.advice import advise as choose
    from rankloop.advice.question import FEEDBACK, USERS
    from rankloop.arguments import one_of

    known = None if examination is None else _numbers(examination)
    observed = feedback if feedback is not None else _ask("What do you observe?", FEEDBACK, "--feedback")
    one_of("feedback", observed, FEEDBACK)
    told = choose(
        observed,
        users=users if users is not None else _ask("Your users", USERS, "--users"),
        n_items=items,
        n_positions=positions if positions is not None or known is None else len(known),
        k=top,
        features=features,
        n_features=n_features,
        measure=measure,
        per_day=per_day,
        examination=known,
        replicas=replicas,
    )
    if as_json:
        typer.echo(json.dumps(_plain(told), indent=2))
        return
    for line in str(told).splitlines():
        typer.echo(textwrap.fill(line, 100, subsequent_indent="  ", break_long_words=False))


def _ask(title: str, choices: dict[str, str], option: str) -> str:
    if not sys.stdin.isatty():
        raise ValueError(f"give {option}: {', '.join(choices)}")
    typer.echo(title)
    for name, words in choices.items():
        typer.echo(f"  {name:<8} {words}")
    answer: str = typer.prompt("Your answer")
    return answer.strip()


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--examination must be numbers with commas between them, got {text!r}") from None


def _plain(told: Any) -> dict[str, Any]:
    found = {
        "ranker": told.ranker,
        "arguments": told.arguments,
        "call": told.call,
        "guarantee": told.guarantee,
        "world": told.world.name,
        "users": told.world.rounds,
        told.world.unit: told.result[0],
        "standard_error": told.result[1],
        "share_of_random": told.share,
        "notes": list(told.notes),
    }
    if told.runner_up is not None:
        found["next_best"] = _plain(told.runner_up)
    return found
