"""Verdicts of learnability in words, and the table of rates."""

from __future__ import annotations

import textwrap
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankloop.games import Verdict
from rankloop.games.explain import explain, headline, learner
from rankloop.games.rates import LATER, OURS, PAPER, SOURCES, Row

_STYLES = {"trivial": "dim", "easy": "green", "hard": "yellow", "hopeless": "red"}
_SHORT = {"trivial": "0", "easy": "√T", "hard": "T^⅔", "hopeless": "T"}
MARKS = {PAPER: "", LATER: "'", OURS: "*"}


def tell_verdict(verdict: Verdict, *, console: Console) -> None:
    """The verdict as a few sentences."""
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
    return f"{verdict.measure}, {items}, the relevance of {seen} is seen{grades}:"


def plain_verdict(verdict: Verdict) -> dict[str, Any]:
    """The verdict for programs; the witness is left to `--witness`."""
    told: dict[str, Any] = {"class": verdict.class_, "rate": verdict.rate}
    if verdict.measure is not None:
        told |= {
            "measure": verdict.measure,
            "items": verdict.n_items,
            "top": verdict.k,
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
    m = len(rows[0].classes)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(f"{m} items", no_wrap=True)
    for k in range(1, m + 1):
        table.add_column(f"k={k}", justify="center", no_wrap=True)
    for row in rows:
        cells = [
            Text(_SHORT[class_] + MARKS[source], style=_STYLES[class_])
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
            console.print(f"{MARKS[source] or 'no mark'}: {SOURCES[source]}", markup=False, soft_wrap=True)
