"""`python -m benchmarks.play_games [GAME ...]`: how the regret of `games.Player` grows in finite games.

For each game the largest mean regret over worlds near a wall or near the mean of all walls, from far to near, at
T = 1,000 and on; the exponent is that between the first T and the last.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

from rankloop import games, simulation

SHARES = (0.5, 0.25, 0.12, 0.06, 0.03, 0.015)
STARTS = (0, None)  # the first wall, and the mean of all walls
FIRST = 1_000
AIMS = {"easy": 0.55, "hard": 0.70}


def _ranking(measure: str, feedback: str, n_items: int = 3) -> Callable[[], games.Game]:
    return lambda: games.ranking_game(measure=measure, n_items=n_items, feedback=feedback)


GAMES: dict[str, Callable[[], games.Game]] = {
    "err, 3 items, top 2": _ranking("err", "top 2"),
    "dcg@2, 3 items, top 2": _ranking("dcg@2", "top 2"),
    "precision@2, 3 items, top 1": _ranking("precision@2", "top 1"),
    "precision@1, 3 items, noisy clicks": _ranking("precision@1", "noisy clicks 1 4/5 1/5"),
    "dcg, 3 items, preference 1 2": _ranking("dcg", "preference 1 2"),
    "apple tasting": games.zoo.apple_tasting,
    "bandit, 4 arms": lambda: games.zoo.bandit(n_arms=4),
    "dcg, 3 items, top 1": _ranking("dcg", "top 1"),
    "sum_loss, 3 items, top 1": _ranking("sum_loss", "top 1"),
    "ndcg, 3 items, top 2": _ranking("ndcg", "top 2"),
    "dcg, 3 items, first click": _ranking("dcg", "first click"),
    "label-efficient prediction": games.zoo.label_efficient,
    "dynamic pricing, 4 prices": games.zoo.dynamic_pricing,
}


@dataclass(frozen=True, slots=True)
class Grown:
    """The largest mean regret over all worlds, by the number of rounds."""

    game: str
    class_: str
    regret: dict[int, float]
    bound: float  # the largest of the player's own bounds at the end
    microseconds: float  # a round

    @property
    def exponent(self) -> float:
        """Of T, between the first and the last number of rounds."""
        (first, least), (last, most) = min(self.regret.items()), max(self.regret.items())
        return math.log(most / least) / math.log(last / first)


def measure(
    names: list[str], *, rounds: int = 100_000, runs: int = 4, shares: tuple[float, ...] = SHARES
) -> Iterator[Grown]:
    """Play the games, one after the other."""
    at = [FIRST * 10**i for i in range(10) if FIRST * 10**i <= rounds]
    for name in names:
        game = GAMES[name]()
        verdict = games.classify(game, route="cells")
        worst, bounds, seconds = np.zeros(len(at)), [], 0.0
        for share, wall in product(shares, STARTS):
            regrets = []
            for seed in range(runs):
                player = games.Player(game, verdict=verdict)
                chances = games.near_wall(game, verdict, share, wall=wall, side=seed % 2)
                world = games.GameWorld(game, chances=chances)
                trace = simulation.play(player, world, rounds=rounds, seed=seed, points=rounds // FIRST)
                regrets.append(trace.regret[[T // FIRST - 1 for T in at]])
                bounds.append(player.regret_bound())
                seconds += trace.seconds
            worst = np.maximum(worst, np.mean(regrets, axis=0))
        each = 1e6 * seconds / (len(bounds) * rounds)
        yield Grown(name, verdict.class_, dict(zip(at, worst.tolist(), strict=True)), max(bounds), each)


def table(rows: list[Grown]) -> Table:
    """The numbers, and whether the exponents are within the aims."""
    out = Table(title="Largest mean regret over worlds near a wall")
    at = list(rows[0].regret)
    for head in ("game", "class", *(f"T = {T:,}" for T in at), "exponent", "bound", "µs a round"):
        out.add_column(head, justify="left" if head in ("game", "class") else "right")
    for row in rows:
        met = "" if row.exponent <= AIMS.get(row.class_, 0.0) else " missed"
        numbers = [f"{value:,.1f}" for value in row.regret.values()]
        cells = [*numbers, f"{row.exponent:.2f}{met}", f"{row.bound:,.0f}", f"{row.microseconds:.1f}"]
        out.add_row(row.game, row.class_, *cells)
    return out


def main(words: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.play_games", description=__doc__)
    parser.add_argument("games", nargs="*", metavar="GAME", help=f"any of {'; '.join(GAMES)}; all if none")
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=4)
    asked = parser.parse_args(words)
    unknown = [name for name in asked.games if name not in GAMES]
    if unknown:
        parser.error(f"there is no game {unknown[0]!r}")
    rows = []
    for row in measure(asked.games or list(GAMES), rounds=asked.rounds, runs=asked.runs):
        regrets = ", ".join(f"{value:.1f}" for value in row.regret.values())
        print(f"{row.game}: {row.class_}, regret {regrets}, exponent {row.exponent:.3f}", flush=True)
        rows.append(row)
    Console(width=140).print(table(rows))


if __name__ == "__main__":
    main()
