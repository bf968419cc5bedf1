"""Team draft: rankers take turns, as captains who choose players."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankloop.base import draw_key
from rankloop.feedback.interleaving.multileaving import (
    Distribution,
    Multileaved,
    Multileaving,
    Rankings,
    check_few,
    collected,
    read_rankings,
)
from rankloop.kernels import random


class TeamDraft(Multileaving):
    """Rankers take turns in rounds, in a new random order each round; each adds its best item that is not shown yet.

    A click is credited to the ranker that added the item: 1, and nothing to the others.

    Notes
    -----
    Under clicks that do not depend on the items every ranker gets the same in expectation. A ranker that is better
    need not win: where only the last shown item tells two rankers apart, each of them adds it equally often.

    References
    ----------
    F. Radlinski, M. Kurup and T. Joachims, How does clickthrough data reflect retrieval quality?, CIKM 2008;
    more than two rankers: A. Schuth et al., Multileaved comparisons for fast online evaluation, CIKM 2014.

    Examples
    --------
    >>> shown = TeamDraft().show([[0, 1, 2], [2, 1, 0]], n_positions=2, rng=np.random.default_rng(1))
    >>> sorted(shown.items.tolist())
    [0, 2]
    >>> shown.credit([1, 0]).sum()
    np.float64(1.0)
    >>> TeamDraft().distribution([[0, 1, 2], [2, 1, 0]], n_positions=2).probabilities
    array([0.5, 0.5])
    """

    def show(
        self, rankings: Rankings, *, n_positions: int | None = None, rng: np.random.Generator
    ) -> Multileaved:
        lists, m = read_rankings(rankings, n_positions)
        key, n_rankers = draw_key(rng), len(lists)
        items, worth = np.empty(m, np.int64), np.zeros((n_rankers, m))
        waiting: list[int] = []
        for position in range(m):
            waiting = waiting or list(range(n_rankers))
            captain = waiting.pop(random.below(key, position, len(waiting)))
            items[position] = _next(lists[captain], items[:position])
            worth[captain, position] = 1.0
        return Multileaved(items, worth)

    def distribution(self, rankings: Rankings, *, n_positions: int | None = None) -> Distribution:
        lists, m = read_rankings(rankings, n_positions)
        rounds, rest = divmod(m, len(lists))
        check_few(float(math.factorial(len(lists))) ** rounds * math.perm(len(lists), rest))
        everyone = frozenset(range(len(lists)))
        # What is shown so far and who is still to choose in this round say all about the rest.
        chances: dict[tuple[tuple[int, ...], frozenset[int]], float] = {((), everyone): 1.0}
        for _ in range(m):
            later: dict[tuple[tuple[int, ...], frozenset[int]], float] = {}
            for (shown, waiting), chance in chances.items():
                for captain in waiting:
                    reached = (*shown, _next(lists[captain], shown)), (waiting - {captain}) or everyone
                    later[reached] = later.get(reached, 0.0) + chance / len(waiting)
            chances = later
        total: dict[tuple[int, ...], float] = {}
        for (shown, _), chance in chances.items():
            total[shown] = total.get(shown, 0.0) + chance
        return collected(total)


def _next(order: Any, shown: Any) -> int:
    # There is one: at most as many items are shown as a ranking has.
    return next(int(item) for item in order if item not in shown)
