"""Runs drawn in the terminal while they go on: a line chart in braille, what `simulate` shows, and the demo."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rankloop.base import Environment, Ranker
from rankloop.compiled import CompiledRanker
from rankloop.environments import FixedItems
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.rankers import FTPL, TopFTRL, Uniform
from rankloop.simulation import Trace, play
from rankloop.spacing import spread, thin

# The bit of each dot in a braille cell, by row and column (Unicode's numbering of the dots).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800
_DRAWS = 100  # lists from which the present share of exploration is estimated
_PATIENCE = 0.02  # seconds for them, at most: the reference versions of some rankers are slow
_MOST_POSITIONS = 12  # of a list, shown one by one


@dataclass(frozen=True, slots=True)
class Line:
    """What to draw: a name and a colour rich knows, and points with x rising."""

    label: str
    colour: str
    x: Sequence[float]
    y: Sequence[float]


def live_view(first: RenderableType, *, console: Console, transient: bool = False) -> Live:
    """A part of the terminal to draw on again and again.

    Standard streams are left alone: compilers imported meanwhile take hold of them and should find the real ones.
    """
    return Live(
        first,
        console=console,
        transient=transient,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def line_chart(
    lines: Sequence[Line],
    *,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    width: int = 60,
    height: int = 12,
) -> Text:
    """The lines over a logarithmic x axis, each one's label at its end; later lines are drawn over earlier ones.

    `width` and `height` are the characters of the plot itself; tick labels and line labels come on top of it.

    >>> text = line_chart([Line("a", "red", [1, 10], [0, 1])], x_range=(1, 10), y_range=(0, 1), width=4, height=2)
    >>> print(text.plain)
      1.00 ┤⠀⠀⡠⠊ a
      0.00 ┤⡠⠊⠀⠀
           └┬──┬
            1 10
    """
    if width < 2 or height < 2:
        raise ValueError(f"width and height must be at least 2, got {width} and {height}")
    left, right = (math.log(edge) for edge in x_range)
    low, high = y_range
    cells = [[_BLANK] * width for _ in range(height)]
    colours = [[""] * width for _ in range(height)]
    ends: list[float] = []
    for line in lines:
        dots = [
            (
                (math.log(x) - left) / (right - left) * (2 * width - 1),
                (high - min(max(y, low), high)) / (high - low) * (4 * height - 1),
            )
            for x, y in zip(line.x, line.y, strict=True)
            if x_range[0] <= x <= x_range[1] and math.isfinite(y)
        ]
        for column, row in _connect(dots):
            cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
            colours[row // 4][column // 2] = line.colour
        ends.append(dots[-1][1] / 4 if dots else math.nan)
    labels = _label_rows(lines, ends, height)
    middle = (height - 1) // 2
    ticks = {middle: high - (high - low) * (middle + 0.5) / height, 0: high, height - 1: low}
    text = Text()
    for row in range(height):
        text.append(f"{ticks[row]:6.2f} ┤" if row in ticks else "       │", style="dim")
        for colour, run in itertools.groupby(
            zip(cells[row], colours[row], strict=True), key=lambda cell: cell[1]
        ):
            text.append("".join(chr(cell) for cell, _ in run), style=colour or None)
        if row in labels:
            text.append(f" {labels[row].label}", style=f"bold {labels[row].colour}")
        text.append("\n")
    text.append(_x_axis(x_range, width), style="dim")
    return text


def _x_axis(x_range: tuple[float, float], width: int) -> str:
    """Two lines below the plot: a mark at every power of ten, and its number where there is room."""
    left, right = (math.log10(edge) for edge in x_range)
    marks, numbers = ["─"] * width, ""
    for power in range(math.ceil(left), math.floor(right) + 1):
        column = round((power - left) / (right - left) * (width - 1))
        marks[column] = "┬"
        number = f"{10**power:,}"
        start = max(0, min(column - len(number) // 2, width - len(number)))
        if start > len(numbers) or not numbers:
            numbers = numbers.ljust(start) + number
    return "       └" + "".join(marks) + "\n        " + numbers


def _connect(dots: Sequence[tuple[float, float]]) -> set[tuple[int, int]]:
    if len(dots) == 1:
        return {(round(dots[0][0]), round(dots[0][1]))}
    drawn: set[tuple[int, int]] = set()
    for (x0, y0), (x1, y1) in itertools.pairwise(dots):
        steps = max(1, math.ceil(max(abs(x1 - x0), abs(y1 - y0))))
        drawn.update(
            (round(x0 + (x1 - x0) * i / steps), round(y0 + (y1 - y0) * i / steps)) for i in range(steps + 1)
        )
    return drawn


def _label_rows(lines: Sequence[Line], ends: Sequence[float], height: int) -> dict[int, Line]:
    named = [i for i, end in enumerate(ends) if math.isfinite(end)]
    places = spread([ends[i] for i in named], gaps=[1.0] * len(named), low=0.0, high=float(height))
    return {min(height - 1, int(place)): lines[i] for i, place in zip(named, places, strict=True)}


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

    with live_view(Text("Starting (new code compiles once)", style="dim"), console=console) as live:
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
    trace: Trace, rounds: int, width: int, ranker: Ranker, world: ClickWorlds, rng: np.random.Generator
) -> RenderableType:
    shares = how_often(ranker, rng)
    head = _head(trace, rounds, "average reward", 1 - float(shares.mean()))
    lists = _list_now(ranker.current(), shares, world)
    if rounds < 2:
        return Group(head, lists)
    kept = list(thin(len(trace.rounds), points=200))
    t = trace.rounds[kept]
    reward, ideal = trace.total[kept] / t, world.ideal(t) / t
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


@dataclass
class Contestant:
    """A ranker, its users, and its result so far."""

    name: str
    observes: str
    colour: str
    ranker: CompiledRanker
    world: FixedItems
    liked: NDArray[np.int64]  # how many users so far like each item
    played: int = 0
    total: float = 0.0
    explored: float = 0.0
    rounds: list[float] = field(default_factory=list)
    average: list[float] = field(default_factory=list)

    def play_until(self, t: int) -> None:
        """Go on to round `t`."""
        piece = t - self.played
        self.liked += self.world.users.vectors[self.played : t].sum(axis=0)  # type: ignore[union-attr]
        trace = play(self.ranker, self.world, rounds=piece, seed=self.played, points=1, progress=False)
        self.played = t
        self.total += trace.total_value
        self.explored += trace.exploration_share * piece
        self.rounds.append(float(t))
        # Of all pieces taken together.
        best = self.world.scored.discount(len(self.liked)) @ np.sort(self.liked)[::-1]
        self.average.append((float(best) - self.total) / t)


def contestants(rounds: int) -> list[Contestant]:
    """The three, drawn in this order; they have the same users."""
    from rankloop.experiments.top1_2015.setting import N_ITEMS, NOISE, users

    same = users(rounds, NOISE)
    return [
        Contestant(
            name, observes, colour, ranker, FixedItems(same, measure="dcg"), np.zeros(N_ITEMS, np.int64)
        )
        for name, observes, colour, ranker in (
            ("Uniform", "nothing", "bright_black", Uniform(n_items=N_ITEMS)),
            ("FTPL", "all ten items", "green", FTPL(n_items=N_ITEMS)),
            ("TopFTRL", "the top item only", "bright_blue", TopFTRL(n_items=N_ITEMS)),
        )
    ]


def play_demo(*, console: Console, rounds: int = 1_000_000, seconds: float = 9.0) -> list[Contestant]:
    """Play on `console`: a moving chart of about `seconds` on a terminal, a few plain lines elsewhere."""
    if rounds < 10:
        raise ValueError(f"rounds must be at least 10, got {rounds}")
    if console.is_terminal:
        first = Text("Compiling the loops (the first time only)")
        with live_view(first, console=console, transient=True):
            for one in contestants(rounds):
                one.play_until(1)
                _dots(one.ranker, np.random.default_rng(1))
    players = contestants(rounds)
    # Evenly spaced in the logarithm: the early rounds, where most is learnt, get most of the time.
    stops = np.unique(np.geomspace(1, rounds, 160).round().astype(int))
    if not console.is_terminal:
        _play_quietly(players, [int(stop) for stop in stops], console)
        return players
    rng = np.random.default_rng(1)
    begun = time.perf_counter()
    with live_view(Text(), console=console) as live:
        for i, stop in enumerate(stops, start=1):
            for player in players:
                player.play_until(int(stop))
            live.update(_view(players, rounds=rounds, width=console.width, rng=rng), refresh=True)
            time.sleep(max(0.0, begun + seconds * i / len(stops) - time.perf_counter()))
    return players


def _play_quietly(players: list[Contestant], stops: list[int], console: Console) -> None:
    for stop in stops:
        for player in players:
            player.play_until(stop)
    for decade in (10, 1_000, 100_000, stops[-1]):
        if decade <= stops[-1]:
            at = int(np.searchsorted(stops, decade))
            shown = ", ".join(f"{player.name} {player.average[at]:.3f}" for player in reversed(players))
            console.print(f"average regret after {stops[at]:>9,} users: {shown}", highlight=False)


def _view(players: list[Contestant], *, rounds: int, width: int, rng: np.random.Generator) -> RenderableType:
    t = players[0].played
    lines = [Line(player.name, player.colour, player.rounds, player.average) for player in players]
    chart = line_chart(
        lines, x_range=(1, rounds), y_range=(0.0, 0.85), width=max(20, min(90, width - 20)), height=14
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("ranker", "observes", "shows now, best first", "average regret", "explores"):
        table.add_column(heading, justify="right" if heading in ("average regret", "explores") else "left")
    for player in reversed(players):
        table.add_row(
            Text(player.name, style=f"bold {player.colour}"),
            player.observes,
            _dots(player.ranker, rng),
            f"{player.average[-1]:.3f}",
            f"{player.explored / t:.1%}" if player.name == "TopFTRL" else "",
        )
    head = Text.assemble((f"{t:>9,}", "bold"), " users so far. ", ("Average DCG regret so far:", "dim"))
    legend = Text.assemble(
        ("●", "green"), " relevant to most users  ", ("○", "dim"), " relevant to few", style="dim"
    )
    return Group(head, chart, Text(), table, legend)


def _dots(ranker: CompiledRanker, rng: np.random.Generator) -> Text:
    text = Text()
    items = ranker.rank(rng=rng).items  # changes nothing but rng, so looking does not disturb
    for item in items:
        text.append(*(("●", "green") if item < len(items) // 2 else ("○", "dim")))
    return text
