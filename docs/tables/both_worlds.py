"""Regret of rankers that observe the relevance of the top item: users who stay, users who change, hard users."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from cells import cell, markdown, regrets

from rankloop import data, environments, rankers
from rankloop.base import Ranker
from rankloop.environments import FixedItems, users

SEEDS = range(1, 11)
JESTER = "ratings/jester_users_0001_2500.csv.gz"
FALLING, CLOSE = np.linspace(0.9, 0.1, 10), np.linspace(0.6, 0.4, 10)
RANKERS: dict[str, Callable[[int, int], Ranker]] = {
    "TopFTRL": lambda n, _: rankers.TopFTRL(n_items=n),
    "RTop1F without horizon": lambda n, _: rankers.RTop1F(n_items=n),
    "RTop1F with horizon": lambda n, rounds: rankers.RTop1F(n_items=n, horizon=rounds),
    "PEGE": lambda n, _: rankers.PEGE(n_items=n),
}


def worlds() -> Iterator[tuple[str, int, Any, str]]:
    """Name, rounds, users, and the measure that evaluates; all learn DCG."""
    for name, rounds, people in _learnable():
        yield name, rounds, people, "dcg"
    for measure in ("ndcg", "average_precision", "auc"):
        for world in (0, 1):
            name = f"{measure}, hard world {world}"
            yield name, 100_000, environments.adversary(measure, world=world), measure


def _learnable() -> Iterator[tuple[str, int, Any]]:
    for T in (100_000, 1_000_000):
        yield "noisy halves", T, users.noisy_halves(n_items=10)
        yield "chances 0.9 to 0.1", T, users.bernoulli(FALLING)
        yield "chances 0.6 to 0.4", T, users.bernoulli(CLOSE)
    jokes = data.read_ratings(data.find(JESTER)).most_rated(10)
    yield "Jester, ten jokes", 10_000, users.listed(jokes.relevance(grades=1))
    for period in (2_000, 20_000):
        changing = users.switching([FALLING, FALLING[::-1]], period=period)
        yield f"0.9 to 0.1, reversed every {period:,}", 100_000, changing
    for best in (0, 9):
        # Too little to detect before it has cost as much: the worlds of the lower bound.
        chances = np.full(10, 0.5)
        chances[best] += 100_000 ** (-1 / 3)
        yield f"one half each, item {best + 1} by T^(−1/3) more", 100_000, users.bernoulli(chances)


def measured(name: str, people: Any, rounds: int, measure: str) -> str:
    """The cell of one ranker and one world."""

    def pair() -> tuple[Ranker, FixedItems]:
        met = FixedItems(people, measure=measure)
        return RANKERS[name](met.n_items, rounds), met

    return cell(regrets(pair, rounds=rounds, seeds=SEEDS))


def table() -> str:
    """All rankers on all worlds."""
    rows = [
        [name, f"{rounds:,}", *(measured(ranker, people, rounds, measure) for ranker in RANKERS)]
        for name, rounds, people, measure in worlds()
    ]
    return markdown(["", "T", *RANKERS], rows)
