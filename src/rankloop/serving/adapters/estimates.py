"""Estimates of the value of whole lists, and of regret, where only the top of each list was observed.

What makes it possible: the service knows with which probability it explored. An item's gain counts with the weight

    (mean discount of the item's position in what is shown) / (probability that exploration reveals the item),

and zero where exploration did not reveal it. Its mean over what could have been drawn is the list's mean value.

- "blocks": each item is explored once in a block of L rounds, at a round drawn evenly, so the probability is 1/L for
  every round (RTop1F). The mean discount of an item is the same in all rounds of a block, as the leader changes only
  between blocks; the mean over the block's shown lists stands for it. A block is one unit.
- "weights": the distribution that each list was drawn from is known (RTopKF, TopFTRL). A list is one unit.
- "told": full information needs no weights. "clicks": lists are judged by clicks. "top": where nothing else is known,
  by what was observed.

Units are close to independent, so their spread gives the confidence interval (of a ratio, as units differ in length).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranker, Ranking
from rankloop.serving.adapters.baselines import NeverLearning
from rankloop.serving.adapters.list_values import add_discounts, discounts, gains
from rankloop.serving.adapters.student import quantile
from rankloop.serving.api import Interval
from rankloop.serving.log.records import Decision, Packed, pack, unpack

Floats = NDArray[np.float64]
LENGTH, VALUE, VALUE2, VALUE_LENGTH, LENGTH2 = range(5)  # rows of `sums`
GAIN, OWN, GAIN2, GAIN_OWN, OWN2, GAIN_LENGTH, OWN_LENGTH = range(7)  # rows of `by_item`
_MOST_ITEMS = 2_000  # beyond, regret against a fixed order is not kept


def _form(ranker: Ranker, n_items: int) -> str:
    """What the value of a whole list is estimated from; the names stand in snapshots."""
    if ranker.feedback.kind == "clicks":
        return "clicks"
    if ranker.estimate_from == "weights" or (ranker.estimate_from == "blocks" and n_items):
        return ranker.estimate_from
    longest = n_items or _MOST_ITEMS
    return "told" if ranker.feedback.length(longest) == longest else "top"


class SavedEstimates(msgspec.Struct):
    """`Estimates` for a snapshot."""

    form: str
    k: int
    n_items: int
    units: int
    length: int
    sums: Packed
    by_item: Packed
    block: Packed
    never_learning: Packed


class Estimates:
    """Running sums over units: all that `report` needs, however long the log.

    sums: 5 x measures. by_item: halves x measures x 7 x items, empty where no items are fixed. The order that regret is
    measured from is chosen on one half of the units and evaluated on the other, so that luck is not counted twice.
    block: of the open block, two rows of summed discounts and one of relevance; length: its rounds, -1 where it is
    not whole. With "weights", block has two rows of summed gains and one of how many.
    """

    def __init__(self, form: str, *, k: int, n_items: int, n_measures: int = 2) -> None:
        self.form = form
        self.k = k
        self.n_items = n_items
        self.units = 0
        self.sums = np.zeros((5, n_measures))
        self.by_item = np.zeros((2, n_measures, 7, n_items if n_items <= _MOST_ITEMS else 0))
        self.block = np.zeros((3, n_items if form in ("blocks", "weights") else 0))
        self.length = 0
        self.never_learning = NeverLearning(n_measures)
        self._told: tuple[tuple[int, int], dict[str, float]] = ((-1, 0), {})
        self._lists: list[NDArray[np.int64]] = []  # of the open block, not summed yet

    @classmethod
    def of(cls, ranker: Ranker, *, n_items: int, fresh: bool) -> Estimates:
        """Nothing known yet."""
        form = _form(ranker, n_items)
        if form in ("clicks", "top"):
            return cls(form, k=1, n_items=0, n_measures=1)
        k = getattr(getattr(getattr(ranker, "learnable", None), "measure", None), "cutoff", None) or 5
        made = cls(form, k=min(k, n_items) if n_items else k, n_items=n_items)
        if form == "blocks":
            made._open_block(whole=fresh)
        return made

    def save(self) -> SavedEstimates:
        """For a snapshot."""
        if self._lists:
            self._sum_lists()
        return SavedEstimates(
            self.form,
            self.k,
            self.n_items,
            self.units,
            self.length,
            pack(self.sums),
            pack(self.by_item),
            pack(self.block),
            pack(self.never_learning.sums),
        )

    @classmethod
    def restore(cls, saved: SavedEstimates) -> Estimates:
        """What `save` wrote."""
        fresh = cls(saved.form, k=saved.k, n_items=saved.n_items)
        fresh.units, fresh.length = saved.units, saved.length
        fresh.sums, fresh.by_item, fresh.block = map(unpack, (saved.sums, saved.by_item, saved.block))
        fresh.never_learning.sums = unpack(saved.never_learning)
        return fresh

    @property
    def measures(self) -> tuple[str, ...]:
        """What is estimated."""
        alone = {"clicks": ("clicks",), "top": ("relevance of the top",)}
        return alone.get(self.form, ("dcg", f"precision@{self.k}"))

    def add(
        self,
        ranker: Ranker,
        ranking: Ranking,
        values: Floats,
        decision: Decision,
        before: tuple[int, ...],
    ) -> None:
        """Count one list that was learnt from; `before` is the ranker's block of exploration before it learnt."""
        if self.form in ("clicks", "top"):
            if self.form == "clicks" and ranking.propensities is not None and ranker.n_items is not None:
                self.never_learning.add_clicks(
                    values, ranking.items, ranking.propensities, n_items=ranker.n_items
                )
            self._add_unit(np.array([values.sum()]), 1)
        elif self.form == "weights" and self.n_items:
            self._add_weighed(ranking, values, decision)
        elif self.form == "weights":
            if decision.weights is not None:
                weights = np.frombuffer(decision.weights, "<f8").reshape(2, -1)
                self._add_unit((weights * gains(values)[:, : weights.shape[1]]).sum(axis=1), 1)
            if decision.explored:
                n = len(ranking.items)
                self.never_learning.add_seen(gains(values), ranking.items, discounts(n, min(self.k, n)))
        elif self.form == "told":
            own = discounts(len(values), self.k)
            earned = gains(values)
            self.never_learning.add(earned[:, np.argsort(ranking.items)], own, lists=1)
            if self.by_item.size and self.n_items == len(values):
                by_item = np.empty((2, 2, self.n_items))
                by_item[0][:, ranking.items] = earned
                by_item[1][:, ranking.items] = earned * own
                self._add_items(by_item[0], by_item[1], 1)
            self._add_unit((earned * own).sum(axis=1), 1)
        else:
            self._add_to_block(ranker, ranking, values, before)

    def add_part(self, values: Floats, next_block: bool) -> None:
        """Count a list that the ranker chose only in part: by what was observed, where nothing else is estimated."""
        if self.form in ("clicks", "top"):
            self._add_unit(np.array([values.sum()]), 1)
        elif self.form == "blocks":
            self.length = -1  # not every list of this block is of all items
            if next_block:
                self._open_block(whole=True)

    def _add_weighed(self, ranking: Ranking, values: Floats, decision: Decision) -> None:
        # The mean gain of an item so far, corrected by what was observed: unbiased whatever that mean is, since it does
        # not depend on this list, and with far less spread. A list from before a change of items counts no longer.
        if decision.weights is None or len(ranking.items) != self.n_items:
            return
        weights = np.frombuffer(decision.weights, "<f8").reshape(3, -1)
        top = ranking.items[: weights.shape[1]]
        earned = gains(values)[:, : len(top)]
        discount = discounts(self.n_items, self.k)
        gain = self.block[:2] / (self.block[2] + 1.0)
        more = earned - gain[:, top]
        own = np.empty_like(gain)
        own[:, ranking.items] = gain[:, ranking.items] * discount
        own[:, top] += more * weights[:2]
        gain[:, top] += more * weights[2]
        self.block[:2, top] += earned
        self.block[2, top] += 1.0
        self.never_learning.add(gain, discount, lists=1)
        if self.by_item.size:
            self._add_items(gain, own, 1)
        self._add_unit(own.sum(axis=1), 1)

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
        add_discounts(self.block[:2], self._lists, discounts(self.n_items, self.k))
        self._lists = []

    def _close_block(self) -> None:
        if self._lists:
            self._sum_lists()
        if self.length > 0 and not np.isnan(self.block[2]).any():
            # L times the gain that was seen once stands for the gains of all L rounds.
            gain = self.length * gains(self.block[2])
            own = gain * self.block[:2] / self.length
            self.never_learning.add(gain, discounts(self.n_items, self.k), lists=self.length)
            if self.by_item.size:
                self._add_items(gain, own, self.length)
            self._add_unit(own.sum(axis=1), self.length)
        self._open_block(whole=True)

    def _add_unit(self, value: Floats, length: int) -> None:
        sums = self.sums
        sums[LENGTH] += length
        sums[VALUE] += value
        sums[VALUE2] += value**2
        sums[VALUE_LENGTH] += value * length
        sums[LENGTH2] += length**2
        self.units += 1

    def _add_items(self, gain: Floats, own: Floats, length: int) -> None:
        half = self.by_item[self.units % 2]
        half[:, GAIN] += gain
        half[:, OWN] += own
        half[:, GAIN2] += gain**2
        half[:, GAIN_OWN] += gain * own
        half[:, OWN2] += own**2
        half[:, GAIN_LENGTH] += gain * length
        half[:, OWN_LENGTH] += own * length

    def value(self, which: int) -> Interval | None:
        """The mean value of the shown lists, by measure; None before there are two units."""
        n = self.units
        if n < 2:
            return None
        sums = self.sums[:, which]
        mean = sums[VALUE] / sums[LENGTH]
        spread = sums[VALUE2] - 2 * mean * sums[VALUE_LENGTH] + mean**2 * sums[LENGTH2]
        return self._interval(mean, spread * n / (n - 1) / sums[LENGTH] ** 2, sums[LENGTH])

    def _interval(self, mean: float, variance: float, length: float) -> Interval:
        reach = quantile(self.units - 1) * math.sqrt(max(variance, 0.0))
        return Interval(float(mean), float(mean - reach), float(mean + reach), int(length), self.units)

    def regret(self, which: int) -> Interval | None:
        """Regret per list against the best fixed order; None where it cannot be estimated."""
        if not self.by_item.size or self.units < 4:
            return None
        halves = self.by_item[:, which]
        discount = discounts(self.n_items, self.k)[which]
        total = variance = 0.0
        length, length2 = self.sums[LENGTH, which], self.sums[LENGTH2, which]
        for half, other in ((halves[0], halves[1]), (halves[1], halves[0])):
            weight = np.empty(self.n_items)
            weight[np.argsort(-other[GAIN], kind="stable")] = discount
            terms = weight * half[GAIN] - half[OWN]
            total += terms.sum()
            squares = weight**2 * half[GAIN2] - 2 * weight * half[GAIN_OWN] + half[OWN2]
            # Centred by length: half of the rounds are in each half, near enough.
            rate = terms / (length / 2)
            across = weight * half[GAIN_LENGTH] - half[OWN_LENGTH]
            variance += float((squares - 2 * rate * across + rate**2 * length2 / 2).sum())
        n = self.units
        return self._interval(total / length, variance * n / (n - 1) / length**2, length)

    def fixed(self, which: int, order: NDArray[np.int64] | None) -> Interval | None:
        """The value per list of always showing `order`; None for a random order each time."""
        if not self.by_item.size or self.units < 2:
            return None
        discount = discounts(self.n_items, self.k)[which]
        weight = np.full(self.n_items, discount.mean())
        if order is not None:
            weight[order] = discount
        sums = self.by_item[:, which].sum(axis=0)
        length, length2 = self.sums[LENGTH, which], self.sums[LENGTH2, which]
        rate = sums[GAIN] / length
        spread = weight**2 * (sums[GAIN2] - 2 * rate * sums[GAIN_LENGTH] + rate**2 * length2)
        n = self.units
        return self._interval(weight @ rate, spread.sum() * n / (n - 1) / length**2, length)

    def over_random(self, which: int) -> Interval | None:
        """The value per list beyond that of a random order; surer than either, as what both share cancels."""
        if not self.by_item.size or self.units < 2:
            return None
        mean = discounts(self.n_items, self.k)[which].mean()
        sums = self.by_item[:, which].sum(axis=0)
        length, length2 = self.sums[LENGTH, which], self.sums[LENGTH2, which]
        terms = sums[OWN] - mean * sums[GAIN]
        rate = terms / length
        squares = sums[OWN2] - 2 * mean * sums[GAIN_OWN] + mean**2 * sums[GAIN2]
        across = sums[OWN_LENGTH] - mean * sums[GAIN_LENGTH]
        spread = float((squares - 2 * rate * across + rate**2 * length2).sum())
        n = self.units
        return self._interval(terms.sum() / length, spread * n / (n - 1) / length**2, length)

    def points(self) -> dict[str, float]:
        """The estimates as they stand, flat, for a series: of each measure, and of random and unchanged lists."""
        counted = (self.units, self.never_learning.changes)
        if self._told[0] == counted:
            return self._told[1]
        told: dict[str, float] = {}
        for which, name in enumerate(self.measures):
            found = self.value(which)
            if found is not None:
                told |= {name: found.mean, f"{name}.low": found.low, f"{name}.high": found.high}
                told |= self.never_learning.points(which, name)
        self._told = (counted, told)
        return told

    def report(self) -> dict[str, dict[str, Interval | None]]:
        """Of every measure: value, also beyond random lists, regret, and the value of two orders that never change."""
        first = np.arange(self.n_items)
        return {
            "random": {name: self.fixed(which, None) for which, name in enumerate(self.measures)},
            "frozen": {name: self.fixed(which, first) for which, name in enumerate(self.measures)},
            "over_random": {name: self.over_random(which) for which, name in enumerate(self.measures)},
            "value": {name: self.value(which) for which, name in enumerate(self.measures)},
            "regret": {
                name: self.regret(which) if self.form not in ("clicks", "top") else None
                for which, name in enumerate(self.measures)
            },
        }


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
