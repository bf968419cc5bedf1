"""The commands `rankloop classify` and `rankloop rates`. Each imports what it needs when it is called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rankloop.extras import require


def classify(
    measure: Annotated[
        str | None, typer.Option(help="The measure of a ranking, such as dcg or ndcg@10.", show_default=False)
    ] = None,
    items: Annotated[int, typer.Option(help="Number of items.")] = 10,
    top: Annotated[int, typer.Option(help="How many items, from the top, reveal their relevance.")] = 1,
    grades: Annotated[int, typer.Option(help="Number of grades: 2 for relevance 0 and 1.")] = 2,
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
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as JSON, for programs.")] = False,
) -> None:
    """Decide whether a measure can be learnt from given feedback, how fast, and if not, why not.

    A game in a CSV file is the rows of its losses, an empty line, and the rows of its signals.

    [b]Examples[/b]

      rankloop classify --measure dcg --items 10 --top 1

      rankloop classify --measure ndcg@10 --items 50 --top 5 --json

      rankloop classify --game pennies.csv --witness proof.json
    """
    from rich.console import Console

    from rankloop import games
    from rankloop.cli.games_text import plain_verdict, tell_verdict
    from rankloop.games.read_game import read_game
    from rankloop.games.verdict_json import save

    if (measure is None) == (game is None):
        raise ValueError("give either --measure NAME or --game FILE")
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
        tell_verdict(verdict, console=Console(file=sys.stdout, highlight=False))


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
    from rich.console import Console

    from rankloop.cli.games_text import tell_rates
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
