"""A ranker whose best argument is known, for the search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankloop import environments, rankers
from rankloop.base import Ranking
from rankloop.ranges import Between, Range


class Dial(rankers.Uniform):
    """Shows the better of two items first, with a chance that is largest where `dial` is 10."""

    fusable = False

    def __init__(self, *, n_items: int = 2, dial: float = 0.1, other: float = 1.0) -> None:
        super().__init__(n_items=n_items)
        if not dial > 0:
            raise ValueError(f"dial must be positive, got {dial}")
        self.chance = math.exp(-((math.log10(dial) - 1.0) ** 2))

    def tunable(self) -> Mapping[str, Range]:
        return {"dial": Between(0.01, 1000.0)}

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        good = rng.random() < self.chance
        return Ranking(np.array([0, 1] if good else [1, 0]))

    def learn(self, ranking: Ranking, feedback: Any) -> None:
        return


def world(measure: str = "dcg") -> environments.FixedItems:
    return environments.FixedItems(environments.users.bernoulli([0.9, 0.1]), measure=measure)
