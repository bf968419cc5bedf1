"""The commands `rankloop classify`, `rankloop verify-proof` and `rankloop rates`: answers in words.

Each command imports what it needs when it is called, so that help is quick.
"""

from __future__ import annotations

import json
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rankloop.cli.settings import (
    CountOption,
    GradesOption,
    JsonFlag,
    TopOption,
    offer_measures,
    plain_console,
    say,
)
from rankloop.extras import counted

if TYPE_CHECKING:
    from rich.console import Console

    from rankloop.games import Game, Verdict
    from rankloop.games.classify import Row
    from rankloop.simulation import Trace

_STYLES = {"trivial": "dim", "easy": "green", "hard": "yellow", "hopeless": "red"}
_SHORT = {"trivial": "0", "easy": "√T", "hard": "T^⅔", "hopeless": "T"}


def classify(
    measure: Annotated[
        str | None,
        Option(help="The measure of a ranking, such as dcg or ndcg@10.", autocompletion=offer_measures),
    ] = None,
    items: CountOption = 10,
    top: TopOption = 1,
    grades: GradesOption = 2,
    feedback: Annotated[
        str | None,
        Option(
            help="What is seen instead of the top: first click, position 2, preference 1 2, noisy clicks 1 4/5 1/5."
        ),
    ] = None,
    game: Annotated[Path | None, Option(help="A game of your own, CSV, instead of a measure.")] = None,
    route: Annotated[str, Option(help="Method: auto, cells (all orders, few items) or structure.")] = "auto",
    witness: Annotated[Path | None, Option(help="Write the proof, as JSON, to this file.")] = None,
    play: Annotated[
        bool, Option("--play", help="Also play the game in three worlds, and tell the regret.")
    ] = False,
    rounds: Annotated[int, Option(help="Rounds to play.", min=1)] = 10_000,
    seed: Annotated[int, Option(help="Seed of what is played.", min=0)] = 1,
    as_json: Annotated[bool, Option("--json", help="The verdict as JSON, for programs.")] = False,
) -> None:
    """Decide whether a measure can be learnt, and how fast.

    From given feedback; and if not, why not.

    A game in a CSV file is the rows of its losses, an empty line, and the rows of its signals.

    [b]Examples[/b]

      rankloop classify --measure dcg --items 10 --top 1

      rankloop classify --measure ndcg@10 --items 50 --top 5 --json

      rankloop classify --measure precision@1 --items 3 --feedback "first click"

      rankloop classify --game pennies.csv --witness proof.json

      rankloop classify --measure err --items 3 --top 2 --play
    """
    from rankloop import games
    from rankloop.games.read import read_game
    from rankloop.games.verdict import save

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
    if not as_json:
        tell_verdict(verdict, console=plain_console())
    plain = plain_verdict(verdict)
    if play:
        played = play_game(asked, rounds=rounds, seed=seed)
        plain["played"] = [one.plain() for one in played]
        if not as_json:
            tell_played(played, console=plain_console())
    if as_json:
        typer.echo(json.dumps(plain, indent=2, ensure_ascii=False))


def verify_proof(
    file: Annotated[Path, Argument(help="A proof that `rankloop classify --witness` wrote.")],
    game: Annotated[
        Path | None, Option(help="The game that the proof is about, CSV, if it is your own.")
    ] = None,
) -> None:
    """Check a proof of classify, in whole numbers.

    Exit code 0 if it holds, 1 if it is refused.

    [b]Examples[/b]

      rankloop classify --measure dcg --items 10 --witness proof.json

      rankloop verify-proof proof.json

      rankloop verify-proof proof.json --game pennies.csv
    """
    from rankloop import games
    from rankloop.games.read import read_game
    from rankloop.games.verdict import load

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
    items: CountOption = 4,
    measure: Annotated[
        list[str] | None,
        Option(
            help="Only these measures; repeatable.",
            show_default="the usual ones",
            autocompletion=offer_measures,
        ),
    ] = None,
    grades: GradesOption = 2,
    route: Annotated[str, Option(help="structure, or cells for a few items.")] = "structure",
    as_json: JsonFlag = False,
) -> None:
    """How fast each measure can be learnt.

    For every number of items that reveal their relevance.

    [b]Examples[/b]

      rankloop rates --items 4

      rankloop rates --items 8 --measure ndcg --measure dcg@3
    """
    from rankloop.games.classify import rates as find

    rows = find(n_items=items, names=measure, grades=grades, route=route)
    if as_json:
        plain = [{"measure": row.measure, "classes": row.classes, "sources": row.sources} for row in rows]
        typer.echo(json.dumps({"items": items, "grades": grades, "rates": plain}, indent=2))
        return
    tell_rates(rows, console=plain_console())


def tell_verdict(verdict: Verdict, *, console: Console) -> None:
    """The verdict as a few sentences."""
    from rich.text import Text

    from rankloop.games.explain import explain, headline

    console.print(Text(_subject(verdict), style="bold"), soft_wrap=True)
    console.print(Text(headline(verdict) + ".", style=_STYLES[verdict.class_]), soft_wrap=True)
    width = min(100, console.width) if console.is_terminal else 100
    for line in explain(verdict):
        say(console, textwrap.fill(line, width))


def _subject(verdict: Verdict) -> str:
    if verdict.measure is None:
        return f"A game of {verdict.n_actions} actions and {verdict.n_outcomes} outcomes:"
    items = counted(verdict.n_items or 0, "item")
    seen = "the top item" if verdict.k == 1 else f"the top {verdict.k} items"
    grades = "" if verdict.max_grade == 1 else f", grades 0 to {verdict.max_grade}"
    signal = (
        f"the relevance of {seen} is seen" if verdict.feedback is None else f"feedback {verdict.feedback!r}"
    )
    return f"{verdict.measure}, {items}, {signal}{grades}:"


def plain_verdict(verdict: Verdict) -> dict[str, Any]:
    """The verdict for programs; the witness is left to `--witness`."""
    from rankloop.games.explain import headline, learner

    plain: dict[str, Any] = {"class": verdict.class_, "rate": verdict.rate}
    if verdict.measure is not None:
        plain |= {
            "measure": verdict.measure,
            "items": verdict.n_items,
            "top": verdict.k,
            "feedback": verdict.feedback,
            "grades": verdict.max_grade + 1,
            "easier": verdict.easier_k,
            "use": learner(verdict).removeprefix("Use: ") or None,
        }
    plain |= {"route": verdict.route, "headline": headline(verdict)}
    if verdict.route == "cells":
        plain |= {
            "actions": verdict.n_actions,
            "outcomes": verdict.n_outcomes,
            "pareto": list(verdict.pareto),
            "degenerate": list(verdict.degenerate),
            "dominated": list(verdict.dominated),
            "neighbours": len(verdict.neighbours),
        }
    if verdict.worlds is not None:
        plain["forced_regret"] = float(verdict.worlds.forced)
    return plain


_WORLDS = {"far from the wall": 0.5, "nearer": 0.12, "near": 0.03}


@dataclass(frozen=True, slots=True)
class Played:
    """A run of `games.Player` in one world of a game, and the bound on its regret that the player computed."""

    world: str
    trace: Trace
    bound: float

    def plain(self) -> dict[str, Any]:
        """The run for programs."""
        return {
            "world": self.world,
            "rounds": self.trace.n_rounds,
            "seed": self.trace.seed,
            "regret": float(self.trace.total_regret),
            "regret_bound": self.bound,
        }


def play_game(game: Game, *, rounds: int, seed: int) -> list[Played]:
    """A run in each world: near a wall of the game, or with all outcomes alike where it has none."""
    import numpy as np

    from rankloop import games, simulation
    from rankloop.games import near_wall

    verdict = games.classify(game, route="cells")
    worlds = {
        name: near_wall(game, verdict, share) for name, share in _WORLDS.items() if verdict.neighbours
    } or {"any world": np.full(game.n_outcomes, 1 / game.n_outcomes)}
    played = []
    for name, chances in worlds.items():
        player, world = games.Player(game, verdict=verdict), games.GameWorld(game, chances=chances)
        trace = simulation.play(player, world, rounds=rounds, seed=seed, points=1, progress=False)
        played.append(Played(name, trace, player.regret_bound()))
    return played


def tell_played(played: list[Played], *, console: Console) -> None:
    """A line for each world."""
    say(console, f"\nRegret of games.Player over {played[0].trace.n_rounds:,} rounds:")
    for one in played:
        say(console, f"{one.world}: regret {one.trace.total_regret:.1f}, bound {one.bound:.1f}")


def tell_rates(rows: list[Row], *, console: Console) -> None:
    """The table: a row for each measure, a column for each k."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from rankloop.games.classify import LATER, OURS, PAPER, SOURCES

    marks = {PAPER: "", LATER: "'", OURS: "*"}
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
    say(console, "√T easy, T^⅔ hard, T hopeless, 0 nothing to learn: how regret grows with the rounds T.")
    present = {source for row in rows for source in row.sources}
    for source in (PAPER, LATER, OURS):
        if source in present:
            say(console, f"{marks[source] or 'no mark'}: {SOURCES[source]}")
