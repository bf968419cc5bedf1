"""Optimised interleaving and multileaving: the probabilities of the lists are the solution of a linear programme."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import one_of, whole
from rankloop.base import draw_key
from rankloop.feedback.interleaving.multileaving import (
    Distribution,
    Multileaved,
    Multileaving,
    Rankings,
    ranks,
    read_rankings,
)
from rankloop.kernels import random

_TOLERANCE = 1e-9  # a smaller gap is rounding
_CREDITS = ("inverse-rank", "negative-rank")
_ATTEMPTS = 20  # draws of a list, for each that is wanted


class Plan(NamedTuple):
    """The lists of one request, and how to draw from them.

    Parameters
    ----------
    lists : ndarray of int
        A row of items for each list.
    probabilities : ndarray of float
        One for each list.
    credits : ndarray of float
        What a click is worth, by list, ranker and position.
    bias : float
        The largest difference between two rankers in the expected credit of a position: 0 but for rounding where the
        lists can be drawn without favouring anyone.
    """

    lists: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    credits: NDArray[np.float64]
    bias: float


class Optimised(Multileaving):
    """Draws from the lists that the rankers allow, with probabilities that favour no ranker and tell the most apart.

    A list is allowed if each of its items was, at its turn, the best item left of some ranker. A linear programme
    gives the lists probabilities such that a user who clicks at random gives every ranker the same expected credit, at
    every position. Of all such probabilities it takes those with the smallest expected insensitivity: the variance
    among rankers of the credit from a user who clicks at position i with probability 1 / i.

    Parameters
    ----------
    credit : str, optional
        What a click on an item is worth to a ranker: "inverse-rank" for 1 / rank, "negative-rank" for -rank.
    n_lists : int, optional
        How many lists enter the programme at most. Where more are allowed, so many different ones are drawn.

    Notes
    -----
    For three rankers and more, or with few lists, no probabilities may satisfy every constraint. The programme then
    takes those with the smallest violation, and `plan(...).bias` says how large it is. The solver's last bits are not
    the same on every machine. An item that a ranking does not hold has the rank after its last.

    References
    ----------
    F. Radlinski and N. Craswell, Optimized interleaving for online retrieval evaluation, WSDM 2013;
    more than two rankers: A. Schuth et al., Multileaved comparisons for fast online evaluation, CIKM 2014.

    Examples
    --------
    >>> rankings = [[0, 1, 2], [1, 2, 0]]
    >>> plan = Optimised().plan(rankings, n_positions=2)
    >>> plan.lists.tolist()
    [[0, 1], [1, 0], [1, 2]]
    >>> bool(plan.bias < 1e-8)
    True
    >>> shown = Optimised().show(rankings, n_positions=2, rng=np.random.default_rng(1))
    >>> shown.items.tolist() in plan.lists.tolist()
    True
    """

    def __init__(self, *, credit: str = "inverse-rank", n_lists: int = 1000) -> None:
        self.credit = one_of("credit", credit, _CREDITS)
        self.n_lists = whole("n_lists", n_lists, at_least=1)

    def show(
        self, rankings: Rankings, *, n_positions: int | None = None, rng: np.random.Generator
    ) -> Multileaved:
        orders, m = read_rankings(rankings, n_positions)
        key = draw_key(rng)
        plan = self._plan(orders, m)
        if plan is None:
            plan = _solved(self.credit, orders, _drawn(orders, m, self.n_lists, key))
        reached = np.cumsum(plan.probabilities)
        chosen = int(np.searchsorted(reached, random.uniform(key, 0) * reached[-1], side="right"))
        chosen = min(chosen, int(np.flatnonzero(plan.probabilities)[-1]))  # should rounding leave it beyond
        return Multileaved(plan.lists[chosen], plan.credits[chosen])

    def plan(self, rankings: Rankings, *, n_positions: int | None = None) -> Plan:
        """The lists that `show` draws from, with probabilities, credits and what is left of bias.

        Parameters
        ----------
        rankings : sequence of array_like
            One list of item numbers for each ranker, best first.
        n_positions : int, optional
            The length of the list to show; by default that of the shortest ranking.

        Returns
        -------
        Plan
            All allowed lists.

        Raises
        ------
        ValueError
            Where more lists than `n_lists` are allowed: `show` then draws others each time.
        """
        orders, m = read_rankings(rankings, n_positions)
        plan = self._plan(orders, m)
        if plan is None:
            raise ValueError(
                f"n_lists={self.n_lists} is less than the number of lists that the rankings allow"
            )
        return plan

    def distribution(self, rankings: Rankings, *, n_positions: int | None = None) -> Distribution:
        plan = self.plan(rankings, n_positions=n_positions)
        return Distribution(plan.lists, plan.probabilities)

    def _plan(self, orders: list[NDArray[np.int64]], m: int) -> Plan | None:
        return _all_lists(self.credit, self.n_lists, tuple(tuple(order.tolist()) for order in orders), m)


# The same rankings come again and again, and a programme takes milliseconds.
@functools.lru_cache(maxsize=256)
def _all_lists(credit: str, n_lists: int, orders: tuple[tuple[int, ...], ...], m: int) -> Plan | None:
    arrays = [np.array(order, np.int64) for order in orders]
    lists = _allowed(arrays, m, n_lists)
    return _solved(credit, arrays, lists) if lists else None


def _solved(credit: str, orders: list[NDArray[np.int64]], lists: list[tuple[int, ...]]) -> Plan:
    known, rank = ranks(orders)
    shown = np.array(sorted(lists), np.int64)
    by_rank = rank[:, np.searchsorted(known, shown)].transpose(1, 0, 2).astype(np.float64)
    worth = 1.0 / by_rank if credit == "inverse-rank" else -by_rank
    examined = 1.0 / np.arange(1, shown.shape[1] + 1)
    insensitivity = (worth @ examined).var(axis=1)
    # One row for each pair of rankers at each position: what one gets more than the other.
    one, other = np.triu_indices(len(orders), 1)
    gaps = (worth[:, one] - worth[:, other]).reshape(len(shown), -1).T
    probabilities = _programme(gaps, insensitivity)
    means = np.tensordot(probabilities, worth, axes=1)
    for part in (shown, probabilities, worth):
        part.setflags(write=False)  # others will get the same
    return Plan(shown, probabilities, worth, float((means.max(axis=0) - means.min(axis=0)).max()))


def _programme(gaps: NDArray[np.float64], cost: NDArray[np.float64]) -> NDArray[np.float64]:
    # The smallest largest gap, then the smallest cost at that gap.
    from scipy.optimize import linprog  # slow to import

    n = len(cost)
    if not len(gaps) or n == 1:
        only = np.zeros(n)
        only[np.argmin(cost)] = 1.0
        return only
    beside = np.vstack([np.hstack([side, -np.ones((len(gaps), 1))]) for side in (gaps, -gaps)])
    one = np.append(np.ones(n), 0.0)[None]
    gap = _minimised(linprog, np.append(np.zeros(n), 1.0), beside, np.zeros(len(beside)), one)[-1]
    limit = np.full(2 * len(gaps), float(gap) if gap > _TOLERANCE else 0.0)
    found = _minimised(linprog, cost, np.vstack([gaps, -gaps]), limit, one[:, :n])
    probabilities: NDArray[np.float64] = np.maximum(found, 0.0)
    probabilities /= probabilities.sum()
    return probabilities


def _minimised(
    linprog: Any,
    cost: NDArray[np.float64],
    rows: NDArray[np.float64],
    limits: NDArray[np.float64],
    sums_to_one: NDArray[np.float64],
) -> NDArray[np.float64]:
    solved = linprog(cost, A_ub=rows, b_ub=limits, A_eq=sums_to_one, b_eq=[1.0], method="highs")
    if solved.x is None:
        raise RuntimeError(f"the linear programme of the lists was not solved: {solved.message}")
    found: NDArray[np.float64] = solved.x
    return found


def _allowed(orders: list[NDArray[np.int64]], m: int, most: int) -> list[tuple[int, ...]]:
    # Every allowed list; none where there are more than `most`.
    lists: list[tuple[int, ...]] = [()]
    for _ in range(m):
        lists = [(*shown, item) for shown in lists for item in _candidates(orders, shown)]
        if len(lists) > most:  # each of them can be continued, so there will not be fewer
            return []
    return lists


def _drawn(orders: list[NDArray[np.int64]], m: int, most: int, key: np.uint64) -> list[tuple[int, ...]]:
    # Up to `most` different allowed lists, each position drawn from its candidates.
    found: dict[tuple[int, ...], None] = {}
    for attempt in range(_ATTEMPTS * most):
        shown: tuple[int, ...] = ()
        for position in range(m):
            candidates = list(_candidates(orders, shown))
            shown = (*shown, candidates[random.below(key, 1 + attempt * m + position, len(candidates))])
        found[shown] = None
        if len(found) == most:
            break
    return list(found)


def _candidates(orders: list[NDArray[np.int64]], shown: tuple[int, ...]) -> Iterator[int]:
    seen = set(shown)
    offered: dict[int, None] = {}
    for order in orders:
        offered[next(int(item) for item in order if int(item) not in seen)] = None
    return iter(offered)
