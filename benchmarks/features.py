"""Rounds per second of the bandits over lists with features, beside plain NumPy and beside the bare O(d^2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks import bare_features
from benchmarks.numpy_features import LinearPBM
from benchmarks.timing import Contender, Effort, race
from rankloop import environments, rankers, simulation
from rankloop.kernels import sorting

SIZES = (10, 50, 136)  # features
ITEMS, POSITIONS, MOST_ROUNDS = 100, 5, 200_000
FUSED, NUMPY, BARE = "rankloop, fused", "NumPy, round by round", "bare: scores, sort, updates"
EXAMINATION = 1 / np.arange(1, POSITIONS + 1)
KINDS: dict[str, bool] = {"LinTSPBM": True, "LinUCBPBM": False}  # whether weights are drawn


@dataclass(frozen=True, slots=True)
class FeatureRates:
    """Rounds per second of one ranker with so many features."""

    ranker: str
    n_features: int
    rounds_per_second: dict[str, float]


def measure(effort: Effort, tell: Callable[[str], None]) -> list[FeatureRates]:
    """Race the ways of each ranker, with few features and with many."""
    found = []
    for d in SIZES:
        for name in KINDS:
            tell(f"features: {name}, {d} features")
            seconds = race(contenders(name, d), effort=effort, most_rounds=MOST_ROUNDS)
            found.append(FeatureRates(name, d, {way: 1 / spent for way, spent in seconds.items()}))
    return found


def catalogue(d: int) -> tuple[np.ndarray, environments.PositionBased]:
    """Items with so many features, and users whose attraction is linear in them."""
    rng = np.random.default_rng(1)
    features = rng.dirichlet(np.ones(d), size=ITEMS)
    attraction = features @ rng.random(d)
    return features, environments.PositionBased(attraction=attraction, examination=EXAMINATION)


def contenders(name: str, d: int) -> dict[str, Contender]:
    """The ranker, the same in NumPy, and the bare cost."""
    features, people = catalogue(d)

    def ours(rounds: int) -> Callable[[], object]:
        ranker = getattr(rankers, name)(features=features, examination=EXAMINATION)
        people.restart()
        return lambda: simulation.play(ranker, people, rounds=rounds, seed=1, points=10, progress=False)

    def plain(rounds: int) -> Callable[[], object]:
        ranker = LinearPBM(features, EXAMINATION, draws=KINDS[name], rng=np.random.default_rng(1))
        return lambda: ranker.play(people.clicks[0], rounds)

    return {FUSED: ours, NUMPY: plain, BARE: _bare(features, draws=KINDS[name])}


def _bare(features: np.ndarray, *, draws: bool) -> Contender:
    n, d = features.shape
    lists: Any = bare_features.draw if draws else bare_features.bounds
    scratch = (np.empty(n), np.empty(d), np.empty(n, np.int64), sorting.scratch(n))
    words = np.random.default_rng(1).bit_generator.random_raw(1_000)  # type: ignore[attr-defined]

    def ready(rounds: int) -> Callable[[], object]:
        inverse = np.eye(d)

        def run() -> None:
            lists(rounds, features, inverse, *scratch, words)
            bare_features.update(rounds, features, POSITIONS, inverse, scratch[1])

        return run

    return ready


def tables(found: list[FeatureRates]) -> list[RenderableType]:
    """One table: rounds per second, and the ratios."""
    table = Table(
        title=f"Clicks on {POSITIONS} of {ITEMS} items with features: rounds per second",
        title_justify="left",
        title_style="bold",
    )
    for name in ("features", ""):
        table.add_column(name)
    for way in (FUSED, NUMPY, BARE, "over NumPy", "of bare"):
        table.add_column(way, justify="right")
    for rates in found:
        rate = rates.rounds_per_second
        table.add_row(
            str(rates.n_features),
            rates.ranker,
            *(f"{rate[way]:,.0f}" for way in (FUSED, NUMPY, BARE)),
            f"{rate[FUSED] / rate[NUMPY]:.0f}x",
            f"{rate[FUSED] / rate[BARE]:.2f}",
        )
    return [table]
