"""The setting of Chen, Zhao and Li (2022), Experiments and Appendix E, shared by the experiments that replay it.

Ten items, five positions, three sets of click probabilities: items 0.03 apart, items 0.01 apart, and those of the
Yandex log. Each is played as it is, with the halves of the items changing places every phase ("periodic 1"), and with
items and positions turned round every phase ("periodic 2"). Rewards are expected clicks (erratum C13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop import environments
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.environments.position_based import PositionBased

PAPER = (
    "C. Chen, C. Zhao and S. Li, Simultaneously learning stochastic and adversarial bandits under the "
    "position-based model, AAAI 2022"
)
SOURCES = {"gap-0.03": "gap 0.03", "gap-0.01": "gap 0.01", "yandex": "Yandex"}
STOCHASTIC, PERIODIC_1, PERIODIC_2 = "stochastic", "periodic 1", "periodic 2"
KINDS = (STOCHASTIC, PERIODIC_1, PERIODIC_2)
HORIZON, PHASE = 1_000_000, 100_000
QUICK_HORIZON, QUICK_PHASE = 100_000, 10_000
N_ITEMS, N_POSITIONS = 10, 5


@dataclass(frozen=True, slots=True)
class World:
    """One of the nine worlds.

    >>> World("yandex", "periodic 1").label
    'Yandex, periodic 1'
    """

    source: str
    kind: str

    @property
    def label(self) -> str:
        """How people call it."""
        return f"{SOURCES[self.source]}, {self.kind}"

    def still(self) -> PositionBased:
        """The users of its first phase."""
        return cast(PositionBased, environments.named(self.source))

    def environment(self, *, phase: int = PHASE) -> ClickWorlds:
        """Fresh users."""
        if self.kind == PERIODIC_1:
            return environments.Periodic.exchanging(self.still(), phase=phase)
        if self.kind == PERIODIC_2:
            return environments.Periodic.reversing(self.still(), phase=phase)
        return self.still()

    def levels(self) -> Levels:
        """What a round is worth to those who do not learn, over whole phases."""
        people = self.environment()
        clicks = people.clicks
        mean = clicks.mean(axis=0)
        fixed = mean[np.arange(N_POSITIONS), people.best().items].sum()
        each = [
            world[np.arange(N_POSITIONS), best].sum()
            for world, best in zip(clicks, people.best_lists, strict=True)
        ]
        return Levels(
            random=float(mean.mean(axis=1).sum()), fixed=float(fixed), each_phase=float(np.mean(each))
        )


@dataclass(frozen=True, slots=True)
class Levels:
    """Mean reward of a random list, of the best list that never changes, and of the best list of each phase."""

    random: float
    fixed: float
    each_phase: float


WORLDS = tuple(World(source, kind) for source in SOURCES for kind in KINDS)


def mean_and_error(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """The mean over runs and its standard error.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    runs = np.asarray(values, dtype=np.float64)
    return float(runs.mean()), float(runs.std(ddof=1) / np.sqrt(len(runs)))


def ends(results: pl.DataFrame, column: str, **chosen: str | int | float) -> NDArray[np.float64]:
    """`column` in the last row of every run whose settings are `chosen`, by seed."""
    found = results.filter(*(pl.col(key) == value for key, value in chosen.items()))
    if found.is_empty():
        raise ValueError(f"no rows with {chosen}")
    last = found.filter(pl.col("round") == pl.col("round").max())
    return last.sort("seed")[column].to_numpy()
