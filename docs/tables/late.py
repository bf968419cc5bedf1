"""Regret of FTRLPBM where feedback is late by a number of rounds."""

from collections import deque
from collections.abc import Callable

import numpy as np
from cells import cell, markdown

from rankloop import environments, rankers
from rankloop.base import Ranker

ROUNDS, SEEDS, DELAYS = 20_000, range(1, 4), (0, 1, 100, 10_000)
SIZE = {"n_items": 10, "n_positions": 5}
RANKERS: dict[str, Callable[[], Ranker]] = {
    "defaults": lambda: rankers.FTRLPBM(**SIZE),
    '`regulariser="hybrid", estimator="mean"`': lambda: rankers.FTRLPBM(
        regulariser="hybrid", estimator="mean", **SIZE
    ),
}


def regret(ranker: Ranker, delay: int, seed: int) -> float:
    """Where users stay, gap 0.03: what a list's clicks are learnt from `delay` rounds after they should have been."""
    people = environments.named("gap-0.03")
    click, rng, open_lists = people.clicks[0], np.random.default_rng(seed), deque()
    places, value = np.arange(SIZE["n_positions"]), 0.0
    for _ in range(ROUNDS):
        shown = ranker.rank(rng=rng)
        chances = click[places, shown.items]
        value += float(chances.sum())
        open_lists.append((shown, (rng.random(len(places)) < chances).astype(np.float64)))
        if len(open_lists) > delay:
            ranker.learn(*open_lists.popleft())
    return ROUNDS * float(click[places, people.best().items].sum()) - value


def table() -> str:
    """Each ranker with each delay."""
    rows = [
        [name, *(cell([regret(make(), delay, seed) for seed in SEEDS]) for delay in DELAYS)]
        for name, make in RANKERS.items()
    ]
    return markdown(
        ["", "in time", "1 round late", *(f"{delay:,} rounds late" for delay in DELAYS[2:])], rows
    )
