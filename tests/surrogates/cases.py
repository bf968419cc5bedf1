"""Small lists, every order of them, and the formulas of the paper written down once more."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop import surrogates
from rankloop.surrogates import Surrogate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ESTIMABLE: list[Surrogate] = [
    surrogates.Squared(),
    surrogates.RankSVM(),
    surrogates.KL(),
    surrogates.SmoothDCG(epsilon=0.7),
]
ALL: list[Surrogate] = [
    *ESTIMABLE,
    surrogates.CentredSquared(),
    surrogates.ListNet(),
    surrogates.CalibratedSquared(),
]

# Scores with ties, and an order that breaks them; relevance with grades, and with equal ones.
LISTS: dict[str, tuple[list[float], list[int], list[int]]] = {
    "one item": ([0.3], [2], [0]),
    "two items": ([0.2, -0.4], [0, 1], [0, 1]),
    "all tied": ([0.0, 0.0, 0.0], [1, 0, 2], [2, 0, 1]),
    "four items": ([0.9, -0.2, 0.1, 1.7], [2, 0, 1, 0], [3, 0, 2, 1]),
    "two tied": ([0.5, 0.5, -0.6, 1.2, 0.1], [1, 4, 0, 0, 2], [3, 1, 0, 4, 2]),
}


def name(value: Any) -> str:
    return value.name if isinstance(value, Surrogate) else str(value)


@functools.cache
def orders(m: int) -> list[Ints]:
    """Every order of m items."""
    return [np.array(order) for order in itertools.permutations(range(m))]


def probability(order: Ints, greedy: Ints, gamma: float) -> float:
    """P(sigma) of Algorithm 1, line 6."""
    m = len(order)
    return (1 - gamma) * bool((order == greedy).all()) + gamma / len(orders(m))


def mean(estimate: Callable[[Ints], Floats], greedy: Ints, gamma: float) -> Floats:
    """The expectation over every order."""
    return sum(probability(order, greedy, gamma) * estimate(order) for order in orders(len(greedy)))


def printed(surrogate: Surrogate, s: Floats, order: Ints, R: Floats, greedy: Ints, gamma: float) -> Floats:
    """The estimators of sections 4.1 and 4.1.1, letter by letter; p by summing over every order."""
    m = len(s)
    e = np.eye(m)
    first = order[0]

    def p(*items: int) -> float:
        begins = [other for other in orders(m) if tuple(other[: len(items)]) == items]
        return sum(probability(other, greedy, gamma) for other in begins)

    if surrogate.name == "squared":
        return 2 * (s - R[first] * e[first] / p(first))
    if surrogate.name == "kl":
        return (np.exp(s[first]) - np.exp(R[first])) * e[first] / p(first)
    if surrogate.name == "smooth_dcg":
        E = np.exp(s / surrogate.epsilon)
        star = [E[first] / E.sum() * (first == j) - E[first] * E[j] / E.sum() ** 2 for j in range(m)]
        return (2.0 ** R[first] - 1) / p(first) * np.array(star) / surrogate.epsilon
    i, j = order[:2]

    def h(i: int, j: int) -> Floats:
        return float(R[i] > R[j]) * float(1 + s[j] > s[i]) * (e[j] - e[i])

    return (h(i, j) + h(j, i)) / (p(i, j) + p(j, i))
