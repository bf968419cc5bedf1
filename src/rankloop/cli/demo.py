"""A million simulated users, and three ways to rank for them, live in the terminal."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rankloop.cli.braille_chart import Line, line_chart, live_view
from rankloop.compiled import CompiledRanker
from rankloop.environments import FixedItems
from rankloop.experiments.top1_2015.setting import N_ITEMS, NOISE, users
from rankloop.kernels.jit import muted
from rankloop.rankers import FTPL, TopFTRL, Uniform
from rankloop.simulation import play

_SHOWN = 0.85  # top of the chart


@dataclass
class Contestant:
    """A ranker, its users, and its result so far."""

    name: str
    observes: str
    colour: str
    ranker: CompiledRanker
    people: FixedItems
    played: int = 0
    total: float = 0.0
    explored: float = 0.0
    liked: NDArray[np.int64] = field(default_factory=lambda: np.zeros(N_ITEMS, np.int64))
    rounds: list[float] = field(default_factory=list)
    average: list[float] = field(default_factory=list)

    def play_until(self, t: int) -> None:
        """Go on to round `t`."""
        piece = t - self.played
        self.liked += self.people.users.vectors[self.played : t].sum(axis=0)  # type: ignore[union-attr]
        trace = play(self.ranker, self.people, rounds=piece, seed=self.played, points=1, progress=False)
        self.played = t
        self.total += trace.total_value
        self.explored += trace.exploration_share * piece
        self.rounds.append(float(t))
        best = (
            self.people.scored.discount(N_ITEMS) @ np.sort(self.liked)[::-1]
        )  # of all pieces taken together
        self.average.append((float(best) - self.total) / t)


def contestants(rounds: int) -> list[Contestant]:
    """The three, drawn in this order; they have the same users."""
    people = users(rounds, NOISE)
    return [
        Contestant(name, observes, colour, ranker, FixedItems(people, measure="dcg"))
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
        with muted(), live_view(first, console=console, transient=True):
            for one in contestants(rounds):
                one.play_until(1)
                _shown_now(one.ranker, np.random.default_rng(1))
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
        lines, x_range=(1, rounds), y_range=(0.0, _SHOWN), width=max(20, min(90, width - 20)), height=14
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("ranker", "observes", "shows now, best first", "average regret", "explores"):
        table.add_column(heading, justify="right" if heading in ("average regret", "explores") else "left")
    for player in reversed(players):
        table.add_row(
            Text(player.name, style=f"bold {player.colour}"),
            player.observes,
            _shown_now(player.ranker, rng),
            f"{player.average[-1]:.3f}",
            f"{player.explored / t:.1%}" if player.name == "TopFTRL" else "",
        )
    head = Text.assemble((f"{t:>9,}", "bold"), " users so far. ", ("Average DCG regret so far:", "dim"))
    legend = Text.assemble(
        ("●", "green"), " relevant to most users  ", ("○", "dim"), " relevant to few", style="dim"
    )
    return Group(head, chart, Text(), table, legend)


def _shown_now(ranker: CompiledRanker, rng: np.random.Generator) -> Text:
    text = Text()
    for item in ranker.rank(rng=rng).items:  # rank changes nothing but rng, so looking does not disturb
        text.append(*(("●", "green") if item < N_ITEMS // 2 else ("○", "dim")))
    return text
