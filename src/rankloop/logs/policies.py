"""The policy to evaluate over items that are the same for everybody: chances of items at positions, and of lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import numbers, whole
from rankloop.base import Ranker
from rankloop.feedback import LoggedLists

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ItemPolicy:
    """`cells[i, j]` is the chance of item i at position j; `lists` that of each list, None where it is unknown."""

    cells: Numbers
    lists: dict[tuple[int, ...], float] | None

    def of_cells(self, log: LoggedLists) -> Numbers:
        """The chance of each logged item at its position."""
        return self.cells[log.items, log.positions]

    def of_lists(self, log: LoggedLists) -> Numbers | None:
        """The chance of each logged list, or None where only those of items at positions are known."""
        if log.items.shape[1] == 1:
            return self.of_cells(log)[:, 0]
        if self.lists is None:
            return None
        chances, which = np.unique(log.items, axis=0, return_inverse=True)
        of = [self.lists.get(tuple(row), 0.0) for row in chances.tolist()]
        return np.array(of)[which.ravel()]

    def mean_rates(self, log: LoggedLists, q: Numbers) -> Numbers:
        """The mean of `q`, items by positions, over what the policy shows, for each logged item's position."""
        means: Numbers = (self.cells * q).sum(axis=0)[log.positions]
        return means

    def halves(self) -> None:
        """Chances are the same for all rows, and taken for exact."""
        return


def policy_for(given: Any, log: LoggedLists, *, draws: int, seed: int) -> ItemPolicy:
    """Read the policy to evaluate: a ranker, one ranking, or a matrix of probabilities."""
    if isinstance(given, Ranker):
        return _of_ranker(given, log, draws=whole("draws", draws, at_least=1), seed=seed)
    array = numbers("policy", given)
    if array.ndim == 1:
        return _of_ranking(array, log)
    if array.ndim != 2:
        raise ValueError(
            f"policy must be a ranker, a ranking or a matrix of items by positions, got {given!r}"
        )
    shape = (log.n_items, log.n_positions)
    if array.shape != shape:
        raise ValueError(
            f"policy must have a row for each item and a column for each position, {shape}, got {array.shape}"
        )
    if not ((array >= 0).all() and np.allclose(array.sum(axis=0), 1.0, atol=1e-6)):
        raise ValueError(
            f"policy must be probabilities that sum to 1 at each position, got sums {array.sum(axis=0)}"
        )
    return ItemPolicy(array, None)


def _of_ranking(order: Numbers, log: LoggedLists) -> ItemPolicy:
    m = log.n_positions
    whole_numbers = np.isfinite(order).all() and (order == np.floor(order)).all()
    if not whole_numbers or len(order) < m or len(np.unique(order)) < len(order):
        raise ValueError(
            f"policy must rank at least {m} different items, as the log's positions ask, got {order}"
        )
    if order.min() < 0 or order.max() >= log.n_items:
        raise ValueError(f"policy must rank items from 0 to {log.n_items - 1}, got {order}")
    return _mixed([order[:m].astype(np.int64)], log)


def _of_ranker(ranker: Ranker, log: LoggedLists, *, draws: int, seed: int) -> ItemPolicy:
    m = log.n_positions
    if ranker.n_positions is None or ranker.n_positions < m:
        raise ValueError(
            f"policy must be a ranker of the log's {m} positions, without features, got {ranker.n_positions} positions"
        )
    rng = np.random.default_rng(seed)
    lists = [ranker.rank(rng=rng).items[:m] for _ in range(draws)]
    largest = max(int(items.max()) for items in lists)
    if largest >= log.n_items:
        raise ValueError(f"policy must rank items from 0 to {log.n_items - 1}, it shows item {largest}")
    return _mixed(lists, log)


def _mixed(lists: Sequence[NDArray[np.int64]], log: LoggedLists) -> ItemPolicy:
    """The policy that shows each of these lists equally often."""
    cells = np.zeros((log.n_items, log.n_positions))
    places = np.arange(log.n_positions)
    counts: Counter[tuple[Any, ...]] = Counter()
    for items in lists:
        cells[items, places] += 1.0 / len(lists)
        counts[tuple(items.tolist())] += 1
    return ItemPolicy(cells, {items: count / len(lists) for items, count in counts.items()})
