"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The result of a run at each recorded round. All sums are exact, however few rounds are recorded.

    Parameters
    ----------
    measure : str
        The measure of the rankings.
    is_loss : bool
        Whether a smaller value is better.
    seed : int
        The seed of the run.
    rounds : ndarray of int
        The recorded rounds, counted from 1. Every round of a short run; of a long one, evenly spread.
    value : ndarray of float
        Mean value a round since the round recorded before, so the value itself where every round is recorded.
    total : ndarray of float
        Cumulative value.
    regret : ndarray of float
        Cumulative, against the best fixed ranking in hindsight of the rounds so far; positive is worse, for
        losses and gains alike.
    explored : ndarray of int
        How many of the rounds so far showed a ranking to find something out.
    seconds : float
        How long the run took.
    counters : dict of str to int, optional
        What the ranker counts about itself, such as a solver's fallbacks.
    """

    measure: str
    is_loss: bool
    seed: int
    rounds: NDArray[np.int64]
    value: NDArray[np.float64]
    total: NDArray[np.float64]
    regret: NDArray[np.float64]
    explored: NDArray[np.int64]
    seconds: float
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def n_rounds(self) -> int:
        """How many rounds were played."""
        return int(self.rounds[-1])

    @property
    def total_value(self) -> float:
        """Summed value of all rounds."""
        return float(self.total[-1])

    @property
    def mean_value(self) -> float:
        """Mean value per round."""
        return self.total_value / self.n_rounds

    @property
    def total_regret(self) -> float:
        """Regret after the last round."""
        return float(self.regret[-1])

    @property
    def exploration_share(self) -> float:
        """Share of the rounds that explored."""
        return float(self.explored[-1]) / self.n_rounds
