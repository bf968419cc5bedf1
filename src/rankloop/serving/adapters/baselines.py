"""The value of two baselines that do not learn, for the same users, from the same exploration rounds.

random: every order equally likely. frozen: always the order in which the items were given. Both are sums of gain
times a discount that is known beforehand, so what exploring revealed counts for them as it does for the ranker itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RANDOM, FROZEN, LISTS = range(3)  # rows of `sums`


class NeverLearning:
    """Running sums by measure."""

    def __init__(self, n_measures: int) -> None:
        self.sums = np.zeros((3, n_measures))
        self.changes = 0  # of the sums, since it was made

    def add(self, gain: Floats, discount: Floats, *, lists: int) -> None:
        """Gains of `lists` lists together, by measure and by item in the order given; discounts by position."""
        self.sums[RANDOM] += gain.sum(axis=1) * discount.mean(axis=1)
        self.sums[FROZEN] += (gain * discount).sum(axis=1)
        self.sums[LISTS] += lists
        self.changes += 1

    def add_seen(self, gain: Floats, items: NDArray[np.int64], discount: Floats) -> None:
        """Gains of the first few items of one list that was drawn at random: each stands for n / few."""
        n, seen = discount.shape[1], gain.shape[1]
        stretched = gain * (n / seen)
        self.sums[RANDOM] += stretched.sum(axis=1) * discount.mean(axis=1)
        self.sums[FROZEN] += (stretched * discount[:, items[:seen]]).sum(axis=1)
        self.sums[LISTS] += 1
        self.changes += 1

    def add_clicks(self, clicks: Floats, items: NDArray[np.int64], chances: Floats, *, n_items: int) -> None:
        """Clicks of one list, whose chance of having each item where it was is known."""
        weighed = clicks / chances
        self.sums[RANDOM] += weighed.sum() / n_items
        self.sums[FROZEN] += weighed[items == np.arange(len(items))].sum()
        self.sums[LISTS] += 1
        self.changes += 1

    def points(self, which: int, name: str) -> dict[str, float]:
        """Means for each list, flat, for a series; nothing before there are two lists."""
        random, frozen, lists = self.sums[:, which].tolist()
        if lists < 2:
            return {}
        return {f"{name}.random": random / lists, f"{name}.frozen": frozen / lists}
