"""Rankers that learn from the relevance of the top, or of all items, beside plain NumPy and the bare cost of a sort."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import RenderableType

from benchmarks import bare, numpy_fixed_items
from benchmarks.timing import (
    BARE,
    FUSED,
    NUMPY,
    STEPWISE,
    Contender,
    Effort,
    Race,
    played,
    race,
    short,
    table,
    verdict,
)
from rankloop import environments, rankers
from rankloop.kernels import sorting

SIZES = (10, 100, 1_000, 100_000)
RANKERS: dict[str, Any] = {"RTop1F": rankers.RTop1F, "FTPL": rankers.FTPL, "TopFTRL": rankers.TopFTRL}
MOST_ITEMS = {"TopFTRL": 1_000}  # a round costs m^2 while nothing is clear
PLAIN: dict[str, Any] = {"RTop1F": numpy_fixed_items.RTop1F, "FTPL": numpy_fixed_items.FTPL}
AIM_OVER_NUMPY = 50.0  # at ten items
AIM_OVER_BARE = 0.5  # from a hundred on
_MOST_NUMBERS = 1 << 22  # in the relevance matrix


def horizon_for(m: int) -> int:
    """So long that RTop-1F explores (m^2 / T)^(1/3) of its rounds: 5%, and 20% at 100,000 items; not all are played."""
    return min(10_000 * m * m, 10**12)


def made_for(name: str, m: int) -> Callable[[], Any]:
    """Makes a ranker for `m` items, with a horizon if it has to know one."""
    more = {} if name == "TopFTRL" else {"horizon": horizon_for(m)}
    return partial(RANKERS[name], n_items=m, measure="dcg", **more)


def relevance_for(m: int) -> np.ndarray:
    """The paper's noisy half-relevant users, drawn beforehand: the same for all, and on nobody's clock."""
    users = environments.users.noisy_halves(n_items=m)
    rows = max(64, _MOST_NUMBERS // m)
    return (np.random.default_rng(2015).random((rows, m)) < users.tails[0, 0]).astype(np.int8)


def measure(effort: Effort, tell: Callable[[str], None], *, sizes: tuple[int, ...] = SIZES) -> list[Race]:
    """Race the contenders of each ranker at each size."""
    races = []
    for name in RANKERS:
        for m in (m for m in sizes if m <= MOST_ITEMS.get(name, m)):
            tell(f"fixed items: {name}, {m:,} items")
            relevance = relevance_for(m)
            row = f"{name}, {m:,} items"
            races.append(race(row, contenders(name, relevance), effort=effort, most_rounds=len(relevance)))
    return races


def contenders(name: str, relevance: np.ndarray) -> dict[str, Contender]:
    """Everybody who plays `name` on the rows of `relevance`, in the order of the table."""
    m = relevance.shape[1]
    users = environments.FixedItems(relevance, measure="dcg")
    make = made_for(name, m)
    return {
        FUSED: played(make, users),
        STEPWISE: played(make, users, fused=False),
        **({NUMPY: of_numpy(PLAIN[name], relevance.astype(np.float64))} if name in PLAIN else {}),
        BARE: bare_sort(m),
    }


def of_numpy(kind: Any, gains: np.ndarray) -> Contender:
    """A ranker in plain NumPy, new for every slice, on the same users."""

    def ready(rounds: int) -> Callable[[], object]:
        m = gains.shape[1]
        ranker = kind(n_items=m, horizon=horizon_for(m), rng=np.random.default_rng(1))
        return lambda: ranker.play(gains[:rounds])

    return ready


def bare_sort(m: int) -> Contender:
    """The least that a round can cost."""
    scores, items, scratch = np.empty(m), np.empty(m, np.int64), sorting.scratch(m)

    def ready(rounds: int) -> Callable[[], object]:
        words = np.random.default_rng(1).bit_generator.random_raw(rounds)
        return lambda: bare.draw_and_sort(words, scores, items, scratch)

    return ready


def tables(races: list[Race]) -> list[RenderableType]:
    """One table, and a line for each aim."""
    parts: list[RenderableType] = [
        table("Fixed items", races, (FUSED, STEPWISE, NUMPY, BARE), (STEPWISE, NUMPY, BARE))
    ]
    for one in (one for one in races if NUMPY in one.seconds):
        if one.row.endswith(", 10 items"):
            over, aim, other = one.over(NUMPY), AIM_OVER_NUMPY, "NumPy"
        else:
            over, aim, other = one.over(BARE), AIM_OVER_BARE, "bare"
        parts.append(verdict(over >= aim, f"{one.row}: {short(over)}x {other}, aim {aim:g}x"))
    return parts
