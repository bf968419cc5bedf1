"""`rankloop classify --play`: `games.Player` in worlds of the classified game, and a chart of its regret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from rankloop import games, simulation
from rankloop.cli.braille_chart import Line, line_chart
from rankloop.games.near_walls import near_wall
from rankloop.simulation import Trace

_WORLDS = {"far from the wall": (0.5, "green"), "nearer": (0.12, "yellow"), "near": (0.03, "red")}
_POINTS = 200


@dataclass(frozen=True, slots=True)
class Played:
    """A run in one world, and the bound on its regret that the player computed."""

    world: str
    colour: str
    trace: Trace
    bound: float


def play_game(game: games.Game, *, rounds: int, seed: int) -> list[Played]:
    """A run in each world: near a wall of the game, or with all outcomes alike where it has none."""
    verdict = games.classify(game, route="cells")
    worlds: dict[str, tuple[NDArray[np.float64], str]] = {
        name: (near_wall(game, verdict, share), colour)
        for name, (share, colour) in _WORLDS.items()
        if verdict.neighbours
    } or {"any world": (np.full(game.n_outcomes, 1 / game.n_outcomes), "green")}
    found = []
    for name, (chances, colour) in worlds.items():
        player = games.Player(game, verdict=verdict)
        trace = simulation.play(
            player,
            games.GameWorld(game, chances=chances),
            rounds=rounds,
            seed=seed,
            points=_POINTS,
            progress=False,
        )
        found.append(Played(name, colour, trace, player.regret_bound()))
    return found


def plain_played(played: list[Played]) -> list[dict[str, Any]]:
    """The runs for programs."""
    return [
        {
            "world": one.world,
            "rounds": one.trace.n_rounds,
            "seed": one.trace.seed,
            "regret": float(one.trace.total_regret),
            "regret_bound": one.bound,
        }
        for one in played
    ]


def tell_played(played: list[Played], *, console: Console) -> None:
    """The chart, and a line for each world."""
    rounds = played[0].trace.n_rounds
    console.print(f"\nRegret of games.Player over {rounds:,} rounds:", markup=False, soft_wrap=True)
    most = max(1e-9, *(float(one.trace.regret.max()) for one in played))
    least = min(0.0, *(float(one.trace.regret.min()) for one in played))
    if rounds > 1:
        lines = [
            Line(one.world, one.colour, one.trace.rounds.tolist(), one.trace.regret.tolist())
            for one in played
        ]
        first = float(played[0].trace.rounds[0])
        if first < rounds:
            console.print(line_chart(lines, x_range=(first, rounds), y_range=(least, most)), soft_wrap=True)
    for one in played:
        console.print(
            f"{one.world}: regret {one.trace.total_regret:.1f}, bound {one.bound:.1f}",
            markup=False,
            soft_wrap=True,
        )
