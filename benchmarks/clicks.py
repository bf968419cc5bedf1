"""Rankers that learn from clicks: FTRL-PBM beside the paper's own method in SciPy, and all of them at one size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import RenderableType

from benchmarks import bare, numpy_rivals, scipy_ftrl_pbm
from benchmarks.timing import (
    BARE,
    FUSED,
    NUMPY,
    STEPWISE,
    Contender,
    Effort,
    Race,
    going_on,
    played,
    race,
    short,
    table,
    verdict,
)
from rankloop import environments, rankers, simulation

SIZES = ((10, 5), (50, 10), (100, 10), (1_000, 10), (1_000, 50), (10_000, 10))
SCIPY = "SciPy"
SCIPY_UP_TO = 100  # items; beyond, a round of the paper's method takes from minutes to days
K = 1_000  # steps of Frank-Wolfe; fewer are quicker, and wrong
SETTLED = 5_000  # rounds before the clock starts
AIMS_OVER_SCIPY = {(10, 5): 8_000.0, (100, 10): 100_000.0}
AIM_LARGEST = 5_000 / 1_000_000  # rounds at (10000, 10) for each at (10, 5)

WORLD, HORIZON = "gap-0.03", 1_000_000
_SIZE: dict[str, Any] = {"n_items": 10, "n_positions": 5}
_KNOWN = 1 / np.arange(1, 6)
RANKERS: dict[str, Callable[[], Any]] = {
    "TopRank": partial(rankers.TopRank, horizon=HORIZON, **_SIZE),
    "MW": partial(rankers.MW, horizon=HORIZON, **_SIZE),
    "RankedExp3": partial(rankers.RankedExp3, horizon=HORIZON, **_SIZE),
    "PBMPIE, examinations known": partial(rankers.PBMPIE, horizon=HORIZON, examination=_KNOWN, **_SIZE),
    "PBMPIE": partial(rankers.PBMPIE, horizon=HORIZON, **_SIZE),
    "PMED, between two plans": partial(rankers.PMED, every=10**9, **_SIZE),
    "FTRLPBM": partial(rankers.FTRLPBM, **_SIZE),
    "FTRLPBM, hybrid, mean": partial(rankers.FTRLPBM, regulariser="hybrid", estimator="mean", **_SIZE),
    "PBMTS": partial(rankers.PBMTS, **_SIZE),
    "GRAB": partial(rankers.GRAB, **_SIZE),
    "CascadeKLUCB": partial(rankers.CascadeKLUCB, **_SIZE),
}
PLAIN: dict[str, Any] = {"TopRank": numpy_rivals.TopRank, "MW": numpy_rivals.MW}


def users_for(n: int, m: int) -> environments.PositionBased:
    """Items of all kinds, positions looked at less and less: alpha from 0.95 to 0.05, beta = 1 / j."""
    return environments.PositionBased(
        attraction=np.linspace(0.95, 0.05, n), examination=1 / np.arange(1, m + 1)
    )


def settled(n: int, m: int) -> tuple[rankers.FTRLPBM, environments.PositionBased]:
    """A ranker that has learnt a little, and its users."""
    ranker, users = rankers.FTRLPBM(n_items=n, n_positions=m), users_for(n, m)
    simulation.play(ranker, users, rounds=SETTLED, seed=1, points=1, progress=False)
    return ranker, users


def measure(
    effort: Effort,
    tell: Callable[[str], None],
    *,
    sizes: tuple[tuple[int, int], ...] = SIZES,
    names: tuple[str, ...] = tuple(RANKERS),
) -> list[Race]:
    """Race FTRL-PBM at each size, then every ranker from its beginning."""
    races = []
    for n, m in sizes:
        tell(f"clicks: FTRLPBM, {n:,} items, {m} positions")
        ranker, users = settled(n, m)
        contenders = {FUSED: going_on(ranker, users), BARE: two_passes(ranker)}
        if n <= SCIPY_UP_TO:
            contenders[SCIPY] = in_scipy(users)
        races.append(race(_row(n, m), contenders, effort=effort))
    users = environments.named(WORLD)  # type: ignore[assignment]
    for name in names:
        tell(f"clicks: {name}")
        contenders = {
            FUSED: played(RANKERS[name], users),
            STEPWISE: played(RANKERS[name], users, fused=False),
        }
        if name in PLAIN:
            contenders[NUMPY] = in_numpy(PLAIN[name], users.clicks[0])
        races.append(race(name, contenders, effort=effort))
    return races


def _row(n: int, m: int) -> str:
    return f"FTRLPBM, {n:,} items, {m} positions"


def two_passes(ranker: rankers.FTRLPBM) -> Contender:
    """x at the present multipliers, twice a round, in a plain loop."""
    L, u, v, x = (part.copy() for part in (ranker.state.L_hat, ranker.state.u, ranker.state.v, ranker.x))
    columns = np.empty(len(v))
    return lambda rounds: lambda: bare.two_passes(rounds, L, u, v, x, columns)


def in_scipy(users: environments.PositionBased) -> Contender:
    """Whole rounds of the paper's method, one ranker that goes on."""
    clicks = users.clicks[0].T
    plain = scipy_ftrl_pbm.FTRLPBM(
        n_items=users.n_items, n_positions=users.n_positions, K=K, rng=np.random.default_rng(1)
    )
    return lambda rounds: lambda: plain.play(clicks, rounds)


def in_numpy(kind: Any, clicks: np.ndarray) -> Contender:
    """A rival in plain NumPy, new for every slice."""

    def ready(rounds: int) -> Callable[[], object]:
        ranker = kind(horizon=HORIZON, rng=np.random.default_rng(1), **_SIZE)
        return lambda: ranker.play(clicks, rounds)

    return ready


def tables(races: list[Race]) -> list[RenderableType]:
    """A table of sizes, a table of rankers, and a line for each aim."""
    sizes = {one.row: one for one in races if BARE in one.seconds}
    rivals = [one for one in races if BARE not in one.seconds]
    parts: list[RenderableType] = [
        table("FTRLPBM", list(sizes.values()), (FUSED, SCIPY, BARE), (SCIPY, BARE)),
        table("Clicks, 10 items on 5 positions", rivals, (FUSED, STEPWISE, NUMPY), (NUMPY,)),
    ]
    for size, aim in AIMS_OVER_SCIPY.items():
        one = sizes.get(_row(*size))
        if one is not None:
            over = one.over(SCIPY)
            parts.append(verdict(over >= aim, f"{one.row}: {over:,.0f}x the paper's method, aim {aim:,.0f}x"))
    small, large = sizes.get(_row(10, 5)), sizes.get(_row(10_000, 10))
    if small is not None and large is not None:
        share = small.seconds[FUSED] / large.seconds[FUSED]
        said = f"{short(1e6 * share)} rounds at (10,000, 10) for a million at (10, 5), aim 5,000"
        parts.append(verdict(share >= AIM_LARGEST, said))
    return parts
