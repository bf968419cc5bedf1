"""How long it takes to say what can be learnt: through all orders for a few items, through swaps for many."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks.timing import FULL, Effort
from rankloop import games

MEASURES = ("sum_loss", "dcg", "precision@2", "ndcg", "average_precision", "auc", "err")
CELLS = (3, 4, 5)
STRUCTURE = (8, 20, 50)
AIM = 10.0  # seconds for any measure with 50 items


@dataclass(frozen=True, slots=True)
class Classified:
    """Seconds to classify one measure from the top item, at each number of items, by one route."""

    measure: str
    route: str
    seconds: dict[int, float]

    @property
    def exponent(self) -> float:
        """p in seconds ~ m^p, fitted on logarithmic axes; NaN where one size was measured only."""
        sizes = np.array(list(self.seconds), dtype=np.float64)
        if len(sizes) < 2:
            return float("nan")
        return float(np.polyfit(np.log(sizes), np.log(list(self.seconds.values())), 1)[0])


def measure(
    effort: Effort,
    tell: Callable[[str], None],
    *,
    measures: tuple[str, ...] = MEASURES,
    cells: tuple[int, ...] = CELLS,
    structure: tuple[int, ...] = STRUCTURE,
) -> list[Classified]:
    """CPU seconds of one process for each measure and size; five items, which take a minute, only at full effort."""
    found = []
    for name in measures:
        for route, sizes in (("cells", cells), ("structure", structure)):
            seconds = {}
            for m in sizes:
                tell(f"games: {name}, {m} items")
                if route == "cells" and m >= 5 and effort != FULL:
                    continue
                repeat = 1 if route == "cells" and m >= 4 else 3
                seconds[m] = min(_seconds(name, m, route) for _ in range(repeat))
            found.append(Classified(name, route, seconds))
    return found


def _seconds(name: str, m: int, route: str) -> float:
    begun = time.process_time()
    games.classify(games.ranking_game(measure=name, n_items=m, k=1), route=route, jobs=1)
    return time.process_time() - begun


def tables(found: list[Classified]) -> list[RenderableType]:
    """Seconds at each size, by both routes, and how they grow."""
    parts: list[RenderableType] = []
    for route, title in (
        ("cells", "from all orders and outcomes"),
        ("structure", "from the swaps of the measure"),
    ):
        rows = [row for row in found if row.route == route]
        sizes = sorted({m for row in rows for m in row.seconds})
        table = Table(title=f"Seconds to classify, {title}", title_justify="left", title_style="bold")
        table.add_column("")
        for m in sizes:
            table.add_column(f"m = {m}", justify="right")
        table.add_column("exponent of m", justify="right")
        for row in rows:
            told = [f"{row.seconds[m]:.3f}" if m in row.seconds else "" for m in sizes]
            table.add_row(row.measure, *told, f"{row.exponent:.1f}")
        parts.append(table)
    largest = max(
        (row.seconds[m], row.measure, m) for row in found if row.route == "structure" for m in row.seconds
    )
    met = "[green]   met[/]" if largest[0] <= AIM else "[red]missed[/]"
    parts.append(
        f"{met}  any measure with up to {max(STRUCTURE)} items within {AIM:g} s: {largest[0]:.2f} s, {largest[1]}"
    )
    parts.append(
        "Orders number m!, so the exponents of the first table are those of a factorial, and grow with m."
    )
    return parts
