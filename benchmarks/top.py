"""Microseconds a round of the rankers that learn from the relevance of the top without a horizon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from benchmarks.speed import BARE, bare_sort, of_rankloop, relevance_for
from benchmarks.timing import Contender, Effort, race
from rankloop import environments, rankers

SIZES = (10, 100, 1_000)
RANKERS: dict[str, Any] = {"TopFTRL": rankers.TopFTRL, "RTop1F": rankers.RTop1F, "PEGE": rankers.PEGE}
AIMS = {10: 5.0, 100: 60.0}  # microseconds a round of TopFTRL, at most


@dataclass(frozen=True, slots=True)
class Times:
    """Microseconds a round of each contender for one number of items."""

    m: int
    microseconds: dict[str, float]


def measure(effort: Effort, tell: Callable[[str], None], *, sizes: tuple[int, ...] = SIZES) -> list[Times]:
    """Race the rankers and the bare sort at each size; each ranker from its beginning, where least is clear."""
    found = []
    for m in sizes:
        tell(f"top: {m:,} items")
        relevance = relevance_for(m)
        people = environments.FixedItems(relevance, measure="dcg")
        racers: dict[str, Contender] = {
            name: of_rankloop(partial(kind, n_items=m), people, fused=True) for name, kind in RANKERS.items()
        }
        racers[BARE] = bare_sort(m)
        seconds = race(racers, effort=effort, most_rounds=len(relevance))
        found.append(Times(m, {name: 1e6 * spent for name, spent in seconds.items()}))
    return found


def tables(found: list[Times]) -> list[RenderableType]:
    """A column for each size, and a line for each aim."""
    title = "Relevance of the top, no horizon: microseconds a round"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("")
    for times in found:
        table.add_column(f"m = {times.m:,}", justify="right")
    for name in found[0].microseconds:
        table.add_row(name, *(f"{times.microseconds[name]:.2f}" for times in found))
    lines: list[RenderableType] = [table]
    for times in found:
        if times.m in AIMS:
            spent, aim = times.microseconds["TopFTRL"], AIMS[times.m]
            met = "[green]   met[/]" if spent <= aim else "[red]missed[/]"
            lines.append(
                f"{met}  TopFTRL at m = {times.m}: {spent:.1f} microseconds a round, aim at most {aim:g}"
            )
    return lines
