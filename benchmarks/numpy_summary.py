"""What the NumPy versions share: DCG's discounts, and the same summary of a run that `simulation.play` gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Played(NamedTuple):
    """The value of every round, and whether it explored."""

    values: np.ndarray
    explored: np.ndarray


class Summary(NamedTuple):
    """At each recorded round: total value, regret against the best fixed ranking so far, rounds that explored."""

    total: np.ndarray
    regret: np.ndarray
    explored: np.ndarray


def discounts(m: int) -> np.ndarray:
    """1 / log2(1 + rank) for ranks 1..m."""
    return 1 / np.log2(np.arange(2, m + 2))


def summary(played: Played, relevance: np.ndarray, record: np.ndarray) -> Summary:
    """`played` at the recorded rounds (counted from 1); all at once, after the last round."""
    total = played.values.cumsum()[record - 1]
    windows = np.add.reduceat(relevance, np.concatenate([[0], record[:-1]]), axis=0)
    gains = windows.cumsum(axis=0)
    gains.sort(axis=1)
    hindsight = gains[:, ::-1] @ discounts(relevance.shape[1])
    return Summary(total, hindsight - total, played.explored.cumsum()[record - 1])
