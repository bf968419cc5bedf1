"""A comparison of rankings on live traffic: lists that are mixed from the orders of several rankings, and a verdict.

It is served as a ranker is: a row of the log for each list and for what came back on it, the state a fold of these.
What it learns is which ranking users prefer.

The lists of one user depend on each other. Where requests say whose they are (`unit`: a session or a user), of each
unit the first list that prefers a ranking counts, and then no other: units are independent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rankloop.arguments import one_of, whole
from rankloop.base import Array, Floats, Ints, Ranker, Ranking
from rankloop.features import read_features
from rankloop.feedback import TopClicks
from rankloop.feedback.anytime import ERROR, Tally
from rankloop.feedback.interleaving import (
    Multileaved,
    Multileaving,
    PairwisePreference,
    Probabilistic,
    TeamDraft,
)

if TYPE_CHECKING:
    from rankloop.serving.log.fold import Fold

METHODS: dict[str, type[Multileaving]] = {
    "team-draft": TeamDraft,
    "pairwise": PairwisePreference,
    "probabilistic": Probabilistic,
}
_UNITS = (
    1 << 16
)  # newest units that are remembered, about: each has one place, and takes it from who had it before
_MIXED = -1


class ComparisonState(NamedTuple):
    """The tally, the units that have counted, and which ranking is shown; -1 as long as lists are mixed."""

    lists: Ints
    wins: Ints
    squares: Floats
    units: Array
    shown: Ints


class Comparison(Ranker):
    """Mixes the orders of several rankings in one list, and finds out which one users prefer.

    rankings: their names, the one that is shown today first. method: how lists are mixed, a key of `METHODS`.
    n_positions: how many items users see. test, error: of the verdict, as for `feedback.anytime.Tally`.
    n_features: the number of rankings, where they have no names. A request has a row for each item and a column for
    each ranking: the item's place in it, or anything that rises with it.
    """

    summary = "Mixes the orders of several rankings in one list, and finds out which one users prefer."
    no_baselines = "only a mixed list tells the rankings apart"
    n_positions = None
    n_rankings: int

    def __init__(
        self,
        *,
        rankings: Sequence[str] = (),
        n_features: int | None = None,
        n_positions: int = 10,
        method: str = "team-draft",
        test: Literal["sign", "bernstein"] = "sign",
        error: float = ERROR,
    ) -> None:
        names = [rankings] if isinstance(rankings, str) else list(rankings)
        if not names and n_features is not None:
            names = [f"ranking {i + 1}" for i in range(whole("n_features", n_features, at_least=2))]
        if len(names) < 2 or len(set(names)) < len(names) or not all(isinstance(one, str) for one in names):
            raise ValueError(f"rankings must be two names or more, none twice, got {rankings!r}")
        if n_features not in (None, len(names)):
            raise ValueError(f"n_features must be the number of rankings, {len(names)}, got {n_features!r}")
        self.rankings, self.named = names, bool(rankings)
        self.n_features = self.n_rankings = len(names)
        self.feedback = TopClicks(whole("n_positions", n_positions, at_least=1))
        self.mixing = METHODS[one_of("method", method, METHODS)]()
        self.tally = Tally(len(names), error=error, test=test)
        tally = self.tally
        units = np.zeros(_UNITS, np.uint32)
        self.state = ComparisonState(
            tally.lists, tally.wins, tally.squares, units, np.full(1, _MIXED, np.int64)
        )

    @property
    def shown(self) -> str | None:
        """The ranking that is shown since the comparison was stopped; None as long as lists are mixed."""
        shown = int(self.state.shown[0])
        return None if shown == _MIXED else self.rankings[shown]

    def show(self, ranking: str) -> None:
        """Stop mixing, and show the order of one ranking."""
        self.state.shown[0] = self.rankings.index(ranking)

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        orders = self._orders(context)
        if self.shown is not None:
            order = orders[int(self.state.shown[0])]
            return Ranking(order, None, (np.zeros((self.n_rankings, 0)),))
        mixed = self.mixing.show(orders, n_positions=self.feedback.length(len(orders[0])), rng=rng)
        rest = orders[0][~np.isin(orders[0], mixed.items)]
        return Ranking(np.concatenate([mixed.items, rest]), None, (mixed.credits,), explored=True)

    def current(self, context: Any = None) -> Ints:
        return self._orders(context)[max(int(self.state.shown[0]), 0)]

    def _orders(self, context: Any) -> list[Ints]:
        places = read_features(context)
        if places.shape[1] != self.n_rankings:
            raise ValueError(f"context must have {self.n_rankings} columns, got {places.shape[1]}")
        return list(np.argsort(places, axis=0, kind="stable").T)

    def learn(self, ranking: Ranking, feedback: Any) -> None:
        n = len(ranking.items)
        clicks = self.feedback.check(feedback, n)
        worth, unit = ranking.memo[0] if ranking.memo else np.empty(0), ranking.memo[1:]
        m = self.feedback.length(n)
        if worth.shape == (self.n_rankings, 0):
            return  # it was not mixed
        if worth.shape not in ((self.n_rankings, m), (self.n_rankings, m, m)) or not np.isfinite(worth).all():
            raise ValueError(f"ranking.memo must be credits for {m} positions, got shape {worth.shape}")
        preferences = Multileaved(ranking.items[:m], worth).preferences(clicks)
        if unit:
            key = int(unit[0][0])
            place, mark = key % _UNITS, (key // _UNITS) % (1 << 32) or 1
            if self.state.units[place] == mark:
                return
            if preferences.any():
                self.state.units[place] = mark
        self.tally.add(preferences)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if not _MIXED <= saved["shown"][0] < self.n_rankings:
            raise ValueError(f"saved state 'shown' must be the number of a ranking, got {saved['shown']}")

    def example_context(self, rng: np.random.Generator) -> Any:
        return rng.random((int(rng.integers(2, 9)), self.n_rankings))

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, rankings: Sequence[str] = (), **parameters: Any) -> int:
        return 4 * _UNITS + 16 * max(len(rankings), 2) ** 2


def unit_key(unit: str | None) -> bytes | None:
    """What the log has of a unit: enough to know it again, and not its name."""
    return None if unit is None else hashlib.blake2b(unit.encode(), digest_size=8).digest()


def comparison_of(fold: Fold) -> Comparison | None:
    """The comparison that a log is of; None where it is a ranker's."""
    return fold.ranker if isinstance(fold.ranker, Comparison) else None
