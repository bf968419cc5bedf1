"""What a linear bandit over lists cannot do without, in compiled code: the scores, one sort, and rank-one updates.

Not kept on disk, for the same reason as `bare`.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import loop
from rankloop.kernels.rows import score
from rankloop.kernels.sorting import greedy_order
from rankloop.kernels.vectors import dot


@loop
def update(rounds: int, features: Any, m: int, inverse: Any, u: Any) -> None:
    """A round: for m items, a product of the inverse with their features, and its update (Sherman and Morrison)."""
    d = len(u)
    for t in range(rounds):
        for j in range(m):
            x = features[(t + j) % len(features)]
            for k in range(d):
                u[k] = dot(x, inverse[k])
            q = 1.0 + dot(x, u)
            for k in range(d):
                by = u[k] / q
                for i in range(d):
                    inverse[k, i] -= by * u[i]


@loop
def bounds(
    rounds: int, features: Any, inverse: Any, scores: Any, u: Any, items: Any, scratch: Any, words: Any
) -> None:
    """A round: x' M^-1 x of every item, and a sort."""
    for t in range(rounds):
        for i in range(len(features)):
            for k in range(len(u)):
                u[k] = dot(features[i], inverse[k])
            scores[i] = dot(features[i], u)
        greedy_order(scores, len(features), words[t % len(words)], 0, items, scratch)


@loop
def draw(
    rounds: int, features: Any, root: Any, scores: Any, u: Any, items: Any, scratch: Any, words: Any
) -> None:
    """A round: one product with a root of the inverse, a score for every item, and a sort."""
    for t in range(rounds):
        for k in range(len(u)):
            u[k] = dot(root[t % len(u)], root[k])
        score(features, u, scores)
        greedy_order(scores, len(features), words[t % len(words)], 0, items, scratch)
