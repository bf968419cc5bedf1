"""Compare rankers by the clicks on one list that is made from the lists of all of them.

Two rankers: interleaving. More: multileaving. Each method makes a list from the rankings and says what a click at each
of its positions is worth to each ranker.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, numbers, whole
from rankloop.base import draw_key
from rankloop.feedback.revealed import Clicks
from rankloop.kernels import lists as multileaving
from rankloop.kernels import random
from rankloop.kernels.elementary import power

__all__ = ["Distribution", "Multileaved", "Multileaving", "PairwisePreference", "Probabilistic", "TeamDraft"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rankings = Sequence[ArrayLike]

TAU = 3.0
MOST_TAU = 30.0  # the weight of rank 1,000,000 is still a positive number
_MOST_LISTS = 1_000_000  # that `distribution` enumerates
_TIE = 1e-9  # credits that differ by less differ by rounding only


@dataclass(frozen=True, slots=True, eq=False)
class Multileaved:
    """A list made from several rankings, and what clicks on it are worth.

    Parameters
    ----------
    items : ndarray of int
        The items to show, best position first.
    credits : ndarray of float
        What a click is worth: rankers x positions. With `PairwisePreference` what it is worth that a click passed over
        an item: rankers x positions clicked x positions passed over.
    """

    items: Ints
    credits: Floats

    def credit(self, clicks: ArrayLike) -> Floats:
        """The credit of each ranker, in the order of their rankings, for `clicks`: 0 or 1 at each position."""
        clicked = Clicks().check(clicks, len(self.items))
        if self.credits.ndim == 2:
            return self.credits @ clicked
        # Users look down to their last click, and at the item below it.
        passed = 1.0 - clicked
        passed[int(clicked.nonzero()[0][-1]) + 2 if clicked.any() else 0 :] = 0.0
        return self.credits @ passed @ clicked

    def preferences(self, clicks: ArrayLike) -> Ints:
        """Which ranker `clicks` prefer: 1 in row i, column j where i got more credit than j, -1 where less, 0 else."""
        credit = self.credit(clicks)
        difference = credit[:, None] - credit
        signs: Ints = np.where(np.abs(difference) < _TIE, 0.0, np.sign(difference)).astype(np.int64)
        return signs

    def save(self) -> dict[str, NDArray[Any]]:
        """The list and its credits as named arrays, ready for `np.savez`: clicks may come later."""
        return {"items": self.items, "credits": self.credits}

    @classmethod
    def load(cls, saved: Mapping[str, NDArray[Any]]) -> Multileaved:
        """The list that `save` wrote: `saved` is what it gave, or a ValueError."""
        for name in ("items", "credits"):
            if name not in saved:
                raise ValueError(f"saved list has no {name!r}, only {sorted(saved)}")
        items = read_ranking("items", saved["items"])
        worth = numbers("credits", saved["credits"])
        fits = worth.ndim in (2, 3) and set(worth.shape[1:]) == {len(items)}
        if not fits or not np.isfinite(worth).all():
            raise ValueError(
                f"credits must be finite, rankers x {len(items)} positions, got {saved['credits']!r}"
            )
        return cls(items, worth)


class Distribution(NamedTuple):
    """Every list that may be shown, and its exact probability.

    Parameters
    ----------
    lists : ndarray of int
        A row of items for each list.
    probabilities : ndarray of float
        One for each list; they add up to 1.
    """

    lists: Ints
    probabilities: Floats


class Multileaving(abc.ABC):
    """A way to make one list from several rankings."""

    @abc.abstractmethod
    def show(
        self, rankings: Rankings, *, n_positions: int | None = None, rng: np.random.Generator
    ) -> Multileaved:
        """Make a list from the rankings, with what a click at each position is worth to each ranker.

        Parameters
        ----------
        rankings : sequence of array_like
            One list of item numbers for each ranker, best first. They may hold different items.
        n_positions : int, optional
            The length of the list to show; by default that of the shortest ranking, which is also the most.
        rng : numpy.random.Generator
            Where the randomness comes from.
        """

    @abc.abstractmethod
    def distribution(self, rankings: Rankings, *, n_positions: int | None = None) -> Distribution:
        """The exact probability of each list that `show` may make, in rising order, by enumeration: for short lists.

        Parameters
        ----------
        rankings : sequence of array_like
            One list of item numbers for each ranker, best first.
        n_positions : int, optional
            The length of the list to show; by default that of the shortest ranking.
        """

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"


def read_rankings(rankings: Any, n_positions: Any) -> tuple[list[Ints], int]:
    """The rankings as arrays, and how many positions are to be filled; ValueError if they are anything else."""
    if isinstance(rankings, str | bytes) or not isinstance(rankings, Iterable):
        raise ValueError(f"rankings must be a list of rankings, got {rankings!r}")
    lists = [read_ranking(f"rankings[{i}]", ranking) for i, ranking in enumerate(rankings)]
    if not lists:
        raise ValueError(f"rankings must hold at least one ranking, got {rankings!r}")
    shortest = min(map(len, lists))
    if n_positions is None:
        return lists, shortest
    return lists, whole("n_positions", n_positions, at_least=1, at_most=shortest)


def read_ranking(name: str, ranking: Any) -> Ints:
    """One list of item numbers."""
    items = numbers(name, ranking)
    if items.ndim != 1 or not len(items):
        raise ValueError(f"{name} must be a list of item numbers, best first, got {ranking!r}")
    if not ((items >= 0) & (items == np.floor(items)) & (items < 2.0**53)).all():
        raise ValueError(f"{name} must hold whole numbers from 0 on, got {ranking!r}")
    if len(np.unique(items)) != len(items):
        raise ValueError(f"{name} must not hold an item twice, got {ranking!r}")
    return items.astype(np.int64)


def ranks(lists: list[Ints]) -> tuple[Ints, Ints]:
    """All items, rising, and by ranker and item the rank from 1; an item that a ranking lacks comes after its last."""
    items = np.unique(np.concatenate(lists))
    table = np.array([np.full(len(items), len(order) + 1) for order in lists])
    for row, order in zip(table, lists, strict=True):
        row[np.searchsorted(items, order)] = np.arange(1, len(order) + 1)
    return items, table


def collected(chances: Mapping[tuple[int, ...], float]) -> Distribution:
    """The lists in rising order, with their probabilities."""
    lists = sorted(chances)
    return Distribution(np.array(lists, np.int64), np.array([chances[items] for items in lists]))


def check_few(n_lists: float) -> None:
    """ValueError where enumerating would take too long."""
    if n_lists > _MOST_LISTS:
        raise ValueError(
            f"distribution enumerates at most {_MOST_LISTS:,} lists, here are up to {n_lists:.3g}"
        )


class TeamDraft(Multileaving):
    """Rankers take turns in rounds, in a new random order each round; each adds its best item that is not shown yet.

    A click is credited to the ranker that added the item: 1, and nothing to the others. At the top, where all rankings
    agree, nobody gets credit.

    Parameters
    ----------
    prefix_credit : bool, optional
        Whether clicks on the common prefix of the rankings are credited too. Who adds these items is up to the coin
        alone, so that their clicks are noise: a small change takes several times as many lists to be found.

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

    def __init__(self, *, prefix_credit: bool = False) -> None:
        if not isinstance(prefix_credit, bool):
            raise ValueError(f"prefix_credit must be True or False, got {prefix_credit!r}")
        self.prefix_credit = prefix_credit

    def show(
        self, rankings: Rankings, *, n_positions: int | None = None, rng: np.random.Generator
    ) -> Multileaved:
        lists, m = read_rankings(rankings, n_positions)
        key, n_rankers = draw_key(rng), len(lists)
        left = [iter(order.tolist()) for order in lists]
        shown: dict[int, int] = {}  # and who added it
        waiting: list[int] = []
        for position in range(m):
            waiting = waiting or list(range(n_rankers))
            captain = waiting.pop(random.below(key, position, len(waiting)))
            shown[_next(left[captain], shown)] = captain
        worth = np.zeros((n_rankers, m))
        worth[list(shown.values()), np.arange(m)] = 1.0
        if not self.prefix_credit:
            worth[:, : common_prefix(lists)] = 0.0
        return Multileaved(np.array(list(shown), np.int64), worth)

    def distribution(self, rankings: Rankings, *, n_positions: int | None = None) -> Distribution:
        lists, m = read_rankings(rankings, n_positions)
        rounds, rest = divmod(m, len(lists))
        check_few(float(math.factorial(len(lists))) ** rounds * math.perm(len(lists), rest))
        everyone, orders = frozenset(range(len(lists))), [order.tolist() for order in lists]
        # What is shown so far and who is still to choose in this round say all about the rest.
        chances: dict[tuple[tuple[int, ...], frozenset[int]], float] = {((), everyone): 1.0}
        for _ in range(m):
            later: dict[tuple[tuple[int, ...], frozenset[int]], float] = {}
            for (shown, waiting), chance in chances.items():
                for captain in waiting:
                    reached = (*shown, _next(orders[captain], shown)), (waiting - {captain}) or everyone
                    later[reached] = later.get(reached, 0.0) + chance / len(waiting)
            chances = later
        total: dict[tuple[int, ...], float] = {}
        for (shown, _), chance in chances.items():
            total[shown] = total.get(shown, 0.0) + chance
        return collected(total)


def _next(order: Iterable[int], shown: Container[int]) -> int:
    # There is one: at most as many items are shown as a ranking has.
    return next(item for item in order if item not in shown)


def common_prefix(lists: list[Ints]) -> int:
    """How many items, from the top, are the same in all rankings."""
    top = np.stack([order[: min(map(len, lists))] for order in lists])
    differs = (top != top[0]).any(axis=0)
    return int(differs.argmax()) if differs.any() else len(differs)


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

    def _weights(self, lists: list[Ints]) -> tuple[Ints, Floats]:
        known, rank = ranks(lists)
        by_rank = np.array([power(float(place), -self.tau) for place in range(1, int(rank.max()) + 1)])
        return known, by_rank[rank - 1]


class PairwisePreference(Multileaving):
    """Position k is drawn evenly from the items that any ranker has in its first k; credit is for pairs of items.

    A click says that its item is better than those passed over: every item above the last click, and the one below it,
    that was not clicked. A ranker gets credit for a pair that it orders in the same way, and loses it for one that it
    orders the other way round. A pair counts where each of its items could have stood in the other's place, and as much
    more as that was rare.

    Notes
    -----
    Shown are only items that some ranker would have shown by then, so that no list is worse than all rankings are.
    Under clicks that do not depend on the items every ranker gets 0 in expectation. A ranker that has every relevant
    item at least as high as another one, and one of them higher, gets more. Both are proved in the paper.

    References
    ----------
    H. Oosterhuis and M. de Rijke, Sensitive and scalable online evaluation with theoretical guarantees, CIKM 2017.

    Examples
    --------
    >>> shown = PairwisePreference().show([[0, 1, 2], [1, 2, 0]], rng=np.random.default_rng(1))
    >>> shown.items
    array([1, 0, 2])
    >>> shown.credit([0, 1, 0])  # items 1 and 2 were passed over for item 0, which the first ranker has higher
    array([ 3., -3.])
    """

    def show(
        self, rankings: Rankings, *, n_positions: int | None = None, rng: np.random.Generator
    ) -> Multileaved:
        lists, m = read_rankings(rankings, n_positions)
        key = draw_key(rng)
        known, rank = ranks(lists)
        top = rank.min(axis=0)
        entering = np.argsort(top, kind="stable").tolist()  # items by their best rank
        order: list[int] = []
        n_left = np.empty(m)  # how many items each position was drawn from
        left: list[int] = []
        for position in range(m):
            while entering and top[entering[0]] <= position + 1:
                left.append(entering.pop(0))
            n_left[position] = len(left)
            order.append(left.pop(random.below(key, position, len(left))))
        return Multileaved(known[order], _pair_credits(rank[:, order], top[order], n_left))

    def distribution(self, rankings: Rankings, *, n_positions: int | None = None) -> Distribution:
        lists, m = read_rankings(rankings, n_positions)
        known, rank = ranks(lists)
        top = rank.min(axis=0)
        check_few(math.prod(int((top <= k + 1).sum()) - k for k in range(m)))
        chances: dict[tuple[int, ...], float] = {(): 1.0}
        for position in range(m):
            later: dict[tuple[int, ...], float] = {}
            for shown, chance in chances.items():
                left = [item for item in known[top <= position + 1].tolist() if item not in shown]
                later |= {(*shown, item): chance / len(left) for item in left}
            chances = later
        return collected(chances)


def _pair_credits(rank: Ints, top: Ints, n_left: Floats) -> Floats:
    """What it is worth to each ranker that the item at one position is preferred to that at another.

    rank: of the shown items, by ranker. top: the best of it, by item.
    """
    m = len(top)
    latest, first = (
        np.maximum.outer(top, top),
        np.minimum.outer(top, top),
    )  # r(i, j), and when one of the two came in
    place = np.arange(1, m + 1)
    fits = (latest <= place) & (latest <= place[:, None])
    # The chance that the one that came in first was not drawn before both were there. Where it had to be, none fits.
    staying = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(1.0 - 1.0 / n_left, 1e-300)))])
    chance = np.exp(staying[latest - 1] - staying[first - 1])
    agrees = np.sign(rank[:, None, :] - rank[:, :, None])
    worth: Floats = np.where(fits, agrees / np.where(fits, chance, 1.0), 0.0)
    return worth
