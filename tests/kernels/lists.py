"""The exact law of the lists that `lists.sample` draws: matchings with their weights, lists with their chances."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import lists

Floats = NDArray[np.float64]
Lists = dict[tuple[int, ...], float]


def bins(x: Floats) -> tuple[list[list[int]], lists.SamplingScratch]:
    """The items of each bin, and the scratch with their sums."""
    scratch = lists.sampling_scratch(len(x))
    n_stretches, n_bins = lists._merge(x, x.sum(axis=0), scratch)
    items: list[list[int]] = [[] for _ in range(n_bins)]
    for s in range(n_stretches):
        items[scratch.owner[s]] += range(scratch.start[s], scratch.stop[s])
    return items, scratch


def matchings_of(x: Floats) -> Iterator[tuple[float, list[int]]]:
    """The bins at each position, with the stretch of the first random number that leads to them.

    What is left of the sums when a draw ends tells where its stretch begins, the least entry how long it is.
    """
    m, u = len(x), 0.0
    while u < 1.0 - 2e-9:  # the rest is what the sums of x are off
        items, scratch = bins(x)
        n_bins = len(items)
        lists.go_on(u, 0.0, n_bins, scratch)
        begin = scratch.whole[0, :n_bins].sum() - scratch.mass[0, :n_bins].sum()
        chosen = scratch.chosen[:n_bins].tolist()
        assert sorted(chosen) == list(range(n_bins)), "a bin is used twice or not at all"
        length = min(scratch.mass[c, b] if c < m else scratch.slack[b] for c, b in enumerate(chosen))
        assert length > 0
        assert begin <= u + 1e-12 < begin + length + 1e-12
        yield length, chosen[:m]
        u = begin + length + 1e-15


def law(x: Floats) -> Lists:
    """The chance of each list."""
    chances: Lists = {}
    items, scratch = bins(x)
    for weight, chosen in matchings_of(x):
        for shown in product(*(items[b] for b in chosen)):
            inside = [
                x[j, i] / scratch.whole[j, b] for j, (i, b) in enumerate(zip(shown, chosen, strict=True))
            ]
            chances[shown] = chances.get(shown, 0.0) + weight * float(np.prod(inside))
    return chances


def marginals(chances: Lists, n_items: int) -> Floats:
    """The chance of each item at each position."""
    x = np.zeros((len(next(iter(chances))), n_items))
    for shown, chance in chances.items():
        x[np.arange(len(shown)), list(shown)] += chance
    return x
