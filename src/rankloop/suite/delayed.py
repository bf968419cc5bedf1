"""Feedback that comes late: a ranker that learns what happened so many rounds ago."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.base import Ranker, Ranking
from rankloop.rankers import Uniform


class Delayed(Ranker):
    """A ranker whose feedback waits until `delay` rounds have passed. What still waits at the end is never learnt.

    The queue is not part of `state`, so a delayed ranker is for simulations only.
    """

    def __init__(self, ranker: Ranker, *, delay: int) -> None:
        self.inner = ranker
        self.delay = delay
        self.waiting: deque[tuple[Ranking, NDArray[Any]]] = deque()
        self.feedback, self.state = ranker.feedback, ranker.state
        self.n_positions, self.n_items, self.n_features = (
            ranker.n_positions,
            ranker.n_items,
            ranker.n_features,
        )
        self.max_grade = ranker.max_grade

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        return self.inner.rank(context, rng=rng)

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        self.waiting.append((ranking, np.array(feedback)))
        if len(self.waiting) > self.delay:
            self.inner.learn(*self.waiting.popleft())

    def current(self, context: Any = None) -> NDArray[np.int64]:
        return self.inner.current(context)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(Uniform(n_items=3), delay=2)
