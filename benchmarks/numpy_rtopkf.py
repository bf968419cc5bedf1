"""RTop-kF with each surrogate, and ListNet, in plain NumPy: one round after the other, as one writes it with care.

Nothing loops over documents or features in Python. The queries are taken apart beforehand: features in float64, which
NumPy multiplies with the weights without a conversion, and the gain of every document, so that a value is one product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rankloop import environments

RADIUS, EPSILON = 10.0, 1.0
HIGHEST_EXPONENT = 20.0


class Query(NamedTuple):
    """The documents of a query, their labels, and the value of a ranking as offset + discount . gains."""

    X: np.ndarray
    R: np.ndarray
    gains: np.ndarray
    offset: float


class Queries(NamedTuple):
    """All queries of a stream, and the discount of each position up to the cut-off."""

    each: list[Query]
    discount: np.ndarray

    @classmethod
    def of(cls, stream: environments.QueryStream) -> Queries:
        """The same queries, as NumPy likes them."""
        p = stream.params
        X = p.features.astype(np.float64)
        parts = enumerate(slice(*ends) for ends in pairwise(p.offsets.tolist()))
        each = [Query(X[rows], p.relevance[rows], p.gains[rows], p.query_offset[i]) for i, rows in parts]
        return cls(each, p.discount[: p.cutoff])


class Seen(NamedTuple):
    """What a round leaves to learn from: scores, greedy and shown order, gamma, and the labels of the query.

    Whoever is told only the top looks at no other label.
    """

    X: np.ndarray
    s: np.ndarray
    greedy: np.ndarray
    shown: np.ndarray
    gamma: float
    R: np.ndarray

    def chance_of_top(self) -> float:
        """How likely the document on top was to be there (erratum B1)."""
        return (1 - self.gamma) * (self.shown[0] == self.greedy[0]) + self.gamma / len(self.shown)


def squared(seen: Seen) -> np.ndarray | float:
    """2 X^T s, which is known, less the estimate of 2 X^T R."""
    top = seen.shown[0]
    return 2 * (seen.s @ seen.X) - 2 * seen.R[top] / seen.chance_of_top() * seen.X[top]


def kl(seen: Seen) -> np.ndarray | float:
    """Exponentials of score and label, of the document on top."""
    top = seen.shown[0]
    surprise = np.exp(min(seen.s[top], HIGHEST_EXPONENT)) - np.exp(min(seen.R[top], HIGHEST_EXPONENT))
    return surprise / seen.chance_of_top() * seen.X[top]


def ranksvm(seen: Seen) -> np.ndarray | float:
    """The hinge of the two documents on top, the better of which should lead by 1."""
    n = len(seen.shown)
    if n < 2:
        return 0.0
    better, worse = seen.shown[:2].tolist()
    if seen.R[better] < seen.R[worse]:
        better, worse = worse, better
    if not (seen.R[better] > seen.R[worse] and 1 + seen.s[worse] > seen.s[better]):
        return 0.0
    chance = (1 - seen.gamma) * ({better, worse} == set(seen.greedy[:2].tolist()))
    chance += 2 * seen.gamma / (n * (n - 1))  # erratum B2
    return (seen.X[worse] - seen.X[better]) / chance


def smooth_dcg(seen: Seen) -> np.ndarray | float:
    """The softmax's share of the document on top, downhill for a gain."""
    top = seen.shown[0]
    q = np.exp((seen.s - seen.s.max()) / EPSILON)
    q /= q.sum()
    size = (2 ** seen.R[top] - 1) * q[top] / (EPSILON * seen.chance_of_top())
    return size * (q @ seen.X - seen.X[top])


def listnet(seen: Seen) -> np.ndarray | float:
    """Softmax of the scores less softmax of the labels, all of them."""
    p, q = np.exp(seen.s - seen.s.max()), np.exp(seen.R - seen.R.max())
    return (p / p.sum() - q / q.sum()) @ seen.X


class Descent:
    """A linear ranker that takes a step against a gradient each round: Algorithm 1 of 2016 for any of the above."""

    def __init__(
        self,
        gradient: Callable[[Seen], np.ndarray | float],
        *,
        n_features: int,
        learning_rate: tuple[float, float],
        exploration: tuple[float, float] | None,
        rng: np.random.Generator,
    ) -> None:
        self.gradient = gradient
        self.learning_rate = learning_rate
        self.exploration = exploration
        self.rng = rng
        self.w = np.zeros(n_features)
        self.t = 0

    def play(self, queries: Queries, sequence: Sequence[int]) -> np.ndarray:
        """One round for each query of `sequence`; the value of each."""
        values = np.empty(len(sequence))
        discount, cutoff = queries.discount, len(queries.discount)
        for i, place in enumerate(sequence):
            X, R, gains, offset = queries.each[place]
            s = X @ self.w
            greedy = shown = self.by_falling_score(s)
            gamma = self.at(self.exploration) if self.exploration else 0.0
            if self.exploration and self.rng.random() < gamma:
                shown = self.rng.permutation(len(X))
            top = gains[shown[:cutoff]]
            values[i] = offset + top @ discount[: len(top)]
            self.learn(Seen(X, s, greedy, shown, gamma, R))
        return values

    def by_falling_score(self, s: np.ndarray) -> np.ndarray:
        """Equal scores in random order (erratum B10)."""
        mixed = self.rng.permutation(len(s))
        return mixed[(-s[mixed]).argsort()]

    def learn(self, seen: Seen) -> None:
        """A step, and back into the ball."""
        self.w -= self.at(self.learning_rate) * self.gradient(seen)
        length = np.sqrt(self.w @ self.w)
        if length > RADIUS:
            self.w *= RADIUS / length
        self.t += 1

    def at(self, schedule: tuple[float, float]) -> float:
        """Scale * t**-power of this round."""
        scale, power = schedule
        return scale * (self.t + 1) ** -power
