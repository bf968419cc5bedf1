"""Lists from some of a ranker's items: a smaller ranker that knows what it knows, and what is learnt put back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankloop import base, measures
from rankloop.base import Array, Floats, Ints, Ranking
from rankloop.compiled import CompiledRanker

MISSED = "missed"  # among saved arrays


def fitting(given: Mapping[str, Any], n_items: int) -> dict[str, Any]:
    """The arguments that look at the top of a list, for a list that may be shorter."""
    cut: dict[str, Any] = {}
    if isinstance(given.get("k"), int):
        cut["k"] = min(given["k"], n_items)
    name = getattr(given.get("measure"), "name", given.get("measure"))
    if isinstance(name, str) and "@" in name:
        measure = measures.get(name)
        cut["measure"] = measure.at(min(measure.cutoff or n_items, n_items)).name
    return cut


class SomeItems(CompiledRanker):
    """A compiled ranker of fixed items that can be asked for a list of some of them.

    The list is drawn by a smaller ranker of the same class, over the candidates and the free positions alone, so its
    propensities are exact. A subclass says in `carry` what the smaller one knows, and in `absorb` what comes back.
    """

    no_candidates: str = ""
    n_items: int

    def among(self, items: Ints, positions: Ints) -> Any:
        """A ranker over `items` for `positions` that knows what this one knows about them."""
        part = self.part_kind()(**self.part_arguments(len(items), positions))
        part.carry(self, items, positions)
        return part

    def part_kind(self) -> type[SomeItems]:
        """The class of a ranker over some of the items."""
        return type(self)

    def part_arguments(self, n_items: int, positions: Ints) -> dict[str, Any]:
        """The constructor's arguments for a ranker over some of the items."""
        given = self.get_params() | {"n_items": n_items}
        if "n_positions" in given:
            given["n_positions"] = len(positions)
        return given | fitting(given, n_items)

    def rank_among(self, items: Ints, positions: Ints, *, rng: np.random.Generator) -> Ranking:
        self.check_takes_candidates()
        found = self.among(items, positions).rank(rng=rng)
        return Ranking(items[found.items], found.propensities, found.memo, found.explored)

    def current_among(self, items: Ints, positions: Ints) -> Ints:
        self.check_takes_candidates()
        best: Ints = items[self.among(items, positions).current()]
        return best

    def learn_among(self, ranking: Ranking, feedback: ArrayLike, items: Ints, positions: Ints) -> None:
        self.check_takes_candidates()
        part = self.among(items, positions)
        own = inside(ranking, items)
        part.learn(own, feedback)
        self.absorb(part, items, positions, own, part.feedback.check(feedback, len(own.items)))

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        """Take over what the smaller ranker has learnt from one list."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it learns from a part")


def inside(ranking: Ranking, items: Ints) -> Ranking:
    """The same ticket with the numbers of the smaller ranker; candidates that are not in it at its end.

    The end may have been cut off where fewer positions are shown than candidates are ordered; nothing of it is learnt.
    """
    place = {item: i for i, item in enumerate(items.tolist())}
    try:
        own = np.array([place[item] for item in ranking.items.tolist()], np.int64)
    except KeyError:
        raise ValueError(f"ranking.items must be candidates, {items}, got {ranking.items}") from None
    return Ranking(own, ranking.propensities, ranking.memo, ranking.explored)


def with_newcomers(ranking: Ranking, before: Ints, *, n_items: int, n_top: int) -> Ranking | None:
    """A ranking of all items from before a change of items, of which `learn` reads the top and the memo alone."""
    if len(ranking.memo[0]) != n_top or (before[:n_top] < 0).any():
        return None
    kept = before[before >= 0]
    rest = np.setdiff1d(np.arange(n_items), kept)
    items = np.concatenate([kept, rest]).astype(np.int64)
    # The list as it is now was never drawn: its propensities stand for nothing.
    return Ranking(items, np.ones(n_items), ranking.memo, ranking.explored)


class SumsByItem(SomeItems):
    """One sum over time for each item, compared with the others' sums.

    A round in which an item was not a candidate must count neither for nor against it: its sum then grows by its own
    mean so far. Sums are thus rounds x mean over the rounds in which the item was a candidate, and these means are
    unbiased. `missed` counts the other rounds; None as long as every item was a candidate in every round.
    """

    missed: Ints | None = None

    def rounds_learnt(self) -> int:
        """How many rounds the sums count."""
        return int(self.state.t[0])

    def put_back(self, sums: Floats, learnt: Floats, items: Ints) -> None:
        """Write sums after a round with the candidates `items`, before that round is counted."""
        missed = np.zeros(self.n_items, np.int64) if self.missed is None else self.missed
        t = self.rounds_learnt()
        counted = (t - missed).astype(np.float64)
        added = np.zeros(self.n_items)
        added[items] = learnt
        offered = np.zeros(self.n_items, np.bool_)
        offered[items] = True
        raw = sums * (counted / t) if t else np.zeros(self.n_items)
        again = (t + 1.0) / (counted + 1.0) * (raw + added)
        whole = missed == 0
        grown = np.where(whole, sums + added, again)
        sums[:] = np.where(offered, grown, sums + sums / max(t, 1))
        self._set_missed(missed + ~offered)

    def _set_missed(self, missed: Ints | None) -> None:
        self.missed = missed
        self.fusable = missed is None  # the compiled loop does not know of missed rounds

    def carry_missed(self, old: Any, origin: Ints) -> None:
        """Take over which rounds each item missed; a new item none, as it begins level with the best."""
        if old.missed is not None:
            self._set_missed(np.where(origin >= 0, old.missed[np.maximum(origin, 0)], 0))

    def among(self, items: Ints, positions: Ints) -> Any:
        part = super().among(items, positions)
        part._set_missed(None)  # it counts one round only, which none of its items misses
        return part

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        if self.missed is None:
            super().learn(ranking, feedback)
            return
        every = np.arange(self.n_items)
        self.learn_among(ranking, feedback, every, every)

    def state_arrays(self) -> dict[str, Array]:
        found = super().state_arrays()
        return found if self.missed is None else found | {MISSED: self.missed.copy()}

    def load(self, saved: Mapping[str, Array] | str | os.PathLike[str]) -> None:
        if isinstance(saved, str | os.PathLike):
            saved = base.read_state(saved)
        if MISSED not in saved:
            super().load(saved)
            self._set_missed(None)
            return
        missed = np.asarray(saved[MISSED])
        t = np.asarray(saved.get("t", np.zeros(1))).max(initial=0)
        if missed.shape != (self.n_items,) or missed.dtype != np.int64:
            raise ValueError(
                f"saved state {MISSED!r} must be int64({self.n_items},), got {missed.dtype}{missed.shape}"
            )
        if not ((missed >= 0) & (missed <= t)).all():
            raise ValueError(
                f"saved state {MISSED!r} must count rounds, of which there are {t}, got {missed}"
            )
        super().load({name: value for name, value in saved.items() if name != MISSED})
        self._set_missed(missed.copy())
