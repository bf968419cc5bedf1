"""How the cost of a round grows with the number of items: theory says m log m."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks.speed import BARE, RANKERS, bare_sort, made_for, of_rankloop, relevance_for
from benchmarks.timing import Effort, race
from rankloop import environments

SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
FIT_FROM = 100  # below, what a round costs at any size hides what an item costs


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds a round at each size, for one ranker or the bare sort."""

    name: str
    seconds: dict[int, float]

    def exponent(self, of: Callable[[np.ndarray], np.ndarray]) -> float:
        """p in seconds ~ of(m)^p, fitted on logarithmic axes from `FIT_FROM` items on."""
        sizes = np.array([m for m in self.seconds if m >= FIT_FROM], dtype=np.float64)
        seconds = np.array([self.seconds[int(m)] for m in sizes])
        return float(np.polyfit(np.log(of(sizes)), np.log(seconds), 1)[0])

    @property
    def in_m(self) -> float:
        """The exponent of m."""
        return self.exponent(lambda m: m)

    @property
    def in_m_log_m(self) -> float:
        """The exponent of m log m: at most 1 where a round is O(m log m)."""
        return self.exponent(lambda m: m * np.log(m))


def measure(effort: Effort, tell: Callable[[str], None], *, sizes: tuple[int, ...] = SIZES) -> list[Growth]:
    """Race both rankers and the bare sort at each size."""
    seconds: dict[str, dict[int, float]] = {name: {} for name in (*RANKERS, BARE)}
    for m in sizes:
        tell(f"growth: {m:,} items")
        relevance = relevance_for(m)
        people = environments.FixedItems(relevance, measure="dcg")
        racers = {
            name: of_rankloop(made_for(kind, people.n_items), people, fused=True)
            for name, kind in RANKERS.items()
        }
        racers[BARE] = bare_sort(m)
        for name, spent in race(racers, effort=effort, most_rounds=len(relevance)).items():
            seconds[name][m] = spent
    return [Growth(name, of_size) for name, of_size in seconds.items()]


def tables(found: list[Growth]) -> list[RenderableType]:
    """Nanoseconds an item at each size, and the fitted exponents."""
    table = Table(title="Growth: nanoseconds a round and item", title_justify="left", title_style="bold")
    table.add_column("m", justify="right")
    for growth in found:
        table.add_column(growth.name if growth.name != BARE else "bare", justify="right")
    for m in found[0].seconds:
        table.add_row(f"{m:,}", *(f"{1e9 * growth.seconds[m] / m:.1f}" for growth in found))
    table.add_section()
    table.add_row("exponent of m", *(f"{growth.in_m:.2f}" for growth in found))
    table.add_row("exponent of m log m", *(f"{growth.in_m_log_m:.2f}" for growth in found))
    note = f"Exponents are fitted from m = {FIT_FROM} on. O(m log m) a round means about 1 or less in the last row."
    return [table, note]
