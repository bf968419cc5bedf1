"""Probabilistic interleaving and multileaving: every ranking is a distribution, and so every list has a chance."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import number
from rankloop.base import draw_key
from rankloop.feedback.interleaving.multileaving import (
    Distribution,
    Multileaved,
    Multileaving,
    Rankings,
    check_few,
    collected,
    ranks,
    read_rankings,
)
from rankloop.kernels import lists as multileaving
from rankloop.kernels.elementary import power

TAU = 3.0
MOST_TAU = 30.0  # the weight of rank 1,000,000 is still a positive number


class Probabilistic(Multileaving):
    """At each position a ranker is drawn, and an item from its softmax over ranks; a click is shared among rankers.

    Parameters
    ----------
    tau : float, optional
        A ranker draws an item in proportion to 1 / rank^tau, so the larger, the closer to its ranking.

    Notes
    -----
    The ranker is drawn anew for each position, all equally likely. A click is credited to every ranker by the
    probability that it was the one that was drawn, given the list: the shares of a click add up to 1. An item that a
    ranking does not hold has the rank after its last.

    References
    ----------
    K. Hofmann, S. Whiteson and M. de Rijke, A probabilistic method for inferring preferences from clicks, CIKM 2011;
    more than two rankers: A. Schuth et al., Probabilistic multileave for online retrieval evaluation, SIGIR 2015.

    Examples
    --------
    >>> shown = Probabilistic().show([[0, 1, 2], [0, 2, 1]], n_positions=2, rng=np.random.default_rng(1))
    >>> shown.items, shown.credit([1, 0])  # both have item 0 on top: a click on it tells nothing
    (array([0, 1]), array([0.5, 0.5]))
    >>> shown.credit([0, 1]).round(3)  # the first ranker has item 1 higher
    array([0.771, 0.229])
    """

    def __init__(self, *, tau: float = TAU) -> None:
        self.tau = number("tau", tau, above=0, at_most=MOST_TAU)

    def show(
        self, rankings: Rankings, *, n_positions: int | None = None, rng: np.random.Generator
    ) -> Multileaved:
        lists, m = read_rankings(rankings, n_positions)
        known, left = self._weights(lists)
        places, worth = np.empty(m, np.int64), np.empty((len(lists), m))
        multileaving.multileave(left, len(known), m, draw_key(rng), 0, places, worth)
        return Multileaved(known[places], worth)

    def distribution(self, rankings: Rankings, *, n_positions: int | None = None) -> Distribution:
        lists, m = read_rankings(rankings, n_positions)
        known, weights = self._weights(lists)
        check_few(math.perm(len(known), m))
        chances: dict[tuple[int, ...], float] = {(): 1.0}
        for _ in range(m):
            later = {}
            for shown, chance in chances.items():
                left = np.where(np.isin(known, shown), 0.0, weights)
                by_item = (left / left.sum(axis=1, keepdims=True)).mean(axis=0)
                for item, share in zip(known.tolist(), by_item.tolist(), strict=True):
                    if item not in shown:
                        later[(*shown, item)] = chance * share
            chances = later
        return collected(chances)

    def _weights(self, lists: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        known, rank = ranks(lists)
        by_rank = np.array([power(float(place), -self.tau) for place in range(1, int(rank.max()) + 1)])
        return known, by_rank[rank - 1]
