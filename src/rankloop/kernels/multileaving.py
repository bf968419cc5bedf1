"""Probabilistic multileaving: one list drawn from several rankers, and what a click at each position says of each.

Hofmann, Whiteson and de Rijke (2011) for two rankers, Schuth and others (2015) for more. At every position a ranker is
drawn at random, and its next document from its own distribution over what is left. A click is credited to each ranker
by the probability that the document was its choice, given all that was shown: the draw of the ranker is averaged out.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import hot
from rankloop.kernels.random import below, uniform
from rankloop.kernels.vector_sums import sum_stretch


@hot
def multileave(left: Any, n: int, m: int, key: Any, first: int, items: Any, worth: Any) -> None:
    """Draw `m` of `n` items from the rankers' weights, and what a click at each position is worth to each ranker.

    Every row of `left` is a ranker and holds a positive weight for each item; the weights of shown items become 0. Two
    numbers of `key` are used for each position, from `first` on.
    """
    n_rankers = left.shape[0]
    for position in range(m):
        chooser = below(key, first + 2 * position, n_rankers)
        target = uniform(key, first + 2 * position + 1) * sum_stretch(left, chooser, 0, n)
        item = -1
        reached = 0.0
        for i in range(n):
            if left[chooser, i] > 0.0:
                item = i  # the last one, should rounding leave the target beyond all of them
                reached += left[chooser, i]
                if reached > target:
                    break
        items[position] = item
        total = 0.0
        for ranker in range(n_rankers):
            worth[ranker, position] = left[ranker, item] / sum_stretch(left, ranker, 0, n)
            total += worth[ranker, position]
            left[ranker, item] = 0.0
        for ranker in range(n_rankers):
            worth[ranker, position] /= total
