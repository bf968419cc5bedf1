"""A run in the terminal while it goes on: its value, its exploration, and the list it shows now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rankloop.base import Environment, Ranker
from rankloop.cli.braille_chart import Line, line_chart, live_view
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.kernels.jit import muted
from rankloop.plotting.thinning import thin
from rankloop.simulation import Trace

_DRAWS = 100  # lists from which the present share of exploration is estimated
_PATIENCE = 0.02  # seconds for them, at most: the reference versions of some rankers are slow
_MOST_POSITIONS = 12  # of a list, shown one by one


@contextmanager
def watched(
    ranker: Ranker, environment: Environment, *, rounds: int, console: Console | None
) -> Iterator[Callable[[Trace], None] | None]:
    """A function that draws the trace so far on `console`; None where `console` is not a terminal."""
    if console is None or not console.is_terminal:
        yield None
        return
    rng = np.random.default_rng(1)  # of its own: looking does not disturb

    def show(trace: Trace) -> None:
        if isinstance(environment, ClickWorlds):
            view = _click_view(trace, rounds, console.width, ranker, environment, rng)
        else:
            view = _regret_view(trace, rounds, console.width)
        live.update(view, refresh=True)

    with muted(), live_view(Text("Starting (new code compiles once)", style="dim"), console=console) as live:
        yield show


def how_often(ranker: Ranker, rng: np.random.Generator) -> NDArray[np.float64]:
    """For each position, the share of lists drawn now that show there the item which `ranker` holds best.

    >>> from rankloop.rankers import Fixed
    >>> how_often(Fixed(order=[2, 0], n_items=3), np.random.default_rng(1))
    array([1., 1.])
    """
    favourite = ranker.current()
    until = time.perf_counter() + _PATIENCE
    same, drawn = np.zeros(len(favourite)), 0
    while drawn == 0 or (drawn < _DRAWS and time.perf_counter() < until):
        same += ranker.rank(rng=rng).items == favourite
        drawn += 1
    return same / drawn


def _head(trace: Trace, rounds: int, told: str, exploring: float) -> Text:
    rate = trace.n_rounds / max(trace.seconds, 1e-9)
    return Text.assemble(
        (f"{trace.n_rounds:,}", "bold"),
        f" of {rounds:,} rounds, {rate:,.0f} a second, {(rounds - trace.n_rounds) / rate:.0f} s left   {told} ",
        (f"{trace.mean_value:.4f}", "bold"),
        "   exploring ",
        (f"{exploring:.1%}", "bold"),
    )


def _regret_view(trace: Trace, rounds: int, width: int) -> RenderableType:
    kept = list(thin(len(trace.rounds), points=200))
    average = trace.regret[kept] / trace.rounds[kept]
    head = _head(trace, rounds, "value", trace.exploration_share)
    finite = average[np.isfinite(average)]
    if len(finite) == 0 or rounds < 2:
        return head
    top = max(float(np.quantile(finite, 0.95)) * 1.15, 1e-6)
    line = Line(f"{average[-1]:.4f}", "bright_blue", trace.rounds[kept].tolist(), average.tolist())
    chart = line_chart(
        [line], x_range=(1, rounds), y_range=(0.0, top), width=max(20, min(90, width - 20)), height=12
    )
    return Group(head, Text(f"average {trace.measure} regret", style="dim"), chart)


def _click_view(
    trace: Trace, rounds: int, width: int, ranker: Ranker, people: ClickWorlds, rng: np.random.Generator
) -> RenderableType:
    shares = how_often(ranker, rng)
    head = _head(trace, rounds, "average reward", 1 - float(shares.mean()))
    lists = _shown_now(ranker.current(), shares, people)
    if rounds < 2:
        return Group(head, lists)
    kept = list(thin(len(trace.rounds), points=200))
    t = trace.rounds[kept]
    reward, ideal = trace.total[kept] / t, people.ideal(t) / t
    fixed = (trace.total[kept] + trace.regret[kept]) / t
    # Early averages jump about; the last nine tenths set the scale.
    late = np.concatenate([part[t * 10 >= t[-1]] for part in (reward, ideal, fixed)])
    margin = max(0.15 * float(late.max() - late.min()), 0.01)
    chart = line_chart(
        [
            Line(name, colour, t.tolist(), part.tolist())
            for name, colour, part in (
                ("best of each phase", "bright_black", ideal),
                ("best of all", "green", fixed),
                (f"{reward[-1]:.4f}", "bright_blue", reward),
            )
        ],
        x_range=(1, rounds),
        y_range=(max(0.0, float(late.min()) - margin), float(late.max()) + margin),
        width=max(20, min(90, width - 30)),
        height=12,
    )
    return Group(head, Text("average reward, in clicks a round", style="dim"), chart, Text(), lists)


def _shown_now(
    favourite: NDArray[np.int64], shares: NDArray[np.float64], people: ClickWorlds
) -> RenderableType:
    best = people.best_lists[people.world]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    shown = min(len(favourite), _MOST_POSITIONS)
    rest = f" ({len(favourite) - shown} more positions)" if shown < len(favourite) else ""
    table.add_column("position")
    for position in range(shown):
        table.add_column(str(position + 1), justify="right")
    table.add_row(
        "estimated best item",
        *(Text(str(favourite[j]), style="green" if favourite[j] == best[j] else "") for j in range(shown)),
    )
    table.add_row("shown there", *(f"{shares[j]:.0%}" for j in range(shown)))
    legend = Text.assemble(("green", "green"), f": best for the present users{rest}", style="dim")
    return Group(table, legend)
