"""Regret on worlds fitted to real queries: ten items, five positions, the examinations of that query's users."""

import warnings
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from cells import markdown, regrets

from rankloop import data, environments, logs, rankers
from rankloop.base import Ranker

LOG = "clicks/yandex_wscd/trainSample.jsonl.gz"
WORLDS, ITEMS, POSITIONS = 10, 10, 5
ROUNDS, SEEDS, FEW_SEEDS = 50_000, range(1, 4), range(1, 2)
SIZE = {"n_items": ITEMS, "n_positions": POSITIONS}
RANKERS: dict[str, Callable[[environments.PositionBased], Ranker]] = {
    "[PBMTS](rankers/PBMTS.md)": lambda _: rankers.PBMTS(**SIZE),
    "[PBMPIE](rankers/PBMPIE.md), examinations known": lambda world: rankers.PBMPIE(
        horizon=ROUNDS, examination=world.examination, **SIZE
    ),
    "the same, examinations estimated": lambda _: rankers.PBMPIE(horizon=ROUNDS, **SIZE),
    "[TopRank](rankers/TopRank.md)": lambda _: rankers.TopRank(horizon=ROUNDS, **SIZE),
    "[GRAB](rankers/GRAB.md)": lambda _: rankers.GRAB(**SIZE),
    '[FTRLPBM](rankers/FTRLPBM.md), `regulariser="hybrid", estimator="mean"`': lambda _: rankers.FTRLPBM(
        regulariser="hybrid", estimator="mean", **SIZE
    ),
    'the same, `estimator="mean"`': lambda _: rankers.FTRLPBM(estimator="mean", **SIZE),
    "the same, defaults": lambda _: rankers.FTRLPBM(**SIZE),
    "[PMED](rankers/PMED.md)": lambda _: rankers.PMED(growth=1.5, tolerance=0.05, **SIZE),
    'the same, `rates="fitted"`': lambda _: rankers.PMED(growth=1.5, tolerance=0.05, rates="fitted", **SIZE),
    "[CascadeKLUCB](rankers/CascadeKLUCB.md)": lambda _: rankers.CascadeKLUCB(**SIZE),
}


@cache
def models() -> tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]:
    """Attractions, in random order, and examinations, which do not rise, of the ten queries with the most pages."""
    log = data.read_clicks(data.find(LOG))
    rng, found = np.random.default_rng(1), []
    for query in sorted(log.query_ids, key=lambda query: -log.select(query=query).n_rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", logs.ClickModelWarning)
            fit = logs.fit_pbm(log.select(query=query, positions=POSITIONS, top=ITEMS))
        if len(fit.attraction) == ITEMS and len(found) < WORLDS:
            examination = np.minimum.accumulate(fit.examination / fit.examination[0])
            found.append((tuple(rng.permutation(fit.attraction)), tuple(examination)))
    return tuple(found)


def world(number: int) -> environments.PositionBased:
    """Fresh users of one query."""
    attraction, examination = models()[number]
    return environments.PositionBased(attraction=attraction, examination=examination)


def table() -> str:
    """Mean, median and worst regret over all worlds and seeds."""
    rows = []
    for name, make in RANKERS.items():
        seeds = FEW_SEEDS if isinstance(make(world(0)), rankers.PMED) else SEEDS  # its plans take long
        found = np.array([measured(make, number, seeds) for number in range(WORLDS)])
        rows.append([name, *(f"{value:,.0f}" for value in (found.mean(), np.median(found), found.max()))])
    return markdown(["", "mean", "median", "worst"], rows)


def measured(
    make: Callable[[environments.PositionBased], Ranker], number: int, seeds: Iterable[int]
) -> list[float]:
    """Regret of each run in one world."""
    return regrets(lambda: (make(world(number)), world(number)), rounds=ROUNDS, seeds=seeds)
