"""How long a round takes as the number of items grows, for rankers that show a few of many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rich.console import RenderableType
from rich.table import Table

from benchmarks.growth import FIT_FROM, SIZES, Growth
from benchmarks.pbm import people_for
from benchmarks.speed import made_for, of_rankloop, relevance_for
from benchmarks.timing import Contender, Effort, race
from rankloop import environments, rankers, simulation
from rankloop.base import Ranker

POSITIONS = 10  # five where there are ten items
WARM_ROUNDS = 2_000  # played before the clock starts
MOST_ROUNDS = 20_000  # a slice
HORIZON = 1_000_000  # of TopRank, which has to know one
TOP_RANK_UP_TO = 3_000  # items; it holds several numbers for each pair of them

FTRL_PBM, TOP_RANK, RTOP_1F = "FTRLPBM", "TopRank", "RTop1F"


def measure(effort: Effort, tell: Callable[[str], None], *, sizes: tuple[int, ...] = SIZES) -> list[Growth]:
    """Race the rankers at each size."""
    seconds: dict[str, dict[int, float]] = {name: {} for name in (FTRL_PBM, TOP_RANK, RTOP_1F)}
    for n in sizes:
        tell(f"catalogue: {n:,} items")
        relevance = relevance_for(n)
        users = environments.FixedItems(relevance, measure="dcg")
        racers = {
            FTRL_PBM: _on_clicks(rankers.FTRLPBM, n),
            RTOP_1F: of_rankloop(made_for(rankers.RTop1F, n), users, fused=True),
        }
        if n <= TOP_RANK_UP_TO:
            racers[TOP_RANK] = _on_clicks(partial(rankers.TopRank, horizon=HORIZON), n)
        for name, spent in race(racers, effort=effort, most_rounds=min(MOST_ROUNDS, len(relevance))).items():
            seconds[name][n] = spent
    return [Growth(name, of_size) for name, of_size in seconds.items()]


def _on_clicks(kind: Callable[..., Ranker], n: int) -> Contender:
    m = min(POSITIONS, n // 2)
    people = people_for(n, m)
    ranker = kind(n_items=n, n_positions=m)
    simulation.play(ranker, people, rounds=WARM_ROUNDS, seed=1, points=1, fused=True, progress=False)
    return lambda rounds: (
        lambda: simulation.play(ranker, people, rounds=rounds, seed=2, points=1, fused=True, progress=False)
    )


def tables(found: list[Growth]) -> list[RenderableType]:
    """Microseconds a round at each size, and the fitted exponents."""
    table = Table(
        title=f"Many items, {POSITIONS} positions: microseconds a round",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("n", justify="right")
    for growth in found:
        table.add_column(growth.name, justify="right")
    for n in found[0].seconds:
        cells = (f"{1e6 * one.seconds[n]:,.2f}" if n in one.seconds else "" for one in found)
        table.add_row(f"{n:,}", *cells)
    if max(found[0].seconds) > FIT_FROM:
        table.add_section()
        table.add_row("exponent of n", *(f"{one.in_m:.2f}" for one in found))
    return [table, f"Exponents are fitted from n = {FIT_FROM} on. RTop1F orders all items in each round."]
