"""The setting of Chen, Zhao and Li (2022), Experiments and Appendix E, shared by the experiments that reproduce it.

Ten items, five positions, three sets of click probabilities: items 0.03 apart, items 0.01 apart, and those of the
Yandex log. Each is played as it is, with the halves of the items changing places every phase ("periodic 1"), and with
items and positions turned round every phase ("periodic 2"). Rewards are expected clicks (erratum C13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.figure import Figure

from rankloop import environments, plotting
from rankloop.environments.click_worlds import ClickWorlds, PositionBased
from rankloop.experiments.experiment import Job, Plain, seeded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER = (
    "C. Chen, C. Zhao and S. Li, Simultaneously learning stochastic and adversarial bandits under the "
    "position-based model, AAAI 2022"
)
SOURCES = {"gap-0.03": "gap 0.03", "gap-0.01": "gap 0.01", "yandex": "Yandex"}
STOCHASTIC, PERIODIC_1, PERIODIC_2 = "stochastic", "periodic 1", "periodic 2"
KINDS = (STOCHASTIC, PERIODIC_1, PERIODIC_2)
EXCHANGING, REVERSING = "halves exchanged", "all reversed"  # the same two, as the comparisons call them
HORIZON, PHASE = 1_000_000, 100_000
QUICK_HORIZON, QUICK_PHASE = 100_000, 10_000
# On Yandex with halves exchanged runs of FTRL-PBM have a deviation of 2.5 % of the reward, and ten decide nothing.
VARYING_RUNS = 40
N_ITEMS, N_POSITIONS = 10, 5
POINTS = 2_000  # rounds that a shared run of FTRL-PBM records; each experiment takes those that it shows


def changing(still: PositionBased, change: str, *, phase: int) -> ClickWorlds:
    """Users that stay the same, or alternate every phase."""
    if change == STOCHASTIC:
        return still
    exchanging = change in (PERIODIC_1, EXCHANGING)
    return (environments.Periodic.exchanging if exchanging else environments.Periodic.reversing)(
        still, phase=phase
    )


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
        """Its name."""
        return f"{SOURCES[self.source]}, {self.kind}"

    @property
    def where(self) -> dict[str, str]:
        """What its rows, and the settings of its jobs, say of it."""
        return {"source": self.source, "kind": self.kind}

    def still(self) -> PositionBased:
        """The users of its first phase."""
        return cast(PositionBased, environments.named(self.source))

    def environment(self, *, phase: int = PHASE) -> ClickWorlds:
        """Fresh users."""
        return changing(self.still(), self.kind, phase=phase)

    def levels(self) -> Levels:
        """The value of a round without learning, over whole phases."""
        environment = self.environment()
        clicks = environment.clicks
        mean = clicks.mean(axis=0)
        fixed = mean[np.arange(N_POSITIONS), environment.best().items].sum()
        each = [
            world[np.arange(N_POSITIONS), best].sum()
            for world, best in zip(clicks, environment.best_lists, strict=True)
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

    def lost(self) -> float:
        """What a random list loses in a round against the best list that never changes."""
        return self.fixed - self.random


WORLDS = tuple(World(source, kind) for source in SOURCES for kind in KINDS)


def world_job(
    name: str, world: World, *, rounds: int, phase: int, seed: int, cost: float = 1.0, **more: Plain
) -> Job:
    """A job in one of the nine worlds, which its settings name."""
    return seeded(name, seed=seed, cost=cost * rounds, **world.where, rounds=rounds, phase=phase, **more)


def played_in(job: Job) -> tuple[World, ClickWorlds]:
    """The world that a job's settings name, and fresh users of it."""
    world = World(job.settings["source"], job.settings["kind"])
    return world, world.environment(phase=job.settings["phase"])


def grid(**words: Any) -> tuple[Figure, dict[World, Axes]]:
    """A figure with a panel for each of the nine worlds, three by three."""
    figure, panels = plotting.canvas(rows=3, columns=3, width=16.0, height=11.5, **words)
    return figure, dict(zip(WORLDS, panels, strict=True))
