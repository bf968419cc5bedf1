"""What lists are worth, each with an interval that may be watched at any time; see `rankloop.serving.confidence`.

First what is observed: clicks per list, or the relevance of the positions that reveal theirs. That needs no weights.

Whole lists, where only the top of each is observed, are estimated from what exploration reveals. An item's gain counts

    (mean discount of the item's position in what is shown) / (probability that exploration reveals the item),

and zero where it was not revealed. The mean of this over what could have been drawn is the list's mean value.

- "blocks": each item is explored once in a block of L rounds, at a round drawn evenly, so the probability is 1/L for
  every round (RTop1F). The mean discount of an item is the same in all rounds of a block, as the leader changes only
  between blocks; the mean over the block's shown lists stands for it. A block is one unit.
- "weights": the distribution that each list was drawn from is known (RTopKF, TopFTRL). A list is one unit.
- "told": full information needs no weights, and gives the regret, too. "observed": nothing more can be said.

As exploration fades the weights grow, and few of them say little: an estimate is not shown where its interval is wider
than a quarter of its upper end.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop import measures
from rankloop.base import Ranker, Ranking
from rankloop.serving.confidence import ERROR, Watched, reach
from rankloop.serving.log.records import Decision, Packed, pack, unpack
from rankloop.serving.verdict_answers import Interval

Floats = NDArray[np.float64]
_MOST_ITEMS = 2_000  # beyond, regret against a fixed order is not kept
_MOST_GRADE = 31  # beyond, a grade is no bound that says anything
_WIDEST = 0.25  # share of its upper end: an interval that is wider is not shown


def _form(ranker: Ranker, n_items: int) -> str:
    """What the value of a whole list is estimated from; the names stand in snapshots."""
    if ranker.feedback.kind == "clicks":
        return "clicks"
    if ranker.estimate_from == "weights" or (ranker.estimate_from == "blocks" and n_items):
        return ranker.estimate_from
    longest = n_items or _MOST_ITEMS
    return "told" if ranker.feedback.length(longest) == longest else "top"


class SavedEstimates(msgspec.Struct):
    """`Estimates` for a snapshot. Older snapshots have sums that say less: counting begins anew from them."""

    form: str
    k: int
    n_items: int
    largest: int = 0
    watched: dict[str, Watched] = {}
    by_item: Packed | None = None
    block: Packed | None = None
    length: int = -1


class Estimates:
    """Running sums: all that `report` needs, however long the log.

    sums: by measure, the observed one first. by_item: gains of each item and squares of what they differ from their
    mean so far, by measure; only where everything is told of fixed items.
    block: of the open block, two rows of summed discounts and one of relevance; length: its rounds, -1 where it is
    not whole.
    """

    def __init__(self, form: str, *, k: int, n_items: int, largest: int) -> None:
        self.form = form
        self.k = k
        self.n_items = n_items
        self.largest = largest  # the largest grade; 0 where there is no bound that says anything
        self.sums = {name: Watched() for name in self.measures}
        self.by_item = np.zeros((2, 2, n_items if form == "told" and n_items <= _MOST_ITEMS else 0))
        self.block = np.zeros((3, n_items if form == "blocks" else 0))
        self.length = 0
        self._told: tuple[int, dict[str, float]] = (0, {})
        self._lists: list[NDArray[np.int64]] = []  # of the open block, not summed yet

    @classmethod
    def of(cls, ranker: Ranker, *, n_items: int, fresh: bool) -> Estimates:
        k = getattr(getattr(getattr(ranker, "learnable", None), "measure", None), "cutoff", None) or 5
        largest = ranker.max_grade or 0
        made = cls(
            _form(ranker, n_items),
            k=min(k, n_items) if n_items else k,
            n_items=n_items,
            largest=largest if largest <= _MOST_GRADE else 0,
        )
        made._open_block(whole=fresh)
        return made

    def save(self) -> SavedEstimates:
        self._sum_lists()
        by_item, block = pack(self.by_item), pack(self.block)
        return SavedEstimates(
            self.form, self.k, self.n_items, self.largest, self.sums, by_item, block, self.length
        )

    @classmethod
    def restore(cls, saved: SavedEstimates, ranker: Ranker) -> Estimates:
        """What `save` wrote; it may go on counting in what was saved."""
        if not saved.watched or saved.by_item is None or saved.block is None:
            return cls.of(ranker, n_items=saved.n_items, fresh=False)
        fresh = cls(saved.form, k=saved.k, n_items=saved.n_items, largest=saved.largest)
        fresh.sums = saved.watched
        fresh.by_item, fresh.block = unpack(saved.by_item), unpack(saved.block)
        fresh.length = saved.length
        return fresh

    @property
    def measures(self) -> tuple[str, ...]:
        """What may be estimated, the one that is observed first."""
        precision = f"precision@{self.k}"
        if self.form == "clicks":
            return ("clicks",)
        if self.form == "told":
            return ("dcg", precision) if self.largest else (precision,)
        if not self.largest:
            return ("relevant",) if self.form == "top" else ("relevant", precision)
        return ("relevance",) if self.form == "top" else ("relevance", "dcg", precision)

    def _gains(self, relevance: Floats) -> Floats:
        """By measure: 2^r - 1 for DCG, and for Precision whether there is any."""
        return np.stack([np.exp2(relevance) - 1.0 if self.largest else relevance, (relevance > 0) * 1.0])

    @property
    def _most(self) -> tuple[float, float]:
        return 2.0**self.largest - 1.0, 1.0

    def add(
        self,
        ranker: Ranker,
        ranking: Ranking,
        values: Floats,
        decision: Decision,
        before: tuple[int, ...],
    ) -> None:
        """Count one list that was learnt from; `before` is the ranker's block of exploration before it learnt."""
        self._add_observed(values)
        if self.form == "weights" and decision.weights is not None:
            n = len(ranking.items)
            weights = np.frombuffer(decision.weights, "<f8").reshape(3 if self.n_items else 2, -1)[:2]
            if n == self.n_items or not self.n_items:
                earned = self._gains(values)[:, : weights.shape[1]]
                missed = np.array(self._most)[:, None] - earned
                of_list = discounts(n, min(self.k, n)).sum(axis=1)
                self._add_whole((weights * earned).sum(axis=1), (weights * missed).sum(axis=1), of_list)
        elif self.form == "told":
            own = discounts(len(values), self.k)
            earned = self._gains(values)
            got, most = (earned * own).sum(axis=1), own.sum(axis=1) * self._most
            if self.by_item.shape[2] == len(values):
                self._add_items(ranking.items, earned)
            self._add_whole(got, most - got, own.sum(axis=1))
        elif self.form == "blocks":
            self._add_to_block(ranker, ranking, values, before)

    def add_part(self, values: Floats, next_block: bool) -> None:
        """Count a list that the ranker chose only in part: by what was observed."""
        self._add_observed(values)
        if self.form == "blocks":
            self.length = -1  # not every list of this block is of all items
            if next_block:
                self._open_block(whole=True)

    def _add_observed(self, values: Floats) -> None:
        if self.form == "told" or not len(values):
            return
        name = self.measures[0]
        if name == "clicks":
            got, most = float(np.add.reduce(values)), float(len(values))
        elif name == "relevance":
            got, most = float(np.add.reduce(values)) / len(values), float(self.largest)
        else:
            got, most = np.count_nonzero(values) / len(values), 1.0
        self.sums[name].add(got, most - got, most)

    def _add_whole(self, got: Floats, missed: Floats, discount: Floats, *, lists: int = 1) -> None:
        for which, name in ((0, "dcg"), (1, f"precision@{self.k}")):
            if name in self.sums:
                possible = lists * float(discount[which]) * self._most[which]
                self.sums[name].add(float(got[which]), float(missed[which]), possible, lists=lists)

    def _add_items(self, items: NDArray[np.int64], earned: Floats) -> None:
        gains, n = np.empty_like(earned), self.sums[self.measures[-1]].n
        gains[:, items] = earned
        predicted = self.by_item[0] / n if n else np.array(self._most)[:, None] / 2
        self.by_item[1] += (gains - predicted) ** 2
        self.by_item[0] += gains

    def _open_block(self, *, whole: bool) -> None:
        self.block[:2], self.block[2] = 0.0, np.nan
        self._lists = []
        self.length = 0 if whole else -1

    def _add_to_block(
        self, ranker: Ranker, ranking: Ranking, values: Floats, before: tuple[int, ...]
    ) -> None:
        if self.length >= 0:
            self._lists.append(ranking.items)
            gain = self.block[2]
            for item, value in zip(
                ranking.items[: ranker.explored_items(ranking)].tolist(), values.tolist(), strict=False
            ):
                if math.isnan(gain[item]):
                    gain[item] = value
            self.length += 1
        if ranker.exploration_block() != before:
            self._close_block()

    def _sum_lists(self) -> None:
        if self._lists:
            items = np.concatenate(self._lists)
            for summed, weight in zip(self.block, discounts(self.n_items, self.k), strict=False):
                np.add.at(summed, items, np.tile(weight, len(self._lists)))
            self._lists = []

    def _close_block(self) -> None:
        self._sum_lists()
        if self.length > 0 and not np.isnan(self.block[2]).any():
            # The one gain that was seen stands for the gains of all L rounds.
            earned = self._gains(self.block[2])
            missed = np.array(self._most)[:, None] - earned
            got, lost = (earned * self.block[:2]).sum(axis=1), (missed * self.block[:2]).sum(axis=1)
            of_list = discounts(self.n_items, self.k).sum(axis=1)
            self._add_whole(got, lost, of_list, lists=self.length)
        self._open_block(whole=True)

    def value(self, name: str) -> Interval | None:
        """The mean value of the shown lists by one measure, within what is possible; None where too little is known."""
        sums = self.sums[name]
        found = sums.bounds()
        if found is None:
            return None
        most = sums.possible / sums.n
        low, high = max(found.low, 0.0), min(found.high, most)
        observed = name == self.measures[0] or self.form == "told"
        if low > high or (not observed and high - low > _WIDEST * high):
            return None
        return Interval(min(max(found.mean, low), high), low, high, sums.n)

    def regret(self, name: str) -> Interval | None:
        """Regret per list against the best fixed order; None where not everything is told of fixed items."""
        which, sums = int(name != "dcg"), self.sums[name]
        n, m, most = sums.n, self.by_item.shape[2], self._most[int(name != "dcg")]
        value = sums.bounds(ERROR / 2)
        if not (n and m) or value is None:
            return None
        gains, squares = self.by_item[0, which] / most, self.by_item[1, which] / most**2
        # The error is shared by the value and both bounds of each item, which hold together.
        far = reach({0: squares}, ERROR / (4 * m))
        discount = np.sort(discounts(m, self.k)[which])[::-1] * most
        best, least, highest = (
            float(discount @ np.sort(one)[::-1])
            for one in (gains / n, np.maximum(gains - far, 0.0) / n, np.minimum((gains + far) / n, 1.0))
        )
        mean = best - sums.got.total / n
        return Interval(mean, min(least - value.high, mean), max(highest - value.low, mean), n)

    def why_not(self) -> dict[str, str]:
        """Of each measure that is not shown, the reason in a sentence."""
        told = {}
        if self.form not in ("clicks", "top"):
            if not self.largest:
                told["dcg"] = "The largest relevance is not known, which an interval of DCG needs."
            for name in self.measures:
                if self.value(name) is None:
                    told[name] = (
                        "Only the top of a list is observed, and too few lists explored what is below it: the interval "
                        "is wider than a quarter of its upper end."
                    )
        return told

    def points(self) -> dict[str, float]:
        """The estimates as they stand, flat, for a series; renewed each time there are 1 to 2% more lists."""
        n = self.sums[self.measures[0]].n
        step = 1 << max(0, n.bit_length() - 7)
        if self._told[1] and self._told[0] == n // step * step:
            return self._told[1]
        told: dict[str, float] = {}
        for name in self.measures:
            if (found := self.value(name)) is not None:
                told |= {name: found.mean, f"{name}.low": found.low, f"{name}.high": found.high}
        self._told = (n // step * step, told)
        return told

    def report(self) -> dict[str, dict[str, Interval]]:
        """Of every measure the value, the observed one first, and the regret; only what can be said."""
        values = {name: self.value(name) for name in self.measures}
        regrets = {name: self.regret(name) for name in self.measures if self.by_item.shape[2]}
        return {
            "value": {name: one for name, one in values.items() if one is not None},
            "regret": {name: one for name, one in regrets.items() if one is not None},
        }


@functools.lru_cache(maxsize=64)
def discounts(n: int, k: int) -> Floats:
    """The weight of a gain at each position: DCG's discount in the first row, Precision@k's 1/k in the second."""
    return np.stack([measures.get("dcg").discount(n), (np.arange(n) < k) / k])


def weigh(ranker: Ranker, features: Any, ranking: Ranking, *, k: int = 5) -> Floats | None:
    """For the items at the top of one list: mean discount / probability of being observed; by measure.

    Where the ranker has items of its own, a third row is 1 / probability. None where the ranker does not know the
    distribution that it drew the list from.
    """
    if ranker.estimate_from != "weights":
        return None
    n = len(ranking.items)
    by_position = _with_observed(n, min(k, n), ranker.feedback.length(n))
    if (mean := ranker.mean_by_position(features, ranking, by_position)) is None:
        return None
    weights: Floats = mean[:2] / mean[2]
    return weights if ranker.n_items is None else np.vstack([weights, 1.0 / mean[2]])


@functools.lru_cache(maxsize=256)
def _with_observed(n: int, k: int, n_observed: int) -> Floats:
    return np.vstack([discounts(n, k), np.arange(n) < n_observed])
