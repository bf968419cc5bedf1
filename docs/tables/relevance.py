"""Regret of rankers that observe relevance: the same users for all."""

from collections.abc import Callable

import numpy as np
from cells import cell, markdown, regrets

from rankloop import environments, rankers
from rankloop.base import Ranker

ROUNDS, SEEDS = 100_000, range(1, 11)
FALLING = np.linspace(0.9, 0.1, 10)
# world: users, the measure that evaluates, and the cut-off for the learners of precision
WORLDS: dict[str, tuple[environments.users.Independent, str, int]] = {
    "noisy halves": (environments.users.noisy_halves(n_items=10), "dcg", 5),
    "chances 0.9 to 0.1": (environments.users.bernoulli(FALLING), "dcg", 5),
    "reversed every 20,000": (
        environments.users.switching([FALLING, FALLING[::-1]], period=20_000),
        "dcg",
        5,
    ),
    "chances 0.9 to 0.1, precision@5": (environments.users.bernoulli(FALLING), "precision@5", 5),
    "five items, chances 0.9 to 0.1": (environments.users.bernoulli(np.linspace(0.9, 0.1, 5)), "dcg", 2),
}
RANKERS: dict[str, Callable[[int, str, int], Ranker]] = {
    "[TopFTRL](rankers/TopFTRL.md)": lambda n, measure, _: rankers.TopFTRL(n_items=n, measure=measure),
    "the same, top 3 revealed": lambda n, measure, _: rankers.TopFTRL(n_items=n, measure=measure, k=3),
    "[RTop1F](rankers/RTop1F.md) with horizon": lambda n, measure, _: rankers.RTop1F(
        n_items=n, horizon=ROUNDS, measure=measure
    ),
    "RTop1F with horizon, top 3 revealed": lambda n, measure, _: rankers.RTop1F(
        n_items=n, horizon=ROUNDS, measure=measure, k=3
    ),
    "RTop1F without horizon": lambda n, measure, _: rankers.RTop1F(n_items=n, measure=measure),
    "[PrecisionFTRL](rankers/PrecisionFTRL.md)": lambda n, _, cutoff: rankers.PrecisionFTRL(
        n_items=n, measure=f"precision@{cutoff}"
    ),
    "[PEGE](rankers/PEGE.md)": lambda n, measure, _: rankers.PEGE(n_items=n, measure=measure),
    "[FeedExp3](rankers/FeedExp3.md)": lambda n, measure, _: rankers.FeedExp3(n_items=n, measure=measure),
    "[FTPL](rankers/FTPL.md), full information": lambda n, measure, _: rankers.FTPL(
        n_items=n, horizon=ROUNDS, measure=measure
    ),
    "[Uniform](rankers/Uniform.md)": lambda n, *_: rankers.Uniform(n_items=n),
}
FEEDEXP3_ITEMS = 6  # it keeps a weight for every order


def measured(name: str, world: str) -> str:
    """The cell of one ranker and one world."""
    users, measure, cutoff = WORLDS[world]
    if "FeedExp3" in name and users.n_items > FEEDEXP3_ITEMS:
        return "too many items"

    def pair() -> tuple[Ranker, environments.FixedItems]:
        ranker = RANKERS[name](users.n_items, measure, cutoff)
        return ranker, environments.FixedItems(users, measure=measure)

    values = regrets(pair, rounds=ROUNDS, seeds=SEEDS)
    return cell(values)


def table() -> str:
    """All rankers on all worlds."""
    rows = [[name, *(measured(name, world) for world in WORLDS)] for name in RANKERS]
    return markdown(["", *WORLDS], rows)
