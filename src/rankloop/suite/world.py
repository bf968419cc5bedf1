"""One world of the suite: users, how long they are played for, and what a ranker is measured against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.base import Environment
from rankloop.environments import FixedItems
from rankloop.environments.click_worlds import ScheduledWorlds
from rankloop.environments.users import Independent
from rankloop.simulation import Trace
from rankloop.simulation.tuning_folder import identity

SETTINGS = {
    "clicks": "clicks on fixed items",
    "relevance": "relevance of fixed items",
    "query-clicks": "clicks on documents",
    "query-labels": "labels of documents",
}


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
        """Rounds of a run.

        Parameters
        ----------
        full : bool
            In the full version, or else in the quick one.

        Returns
        -------
        int
            How many.
        """
        return self.full if full else self.quick

    @property
    def setting(self) -> str:
        """Who can play here: "clicks", "relevance", "query-clicks" or "query-labels"."""
        environment = self.make(self.quick)
        if environment.n_features is None:
            return environment.reveals
        return "query-clicks" if environment.reveals == "clicks" else "query-labels"

    def fingerprint(self, *, full: bool) -> str:
        """A hash of everything that defines the world, down to the last number of its data.

        Parameters
        ----------
        full : bool
            Of the full version, or else of the quick one.

        Returns
        -------
        str
            Sixteen hexadecimal digits.
        """
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
        """What the best in hindsight would have been worth, in a round of this run.

        Parameters
        ----------
        trace : Trace
            A run in this world.

        Returns
        -------
        float
            The mean value of a round.
        """
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
