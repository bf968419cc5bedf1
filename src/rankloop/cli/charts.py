"""What `rankloop simulate` draws in the terminal while a run goes on: one curve, and the list that is shown now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rankloop.base import Environment, Ranker
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.simulation import Trace

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_DRAWS = 100  # lists from which the present share of exploration is estimated
_PATIENCE = 0.02  # seconds for them, at most: the reference versions of some rankers are slow
_MOST_POSITIONS = 12  # of a list, shown one by one


def chart(
    x: NDArray[np.int64],
    y: NDArray[np.float64],
    *,
    until: int,
    y_range: tuple[float, float],
    width: int,
    height: int = 8,
) -> Text:
    """The curve over a logarithmic axis from 1 to `until`, as columns of so many characters.

    >>> print(chart(np.array([1, 4]), np.array([0.0, 1.0]), until=16, y_range=(0, 1), width=5, height=2).plain)
      1.00 ┤  █
      0.00 ┤ ██
            1  16
    """
    low, high = y_range
    columns = np.geomspace(1.0, until, width)
    heights = np.interp(np.log(columns), np.log(x), y, right=np.nan)
    full = np.clip((np.nan_to_num(heights, nan=low) - low) / (high - low), 0.0, 1.0) * height
    text = Text()
    for row in reversed(range(height)):
        edge = f"{high:6.2f} ┤" if row == height - 1 else f"{low:6.2f} ┤" if row == 0 else f"{'':6} │"
        text.append(edge, style="dim")
        eighths = np.clip(np.rint(8.0 * (full - row)), 0, 8).astype(int)
        text.append("".join(_EIGHTHS[each] for each in eighths).rstrip() + "\n", style="bright_blue")
    return text.append(f"{'':8}1{until:>{width - 1},}", style="dim")


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

    # Standard streams are left alone: compilers imported meanwhile take hold of them and should find the real ones.
    with Live(
        Text("Starting (new code compiles once)", style="dim"),
        console=console,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:
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


def _head(trace: Trace, rounds: int, unit: str, exploring: float) -> Text:
    rate = trace.n_rounds / max(trace.seconds, 1e-9)
    return Text.assemble(
        (f"{trace.n_rounds:,}", "bold"),
        f" of {rounds:,} rounds, {rate:,.0f} a second, {(rounds - trace.n_rounds) / rate:.0f} s left   {unit} ",
        (f"{trace.mean_value:.4f}", "bold"),
        "   exploring ",
        (f"{exploring:.1%}", "bold"),
    )


def _curve(trace: Trace, y: NDArray[np.float64], rounds: int, width: int, what: str, low: float) -> Group:
    # Early averages jump about; the last nine tenths set the scale.
    late = y[trace.rounds * 10 >= trace.rounds[-1]]
    top = max(float(late.max()) * 1.15, low + 1e-6)
    drawn = chart(trace.rounds, y, until=rounds, y_range=(low, top), width=max(20, min(90, width - 20)))
    return Group(Text(what, style="dim"), drawn)


def _regret_view(trace: Trace, rounds: int, width: int) -> RenderableType:
    head = _head(trace, rounds, "value", trace.exploration_share)
    average = trace.regret / trace.rounds
    if rounds < 2 or not np.isfinite(average).all():
        return head
    what = f"average {trace.measure} regret, now {average[-1]:.4f}"
    return Group(head, _curve(trace, average, rounds, width, what, 0.0))


def _click_view(
    trace: Trace, rounds: int, width: int, ranker: Ranker, world: ClickWorlds, rng: np.random.Generator
) -> RenderableType:
    shares = how_often(ranker, rng)
    head = _head(trace, rounds, "average reward", 1 - float(shares.mean()))
    lists = _list_now(ranker.current(), shares, world)
    if rounds < 2:
        return Group(head, lists)
    t = trace.n_rounds
    ideal = float(world.ideal(np.array([t]))[0]) / t
    fixed = (trace.total_value + trace.total_regret) / t
    what = (
        f"average reward, in clicks a round; the best list of each phase has {ideal:.4f}, of all {fixed:.4f}"
    )
    reward = trace.total / trace.rounds
    late = reward[trace.rounds * 10 >= t]
    return Group(head, _curve(trace, reward, rounds, width, what, 0.85 * float(late.min())), Text(), lists)


def _list_now(
    favourite: NDArray[np.int64], shares: NDArray[np.float64], world: ClickWorlds
) -> RenderableType:
    best = world.best_lists[world.world]
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
