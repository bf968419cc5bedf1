"""The gaps of Definition 1 (2022), and the inequality of Lemma 2 that they were made for."""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def gaps(alpha: Vector, beta: Vector) -> Vector:
    """Delta_ij of Definition 1, items x positions, for falling `alpha` and `beta`; beta_{m+1} = 0.

    >>> gaps(np.array([0.9, 0.5, 0.2]), np.array([1.0, 0.5])).round(2).tolist()
    [[0.0, 0.2], [0.2, 0.0], [0.35, 0.15]]
    """
    n, m = len(alpha), len(beta)
    padded = np.append(beta, 0.0)
    delta = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            if j < i:
                delta[i, j] = (padded[j] - padded[j + 1]) * (alpha[j] - alpha[i])
            elif j > i:
                delta[i, j] = (padded[j - 1] - padded[j]) * (alpha[i] - alpha[j])
    return delta


class Slack(NamedTuple):
    """Lemma 2 over all lists: the least of left minus right side, and the least of left over the sum of the gaps."""

    least: float
    least_ratio: float
    lists: int


def lemma_2(alpha: Vector, beta: Vector) -> Slack:
    """Try every list of an instance.

    >>> found = lemma_2(np.array([0.9, 0.5, 0.2]), np.array([1.0, 0.5]))
    >>> found.lists, round(found.least, 12), round(found.least_ratio, 12)
    (6, 0.0, 0.5)
    """
    n, m = len(alpha), len(beta)
    delta, positions = gaps(alpha, beta), np.arange(m)
    lists = np.array(list(permutations(range(n), m)))
    regret = ((alpha[:m] - alpha[lists]) * beta).sum(axis=1)
    total = delta[lists, positions].sum(axis=1)
    wrong = total > 1e-9
    return Slack(
        float((regret - total / 2).min()),
        float((regret[wrong] / total[wrong]).min()) if wrong.any() else 1.0,
        len(lists),
    )


def theorem_2(alpha: Vector, beta: Vector, T: float) -> float:
    """The bound of Theorem 2 with sum 1/t <= 1 + log T (erratum C8)."""
    delta = gaps(alpha, beta)
    m = len(beta)
    off = ~np.eye(len(alpha), m, dtype=bool)
    with np.errstate(divide="ignore"):
        total = float((1 / delta[off]).sum())
    return float(18 * total * (1 + np.log(T)) + 4 * m * np.log(T) + 6 * m)
