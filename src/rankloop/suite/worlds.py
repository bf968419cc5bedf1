"""The worlds of the suite: users, how long they are played for, and what a ranker is measured against.

A change to any of them is another suite: raise `VERSION` with it. Items are numbered in an order that has nothing to do
with how good they are, so that nobody wins by showing the first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop import data
from rankloop.base import Environment
from rankloop.environments import (
    Attacked,
    ClickedQueries,
    ClickUsers,
    Corrupted,
    Drifting,
    FixedItems,
    Periodic,
    PositionBased,
    Promoted,
    QueryStream,
    users,
)
from rankloop.environments.click_worlds import ScheduledWorlds
from rankloop.environments.users import Independent
from rankloop.feedback import (
    CascadeModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from rankloop.simulation import Trace
from rankloop.simulation.runs import identity

VERSION = 1
SETTINGS = {
    "clicks": "clicks on fixed items",
    "relevance": "relevance of fixed items",
    "query-clicks": "clicks on documents",
    "query-labels": "labels of documents",
}

Floats = NDArray[np.float64]

_FALLING = 1 / np.arange(1, 6)  # examination of five positions
_MIXED = np.array([7, 2, 9, 4, 0, 5, 8, 1, 6, 3])  # where the ten items stand


@dataclass(frozen=True, eq=False)
class World:
    """A world of the suite.

    Parameters
    ----------
    name : str
        Its name, unique in the suite.
    capability : str
        What a ranker must be capable of here.
    description : str
        One line about the users.
    make : callable
        Takes the number of rounds and makes the environment.
    quick : int, optional
        Rounds of a run in the quick version.
    full : int, optional
        Rounds of a run in the full version.
    delay : int, optional
        How many rounds later the ranker gets its feedback.
    by_phase : bool, optional
        Whether the best in hindsight is the best list of each phase; otherwise it is the best fixed list.
    features : ndarray of float, optional
        Items x features, for rankers that take them.
    """

    name: str
    capability: str
    description: str
    make: Callable[[int], Environment]
    quick: int = 20_000
    full: int = 500_000
    delay: int = 0
    by_phase: bool = False
    features: NDArray[np.float64] | None = None

    def rounds(self, *, full: bool) -> int:
        """Rounds of a run, in the `full` version or else in the quick one."""
        return self.full if full else self.quick

    def users(self, rounds: int, *, named: bool) -> Environment:
        """Fresh users for so many `rounds`; where requests can say which query they are about, they do if `named`."""
        environment = self.make(rounds)
        if named and isinstance(environment, ClickedQueries):
            return ClickedQueries(**environment.get_params() | {"named": True})
        return environment

    @property
    def setting(self) -> str:
        """Who can play here: "clicks", "relevance", "query-clicks" or "query-labels"."""
        environment = self.make(self.quick)
        if environment.n_features is None:
            return environment.reveals
        return "query-clicks" if environment.reveals == "clicks" else "query-labels"

    def fingerprint(self, *, full: bool) -> str:
        """A hash of everything that defines the world, `full` or quick, down to the last number of its data."""
        rounds = self.rounds(full=full)
        return identity(
            {
                "name": self.name,
                "capability": self.capability,
                "environment": self.make(rounds),
                "rounds": rounds,
                "delay": self.delay,
                "by_phase": self.by_phase,
                "features": self.features,
            }
        )

    def best(self, trace: Trace) -> float:
        """What the best in hindsight would have been worth, in a round of the run that `trace` is of."""
        rounds = trace.n_rounds
        if not self.by_phase:
            return (trace.total_value + trace.total_regret) / rounds
        environment = self.make(rounds)
        if isinstance(environment, ScheduledWorlds):
            return float(environment.ideal(rounds)) / rounds
        return _expected_best(environment, rounds)


def _expected_best(environment: Environment, rounds: int) -> float:
    """The expected value of the best list of each phase, for users who find items relevant or not."""
    if not (isinstance(environment, FixedItems) and isinstance(environment.users, Independent)):
        raise ValueError(f"by_phase needs an environment with phases, got {environment!r}")
    users = environment.users
    phase = np.arange(rounds) // users.period % len(users.tails)
    counts = np.bincount(phase, minlength=len(users.tails))
    discount = environment.scored.discount(environment.n_items)
    values = [float(np.sort(tail[0])[::-1] @ discount) for tail in users.tails]
    return float(counts @ values) / rounds


def _mixed(attraction: ArrayLike) -> Floats:
    """Ten attractions, best first, given to items in the order of the suite."""
    mixed = np.empty(10)
    mixed[_MIXED] = attraction
    return mixed


def _ten(attraction: ArrayLike, examination: Floats = _FALLING) -> PositionBased:
    return PositionBased(attraction=_mixed(attraction), examination=examination)


def _clear() -> PositionBased:
    return _ten(np.linspace(0.8, 0.17, 10))


def _turned() -> PositionBased:
    return _ten(np.linspace(0.17, 0.8, 10))


def _drift(rounds: int) -> Environment:
    return Drifting(_clear(), to=_turned(), steps=20, phase=max(1, rounds // 20))


def _reversal(rounds: int) -> Environment:
    return Periodic([_clear(), _turned()], phase=max(1, rounds // 4))


def _corrupted(share: float) -> Callable[[int], Environment]:
    return lambda rounds: Corrupted(_ten(np.linspace(0.95, 0.68, 10)), share=share)


def _catalogue(n_items: int) -> tuple[Floats, Floats]:
    """Features of items, in 64ths so that sums are exact on any machine, and attractions that are linear in them."""
    rng = np.random.default_rng([n_items, 1])
    features = rng.integers(0, 65, (n_items, 6)) / 64
    weights = np.array([24, 16, 12, 8, 3, 0]) / 64
    merit = np.zeros(n_items)
    for column, weight in zip(features.T, weights, strict=True):
        merit += weight * column
    return np.concatenate([features, np.ones((n_items, 1))], axis=1), 0.05 + 0.6 * merit


def _scale(n_items: int, *, quick: int, full: int) -> World:
    features, attraction = _catalogue(n_items)
    return World(
        f"scale-{n_items}",
        "scale",
        f"{n_items:,} items with 7 features, 5 shown",
        lambda rounds: PositionBased(attraction=attraction, examination=_FALLING),
        quick=quick,
        full=full,
        features=features,
    )


def _by_model(name: str, model: Callable[[Floats], ClickModel], description: str) -> World:
    attraction = _mixed(np.linspace(0.5, 0.05, 10))
    return World(
        f"clicks-{name}",
        "other click models",
        description,
        lambda rounds: ClickUsers(model(attraction), n_positions=5),
    )


def _browsing(attraction: Floats) -> ClickModel:
    position, last = np.indices((5, 5))
    return UserBrowsingModel(attraction, 1 / (1 + 0.5 * np.maximum(position - last, 0)))


def _trusting(attraction: Floats) -> ClickModel:
    return TrustBiasModel(attraction, _FALLING, np.linspace(0.95, 0.75, 5), 0.5 * _FALLING)


_CASCADE = np.array([0.3, 0.28, 0.26, 0.24, 0.22, 0.1, 0.09, 0.08, 0.07, 0.06])
_PROMOTED, _VICTIMS = int(_MIXED[9]), tuple(int(item) for item in _MIXED[:3])


def _promoted(rounds: int) -> Environment:
    return Promoted(CascadeModel(_mixed(_CASCADE)), item=_PROMOTED, share=0.2, n_positions=5)


def _attacked(rounds: int) -> Environment:
    model = CascadeModel(_mixed(_CASCADE))
    return Attacked(model, item=_PROMOTED, victims=_VICTIMS, budget=200, n_positions=5)


def _relevant(chances: ArrayLike, measure: str = "dcg") -> Callable[[int], Environment]:
    return lambda rounds: FixedItems(users.bernoulli(_mixed(chances)), measure=measure)


def _switching(rounds: int) -> Environment:
    chances = np.linspace(0.9, 0.1, 10)
    phases = users.switching([_mixed(chances), _mixed(chances[::-1])], period=max(1, rounds // 4))
    return FixedItems(phases, measure="dcg")


@functools.cache
def _queries() -> data.Dataset:
    return data.synthetic_letor(n_queries=300, n_features=10, seed=7, list_length=(5, 20))


def _clicked(kind: str) -> Callable[[int], Environment]:
    return lambda rounds: ClickedQueries(_queries(), clicks=kind)


WORLDS: tuple[World, ...] = (
    World(
        "noise-rare-clicks",
        "noise",
        "an item is clicked by 1 to 10 of 100 users who look",
        lambda rounds: _ten(np.linspace(0.10, 0.01, 10)),
    ),
    World(
        "gap-0.03", "small gaps", "items 0.03 apart (2022)", lambda rounds: _ten(0.95 - 0.03 * np.arange(10))
    ),
    World(
        "gap-0.01", "small gaps", "items 0.01 apart (2022)", lambda rounds: _ten(0.95 - 0.01 * np.arange(10))
    ),
    World(
        "ties",
        "ties",
        "three kinds of items, equal within each",
        lambda rounds: _ten(np.repeat([0.6, 0.45, 0.3], [2, 4, 4])),
    ),
    World(
        "positions-mixed",
        "unknown position bias",
        "the third position is examined most, then the fifth",
        lambda rounds: _ten(np.linspace(0.8, 0.17, 10), np.array([0.5, 0.2, 1.0, 0.1, 0.75])),
    ),
    World("drift", "drift", "the order of the items is reversed gradually", _drift, by_phase=True),
    World(
        "reversal",
        "reversal",
        "the order of the items is reversed three times",
        _reversal,
        by_phase=True,
    ),
    *(
        World(
            f"corruption-{percent}",
            "corruption",
            f"{percent} % of the users have items and positions reversed",
            _corrupted(percent / 100),
        )
        for percent in (1, 3, 10)
    ),
    World(
        "delay-200",
        "delay",
        "feedback comes 200 rounds late",
        lambda rounds: _clear(),
        quick=2_000,
        full=20_000,
        delay=200,
    ),
    _scale(10, quick=20_000, full=500_000),
    _scale(100, quick=20_000, full=500_000),
    _scale(1_000, quick=10_000, full=200_000),
    _scale(10_000, quick=2_000, full=50_000),
    _by_model("cascade", CascadeModel, "users leave with the first click"),
    _by_model(
        "dependent",
        lambda attraction: DependentClickModel(attraction, np.linspace(0.9, 0.5, 5)),
        "users may read on after a click (dependent click model)",
    ),
    _by_model("browsing", _browsing, "users look near their last click (user browsing model)"),
    _by_model(
        "bayesian",
        lambda attraction: DynamicBayesianModel(attraction, 0.2 + attraction, 0.9),
        "users leave once satisfied, or lose patience (dynamic Bayesian model)",
    ),
    _by_model("trust", _trusting, "users click what does not attract them, most at the top (trust bias)"),
    World("fraud-promoted", "click fraud", "a fifth of the users is fake and clicks one item", _promoted),
    World(
        "fraud-attacked",
        "click fraud",
        "an attacker hides the clicks of 200 users on the three best items",
        _attacked,
        quick=50_000,
        full=50_000,
    ),
    World(
        "relevance-noise",
        "noise",
        "items are relevant to 30 to 60 of 100 users",
        _relevant(np.linspace(0.6, 0.3, 10)),
    ),
    World(
        "relevance-gap",
        "small gaps",
        "items are relevant to 90 of 100 users, or one less, ...",
        _relevant(0.9 - 0.01 * np.arange(10)),
    ),
    World(
        "relevance-ties",
        "ties",
        "three items of each kind are equal; precision of the first three",
        _relevant(np.repeat([0.7, 0.5, 0.3], [3, 3, 4]), "precision@3"),
    ),
    World(
        "relevance-reversal",
        "reversal",
        "the order of the items is reversed three times",
        _switching,
        by_phase=True,
    ),
    World(
        "relevance-five-items",
        "scale",
        "five items, relevant to 10 to 90 of 100 users",
        lambda rounds: FixedItems(users.bernoulli([0.3, 0.9, 0.1, 0.7, 0.5]), measure="dcg"),
    ),
    World(
        "documents-informational",
        "features",
        "informational users click on the documents of 300 queries",
        _clicked("informational"),
        quick=5_000,
        full=100_000,
    ),
    World(
        "documents-near-random",
        "noise",
        "near-random users click on the documents of 300 queries",
        _clicked("near-random"),
        quick=5_000,
        full=100_000,
    ),
    World(
        "documents-labels",
        "features",
        "labels of the documents of 300 queries are revealed",
        lambda rounds: QueryStream(_queries(), measure="ndcg@10"),
        quick=5_000,
        full=100_000,
    ),
)


def capabilities() -> dict[str, list[World]]:
    """The worlds of each capability, in the order of the suite.

    Examples
    --------
    >>> [world.name for world in capabilities()["corruption"]]
    ['corruption-1', 'corruption-3', 'corruption-10']
    """
    by_capability: dict[str, list[World]] = {}
    for world in WORLDS:
        by_capability.setdefault(world.capability, []).append(world)
    return by_capability
