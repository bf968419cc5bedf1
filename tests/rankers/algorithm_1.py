"""Algorithm 1 of the 2015 paper and the full-information learner beside it, line by line in plain Python.

Slow and obvious: all exploring rounds of a block are drawn when it begins, nothing is shared with the package.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Relevance = Sequence[Sequence[float]]
Order = list[int]


def M(y: Sequence[float]) -> Order:
    """argmin_sigma sigma . y (line 19): the largest y comes first."""
    return sorted(range(len(y)), key=lambda i: -y[i])


def rtop1f(
    r: Relevance, *, K: int, epsilon: float, g: Callable[[float], float], keep_rest: bool, rng: random.Random
) -> list[Order]:
    """The order shown in each round, and from it whatever one wants to know."""
    T, m = len(r), len(r[0])
    s_hat, r_hat = [0.0] * m, [0.0] * m  # line 5
    shown = []
    for i in range(1, K + 1):  # line 6
        s_hat = [s + estimate for s, estimate in zip(s_hat, r_hat, strict=True)]  # line 7
        block = range((i - 1) * T // K, i * T // K)  # line 3, erratum A10
        times = rng.sample(block, m)  # lines 8-9: the j-th drawn belongs to object j, erratum A11
        for t in block:  # line 10
            leader = M([s + rng.uniform(0, 1 / epsilon) for s in s_hat])  # lines 16-19
            if t in times:  # line 11
                top = times.index(t)
                rest = leader if keep_rest else rng.sample(range(m), m)
                shown.append([top, *(item for item in rest if item != top)])  # lines 12-13, erratum A12
            else:
                shown.append(leader)
        r_hat = [g(r[times[j]][j]) for j in range(m)]  # lines 14 and 21
    return shown


def ftpl(r: Relevance, *, epsilon: float, g: Callable[[float], float], rng: random.Random) -> list[Order]:
    """Section 13.2: M(r_{1:t} + p_t) in round t + 1, everything revealed."""
    r_sum = [0.0] * len(r[0])
    shown = []
    for r_t in r:
        shown.append(M([s + rng.uniform(0, 1 / epsilon) for s in r_sum]))
        r_sum = [s + g(relevance) for s, relevance in zip(r_sum, r_t, strict=True)]
    return shown
