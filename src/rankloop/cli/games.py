"""The commands `rankloop classify`, `rankloop verify-proof` and `rankloop rates`, and their answers in words.

Each command imports what it needs when it is called, so that help is quick.
"""

from __future__ import annotations

import json
import sys
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankloop.cli import completion
from rankloop.extras import require

if TYPE_CHECKING:
    from rich.console import Console

    from rankloop.games import Verdict
    from rankloop.games.rates import Row

_STYLES = {"trivial": "dim", "easy": "green", "hard": "yellow", "hopeless": "red"}
_SHORT = {"trivial": "0", "easy": "√T", "hard": "T^⅔", "hopeless": "T"}


def classify(
    measure: Annotated[
        str | None,
        typer.Option(
            help="The measure of a ranking, such as dcg or ndcg@10.",
            show_default=False,
            autocompletion=completion.measures,
        ),
    ] = None,
    items: Annotated[int, typer.Option(help="Number of items.")] = 10,
    top: Annotated[int, typer.Option(help="How many items, from the top, reveal their relevance.")] = 1,
    grades: Annotated[int, typer.Option(help="Number of grades: 2 for relevance 0 and 1.")] = 2,
    feedback: Annotated[
        str | None,
        typer.Option(
            help="What is seen instead of the top: first click, position 2, preference 1 2, noisy clicks 1 4/5 1/5.",
            show_default=False,
        ),
    ] = None,
    game: Annotated[
        Path | None,
        typer.Option(help="A game of your own, CSV or npz, instead of a measure.", show_default=False),
    ] = None,
    route: Annotated[
        str, typer.Option(help="Method: auto, cells (all orders, few items) or structure.")
    ] = "auto",
    witness: Annotated[
        Path | None, typer.Option(help="Write the proof, as JSON, to this file.", show_default=False)
    ] = None,
    play: Annotated[
        bool, typer.Option("--play", help="Also play the game in three worlds, and draw the regret.")
    ] = False,
    rounds: Annotated[int, typer.Option(help="Rounds to play.", min=1)] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of what is played.", min=0)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as JSON, for programs.")] = False,
) -> None:
    """Decide whether a measure can be learnt from given feedback, how fast, and if not, why not.

    A game in a CSV file is the rows of its losses, an empty line, and the rows of its signals.

    [b]Examples[/b]

      rankloop classify --measure dcg --items 10 --top 1

      rankloop classify --measure ndcg@10 --items 50 --top 5 --json

      rankloop classify --measure precision@1 --items 3 --feedback "first click"

      rankloop classify --game pennies.csv --witness proof.json

      rankloop classify --measure err --items 3 --top 2 --play
    """
    from rich.console import Console

    from rankloop import games
    from rankloop.games.read_game import read_game
    from rankloop.games.verdict_json import save

    if (measure is None) == (game is None):
        raise ValueError("give either --measure NAME or --game FILE")
    if game is not None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", games.NearTieWarning)
            asked = read_game(game)
        for each in caught:
            typer.echo(f"Warning: {each.message}.", err=True)
    else:
        k = top if feedback is None else None
        asked = games.ranking_game(
            measure=measure or "", n_items=items, k=k, grades=grades, feedback=feedback
        )
    verdict = games.classify(asked, route=route)
    if witness is not None:
        try:
            save(verdict, witness)
        except OSError as problem:
            raise ValueError(f"cannot write {witness}: {problem.strerror}") from None
    console = Console(file=sys.stdout, highlight=False)
    if not as_json:
        tell_verdict(verdict, console=console)
    told = plain_verdict(verdict)
    if play:
        from rankloop.cli.play_game import plain_played, play_game, tell_played

        played = play_game(asked, rounds=rounds, seed=seed)
        told["played"] = plain_played(played)
        if not as_json:
            tell_played(played, console=console)
    if as_json:
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))


def verify_proof(
    file: Annotated[Path, typer.Argument(help="A proof that `rankloop classify --witness` wrote.")],
    game: Annotated[
        Path | None,
        typer.Option(
            help="The game that the proof is about, CSV or npz, if it is your own.", show_default=False
        ),
    ] = None,
) -> None:
    """Check a proof, in whole numbers: exit code 0 if it holds, 1 if it is refused.

    [b]Examples[/b]

      rankloop classify --measure dcg --items 10 --witness proof.json

      rankloop verify-proof proof.json

      rankloop verify-proof proof.json --game pennies.csv
    """
    from rankloop import games
    from rankloop.games.read_game import read_game
    from rankloop.games.verdict_json import load

    verdict = load(file)
    if game is not None:
        asked = read_game(game)
    elif not isinstance(verdict.measure, str):
        raise ValueError(f"{file} is about a game of your own: give it with --game FILE")
    else:
        try:
            asked = games.ranking_game(
                measure=verdict.measure,
                n_items=verdict.n_items,  # type: ignore[arg-type]
                k=verdict.k,
                grades=verdict.max_grade + 1,
                feedback=verdict.feedback,
            )
        except (TypeError, ValueError) as problem:
            raise ValueError(f"{file} is about no game: {problem}") from None
    try:
        games.verify(asked, verdict)
    except games.Refused as problem:
        typer.echo(f"Refused: {problem}.")
        raise typer.Exit(1) from None
    typer.echo(f"The proof holds. {_subject(verdict)} {verdict.class_}, regret of order {verdict.rate}.")


def rates(
    items: Annotated[int, typer.Option(help="Number of items.")] = 4,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these measures; repeatable.",
            show_default="the usual ones",
            autocompletion=completion.measures,
        ),
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
    from rich.console import Console

    from rankloop.games.rates import rates as find

    rows = find(n_items=items, names=measure, grades=grades, route=route)
    if picture is not None:
        require("matplotlib", extra="plot", for_="--picture")
        from rankloop.cli.rates_figure import save_rates

        save_rates(rows, picture)
    if as_json:
        told = [{"measure": row.measure, "classes": row.classes, "sources": row.sources} for row in rows]
        typer.echo(json.dumps({"items": items, "grades": grades, "rates": told}, indent=2))
        return
    tell_rates(rows, console=Console(file=sys.stdout, highlight=False))


def tell_verdict(verdict: Verdict, *, console: Console) -> None:
    """The verdict as a few sentences."""
    from rich.text import Text

    from rankloop.games.explain import explain, headline

    console.print(Text(_subject(verdict), style="bold"), soft_wrap=True)
    console.print(Text(headline(verdict) + ".", style=_STYLES[verdict.class_]), soft_wrap=True)
    width = min(100, console.width) if console.is_terminal else 100
    for line in explain(verdict):
        console.print(textwrap.fill(line, width), markup=False, soft_wrap=True)


def _subject(verdict: Verdict) -> str:
    if verdict.measure is None:
        return f"A game of {verdict.n_actions} actions and {verdict.n_outcomes} outcomes:"
    items = f"{verdict.n_items} item{'s' if verdict.n_items != 1 else ''}"
    seen = "the top item" if verdict.k == 1 else f"the top {verdict.k} items"
    grades = "" if verdict.max_grade == 1 else f", grades 0 to {verdict.max_grade}"
    told = (
        f"the relevance of {seen} is seen" if verdict.feedback is None else f"feedback {verdict.feedback!r}"
    )
    return f"{verdict.measure}, {items}, {told}{grades}:"


def plain_verdict(verdict: Verdict) -> dict[str, Any]:
    """The verdict for programs; the witness is left to `--witness`."""
    from rankloop.games.explain import headline, learner

    told: dict[str, Any] = {"class": verdict.class_, "rate": verdict.rate}
    if verdict.measure is not None:
        told |= {
            "measure": verdict.measure,
            "items": verdict.n_items,
            "top": verdict.k,
            "feedback": verdict.feedback,
            "grades": verdict.max_grade + 1,
            "easier": verdict.easier_k,
            "use": learner(verdict).removeprefix("Use: ") or None,
        }
    told |= {"route": verdict.route, "headline": headline(verdict)}
    if verdict.route == "cells":
        told |= {
            "actions": verdict.n_actions,
            "outcomes": verdict.n_outcomes,
            "pareto": list(verdict.pareto),
            "degenerate": list(verdict.degenerate),
            "dominated": list(verdict.dominated),
            "neighbours": len(verdict.neighbours),
        }
    if verdict.worlds is not None:
        told["forced_regret"] = float(verdict.worlds.forced)
    return told


def tell_rates(rows: list[Row], *, console: Console) -> None:
    """The table: a row for each measure, a column for each k."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from rankloop.games.rates import LATER, OURS, PAPER, SOURCES

    marks = rate_marks()
    m = len(rows[0].classes)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(f"{m} items", no_wrap=True)
    for k in range(1, m + 1):
        table.add_column(f"k={k}", justify="center", no_wrap=True)
    for row in rows:
        cells = [
            Text(_SHORT[class_] + marks[source], style=_STYLES[class_])
            for class_, source in zip(row.classes, row.sources, strict=True)
        ]
        table.add_row(row.measure, *cells)
    if not console.is_terminal:
        console.width = max(console.width, 24 + 9 * m)
    console.print(table)
    legend = "√T easy, T^⅔ hard, T hopeless, 0 nothing to learn: how regret grows with the rounds T."
    console.print(legend, markup=False, soft_wrap=True)
    present = {source for row in rows for source in row.sources}
    for source in (PAPER, LATER, OURS):
        if source in present:
            console.print(f"{marks[source] or 'no mark'}: {SOURCES[source]}", markup=False, soft_wrap=True)


def rate_marks() -> dict[str, str]:
    """What is written behind a rate to say where it comes from."""
    from rankloop.games.rates import LATER, OURS, PAPER

    return {PAPER: "", LATER: "'", OURS: "*"}
