"""How good are the lists, when only their top was ever told? Estimates of the whole list's value, and of regret.

What makes it possible: the service knows with which probability it explored. An item's gain counts with the weight

    (mean discount of the item's position in what is shown) / (probability that exploring reveals the item),

and zero where exploring did not reveal it. The mean of that, over what could have been drawn, is the list's mean value.

- RTop1F explores each item once in a block of L rounds, at a round drawn evenly: the probability is 1/L for every
  round. The mean discount of an item is the same in all rounds of a block, as the leader changes only between blocks;
  the mean over the block's shown lists stands for it. A block is one unit.
- RTopKF shows its greedy list, or with probability gamma a random one: both numbers are known. A list is one unit.
- Rankers that are told everything need no weights. Rankers that hear clicks are judged by clicks.

Units are close to independent, so their spread gives the confidence interval (of a ratio, as units differ in length).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranking
from rankloop.serving.adapters.baselines import NeverLearning
from rankloop.serving.log.records import Decision, Packed, pack, unpack

Floats = NDArray[np.float64]
LENGTH, VALUE, VALUE2, VALUE_LENGTH, LENGTH2 = range(5)  # rows of `sums`
GAIN, OWN, GAIN2, GAIN_OWN, OWN2, GAIN_LENGTH, OWN_LENGTH = range(7)  # rows of `by_item`
_MOST_ITEMS = 2_000  # beyond, regret against a fixed order is not kept


class Interval(msgspec.Struct, frozen=True):
    """A mean for each list, where 95 in 100 such intervals hold the truth, and what it rests on."""

    mean: float
    low: float
    high: float
    rounds: int
    units: int


@functools.lru_cache(maxsize=64)
def discounts(n: int, k: int) -> Floats:
    """What a gain counts for at each position: DCG's 1 / log2(position + 2) above, Precision@k's 1/k below."""
    positions = np.arange(n)
    return np.stack([1 / np.log2(positions + 2.0), (positions < k) / k])


def gains(relevance: Floats) -> Floats:
    """What a relevance counts for: 2^r - 1 for DCG, and for Precision whether there is any."""
    return np.stack([np.exp2(relevance) - 1.0, (relevance > 0).astype(np.float64)])


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
    measured from is chosen on one half of the units and judged on the other, so that luck is not counted twice.
    block: of the open block, two rows of summed discounts and one of relevance; length: its rounds, -1 where it is
    not whole.
    """

    def __init__(self, form: str, *, k: int, n_items: int, n_measures: int = 2) -> None:
        self.form = form
        self.k = k
        self.n_items = n_items
        self.units = 0
        self.sums = np.zeros((5, n_measures))
        self.by_item = np.zeros((2, n_measures, 7, n_items if n_items <= _MOST_ITEMS else 0))
        self.block = np.zeros((3, n_items if form == "blocks" else 0))
        self.length = 0
        self.never_learning = NeverLearning(n_measures)
        self._told: tuple[tuple[int, float], dict[str, float]] = ((-1, 0.0), {})

    @classmethod
    def of(cls, ranker: Any, *, n_items: int) -> Estimates:
        """Nothing known yet."""
        if ranker.feedback.kind == "clicks":
            return cls("clicks", k=1, n_items=0, n_measures=1)
        if n_items and ranker.feedback.length(n_items) < n_items and type(ranker).__name__ != "RTop1F":
            return cls("top", k=1, n_items=0, n_measures=1)
        k = getattr(getattr(getattr(ranker, "learnable", None), "measure", None), "cutoff", None) or 5
        kind = type(ranker).__name__
        if not n_items:
            return cls("weights" if kind == "RTopKF" else "told", k=k, n_items=0)
        fresh = cls("blocks" if kind == "RTop1F" else "told", k=min(k, n_items), n_items=n_items)
        if fresh.form == "blocks":
            fresh._open_block(whole=int(ranker.state.t[0]) == 0)
        return fresh

    def save(self) -> SavedEstimates:
        """For a snapshot."""
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
        """What `save` told."""
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

    def before(self, ranker: Any) -> tuple[int, int] | None:
        """Where a ranker with blocks stands; to be asked before it learns."""
        return (int(ranker.state.epoch[0]), int(ranker.state.block[0])) if self.form == "blocks" else None

    def add(
        self,
        ranker: Any,
        ranking: Ranking,
        values: Floats,
        decision: Decision,
        before: tuple[int, int] | None,
    ) -> None:
        """Something was learnt."""
        if self.form in ("clicks", "top"):
            if self.form == "clicks" and ranking.propensities is not None:
                self.never_learning.add_clicks(
                    values, ranking.items, ranking.propensities, n_items=ranker.n_items
                )
            self._add_unit(np.array([values.sum()]), 1)
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

    def _open_block(self, *, whole: bool) -> None:
        self.block[:2], self.block[2] = 0.0, np.nan
        self.length = 0 if whole else -1

    def _add_to_block(
        self, ranker: Any, ranking: Ranking, values: Floats, before: tuple[int, int] | None
    ) -> None:
        if self.length >= 0:
            self.block[:2, ranking.items] += discounts(self.n_items, self.k)
            if ranking.memo[0][0] > 0.0:
                k = ranker.params.k
                first = int(ranking.items[0]) // k * k
                top = ranking.items[: min(k, self.n_items - first)]
                fresh = np.isnan(self.block[2, top])
                self.block[2, top[fresh]] = values[: len(top)][fresh]
            self.length += 1
        if self.before(ranker) != before:
            self._close_block()

    def _close_block(self) -> None:
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
        reach = _quantile(self.units - 1) * math.sqrt(max(variance, 0.0))
        return Interval(float(mean), float(mean - reach), float(mean + reach), int(length), self.units)

    def regret(self, which: int) -> Interval | None:
        """What the best fixed order would have been worth more, for each list; None where that cannot be told."""
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
        """What always showing `order` would have been worth, for each list; None for a random order each time."""
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

    def points(self) -> dict[str, float]:
        """The estimates as they stand, flat, for a series: of each measure, and of random and unchanged lists."""
        counted = (self.units, self.never_learning.lists)
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
        """Of every measure: value, regret, and the value of random lists and of the order of the beginning."""
        first = np.arange(self.n_items)
        return {
            "random": {name: self.fixed(which, None) for which, name in enumerate(self.measures)},
            "frozen": {name: self.fixed(which, first) for which, name in enumerate(self.measures)},
            "value": {name: self.value(which) for which, name in enumerate(self.measures)},
            "regret": {
                name: self.regret(which) if self.form not in ("clicks", "top") else None
                for which, name in enumerate(self.measures)
            },
        }


def weigh(ranker: Any, features: NDArray[Any], ranking: Ranking, *, k: int = 5) -> Floats | None:
    """For each list of RTopKF: mean discount / probability of being seen, of the items at its top; by measure.

    Ties in score are in every order equally likely, for the discount and for the probability alike.
    """
    if type(ranker).__name__ != "RTopKF":
        return None
    n = len(features)
    seen = ranker.feedback.length(n)
    gamma = float(ranking.memo[0][1])
    scores = features @ ranker.state.w
    discount = discounts(n, min(k, n))
    reached = np.cumsum(np.hstack([np.zeros((3, 1)), np.vstack([discount, np.arange(n) < seen])]), axis=1)
    top = scores[ranking.items[:seen]]
    ordered = np.sort(-scores)
    first, last = np.searchsorted(ordered, -top, "left"), np.searchsorted(ordered, -top, "right")
    greedy = (reached[:, last] - reached[:, first]) / (last - first)
    shown = (1 - gamma) * greedy[:2] + gamma * discount.mean(axis=1, keepdims=True)
    chance = (1 - gamma) * greedy[2] + gamma * seen / n
    weights: Floats = shown / chance
    return weights


def _quantile(freedom: int) -> float:
    """The 97.5% point of Student's t, by its expansion around the normal's.

    >>> round(_quantile(10), 2), round(_quantile(1000), 2)
    (2.23, 1.96)
    """
    z = 1.959964
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
