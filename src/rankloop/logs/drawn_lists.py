"""The policy to evaluate on lists with features of their own: what it would have shown for each request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers
from rankloop.base import Ranker
from rankloop.feedback import Candidates, LoggedLists

Numbers = NDArray[np.float64]


@runtime_checkable
class Orders(Protocol):
    """Something that orders items by their features, such as the result of `logs.fit_ranker`."""

    def order(self, features: ArrayLike, /) -> NDArray[np.int64]:
        """Item numbers, best first."""
        ...


@dataclass(frozen=True, slots=True)
class DrawnLists:
    """`lists[r, k]` is the k-th list drawn for row r, candidate numbers by position, -1 behind the last.

    A deterministic policy has one list a row, and its chances are exact. Otherwise the share of the drawn lists stands
    for a chance. It is right on average for any number of draws, so that what is linear in it stays unbiased, and as
    rows are drawn independently, the spread over rows has the error of drawing in it.
    """

    lists: NDArray[np.int64]

    def of_cells(self, log: LoggedLists) -> Numbers:
        """The chance of each logged item at its position; 0 where nothing was shown."""
        here = np.take_along_axis(self.lists, log.positions[:, None, :], axis=2)
        chances: Numbers = ((here == log.items[:, None, :]) & (log.items >= 0)[:, None, :]).mean(axis=1)
        return chances

    def of_lists(self, log: LoggedLists) -> Numbers | None:
        """The chance of each logged list."""
        here = np.take_along_axis(self.lists, log.positions[:, None, :], axis=2)
        chances: Numbers = (here == log.items[:, None, :]).all(axis=2).mean(axis=1)
        return chances

    def mean_rates(self, log: LoggedLists, q: Numbers) -> Numbers:
        """The mean of `q`, candidates by positions, over what the policy shows, for each logged item's position."""
        assert log.features is not None
        rows = log.features.starts[:-1, None, None] + np.maximum(self.lists, 0)
        guessed = np.where(self.lists >= 0, q[rows, np.arange(self.lists.shape[2])], 0.0).mean(axis=1)
        means: Numbers = np.take_along_axis(guessed, log.positions, axis=1)
        return means

    def halves(self) -> tuple[DrawnLists, DrawnLists] | None:
        """The policy by every other draw, twice; None where it has one list a row."""
        if self.lists.shape[1] < 2:
            return None
        n = self.lists.shape[1] // 2 * 2
        return DrawnLists(self.lists[:, 0:n:2]), DrawnLists(self.lists[:, 1:n:2])


def lists_for(policy: Any, log: LoggedLists, *, draws: int, explore: bool, seed: int) -> DrawnLists:
    """Ask the policy for a list, or for many, for each row of the log; it learns nothing."""
    assert log.features is not None
    requests, m = log.features, log.n_positions
    if isinstance(policy, Ranker):
        if policy.n_positions is not None:
            raise ValueError(
                "policy must be a ranker of lists with features, as the log's, got one of fixed items:"
                f" {type(policy).__name__}"
            )
        if policy.n_features not in (requests.n_features, None):
            raise ValueError(
                f"policy must be a ranker of the log's {requests.n_features} features, got one of"
                f" {policy.n_features}"
            )
        if not explore:
            return _ordered([policy.current(requests[row]) for row in range(len(requests))], requests, m)
        return _drawn(policy, requests, m, draws=draws, seed=seed)
    if isinstance(policy, Orders):
        return _ordered([policy.order(requests[row]) for row in range(len(requests))], requests, m)
    given = numbers("policy", policy)
    if given.ndim != 2 or len(given) != log.n_rows or (given != np.floor(given)).any():
        raise ValueError(
            "policy must be a ranker, something with a method order, or a matrix with a list for each of the log's"
            f" {log.n_rows:,} rows, got shape {given.shape}"
        )
    return _ordered([row[row >= 0].astype(np.int64) for row in given], requests, m)


def _drawn(ranker: Ranker, requests: Candidates, m: int, *, draws: int, seed: int) -> DrawnLists:
    rng = np.random.default_rng(seed)
    lists = np.full((len(requests), draws, m), -1, np.int64)
    for row in range(len(requests)):
        context = requests[row]
        for k in range(draws):
            items = ranker.rank(context, rng=rng).items[:m]
            lists[row, k, : len(items)] = items
    return DrawnLists(lists)


def _ordered(orders: list[NDArray[np.int64]], requests: Candidates, m: int) -> DrawnLists:
    lists = np.full((len(requests), 1, m), -1, np.int64)
    for row, (order, n) in enumerate(zip(orders, requests.sizes.tolist(), strict=True)):
        top = order[:m]
        if len(top) < min(m, n) or len(np.unique(top)) < len(top) or top.min() < 0 or top.max() >= n:
            raise ValueError(
                f"policy must rank at least {min(m, n)} different candidates of the {n} of list {row}, got {order}"
            )
        lists[row, 0, : len(top)] = top
    return DrawnLists(lists)
