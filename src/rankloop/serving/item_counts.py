"""The items of a ranker: what each was shown and got back, counted from the log; their places and features."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.serving.admission import NotFound
from rankloop.serving.api import FeaturePart, ItemFeatures, ItemRow, ItemTableAnswer
from rankloop.serving.log.records import Decision, Packed, pack, unpack
from rankloop.serving.log.stored_features import items_shown

if TYPE_CHECKING:
    from rankloop.serving.log.fold import Fold
    from rankloop.serving.served_ranker import ServedRanker

_Z = 1.959963984540054  # of the two-sided 95% interval
SHOWN, OBSERVED, POSITIVE, SUM, SQUARES = range(5)
_AT_ONCE = 64  # lists
_INT = np.dtype("<i4")


class SavedItemCounts(msgspec.Struct):
    """`ItemCounts` for a snapshot."""

    since: int
    sums: Packed


class ItemCounts:
    """For each item: lists that showed it, how often feedback on it was learnt, and what that was.

    since: the row after which it counts; more than 0 where the snapshot that it began from had no counts.
    Lists are counted some at a time, or when somebody asks: that costs a tenth, and comes to the same bytes.
    """

    def __init__(self, since: int = 0) -> None:
        self.since = since
        self._sums = np.zeros((5, 0))
        self._shown: list[bytes] = []  # int32
        self._observed: list[tuple[bytes, NDArray[np.float64]]] = []

    def _reach(self, n_items: int) -> None:
        if self._sums.shape[1] < n_items:
            grown = np.zeros((5, max(n_items, 2 * self._sums.shape[1])))
            grown[:, : self._sums.shape[1]] = self._sums
            self._sums = grown

    def shown(self, decision: Decision, *, n_items: int) -> None:
        """A list was drawn; nothing is counted where there is no catalogue, because each request brings its items."""
        if n_items:
            self._reach(n_items)
            self._shown.append(_numbers(decision))
            if len(self._shown) == _AT_ONCE:
                self._count()

    def observed(self, decision: Decision, values: NDArray[np.float64], *, n_items: int) -> None:
        """Feedback on the first items of a list was learnt."""
        if not n_items or decision.candidates is not None:
            return
        self._reach(n_items)
        self._observed.append((_numbers(decision)[: _INT.itemsize * len(values)], values))
        if len(self._observed) == _AT_ONCE:
            self._count()

    def _count(self) -> None:
        """Count what waits, in the order in which it came: sums of floats depend on it."""
        sums = self._sums
        if self._shown:
            np.add.at(sums[SHOWN], np.frombuffer(b"".join(self._shown), _INT), 1.0)
            self._shown = []
        if self._observed:
            items = np.frombuffer(b"".join([one for one, _ in self._observed]), _INT)
            values = np.concatenate([told for _, told in self._observed])
            np.add.at(sums[OBSERVED], items, 1.0)
            np.add.at(sums[POSITIVE], items, (values > 0).astype(np.float64))
            np.add.at(sums[SUM], items, values)
            np.add.at(sums[SQUARES], items, values * values)
            self._observed = []

    def of(self, item: int) -> list[float]:
        self._count()
        if item >= self._sums.shape[1]:
            return [0.0] * 5
        found: list[float] = self._sums[:, item].tolist()
        return found

    def save(self) -> SavedItemCounts:
        self._count()
        return SavedItemCounts(self.since, pack(self._sums))

    @classmethod
    def restore(cls, saved: SavedItemCounts | None, *, applied: int) -> ItemCounts:
        """What `save` wrote; where it wrote nothing, counts begin after row `applied`."""
        if saved is None:
            return cls(applied)
        found = cls(saved.since)
        found._sums = np.array(unpack(saved.sums))
        return found


def _numbers(decision: Decision) -> bytes:
    """The numbers of the shown items in the catalogue (int32)."""
    if decision.stored is None and decision.candidates is None:
        return decision.shown
    return items_shown(decision).tobytes()


def mean_interval(n: float, total: float, squares: float) -> tuple[float, float, float] | None:
    """A mean and its 95% interval: Wilson's where all values are 0 or 1, else the normal one; None without values.

    >>> [round(x, 3) for x in mean_interval(10, 5.0, 5.0)]
    [0.5, 0.237, 0.763]
    >>> [round(x, 3) for x in mean_interval(4, 8.0, 20.0)]
    [2.0, 0.868, 3.132]
    """
    if n <= 0:
        return None
    mean = total / n
    if total == squares and 0.0 <= mean <= 1.0:
        middle = (mean + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
        half = _Z * math.sqrt(mean * (1 - mean) / n + _Z * _Z / (4 * n * n)) / (1 + _Z * _Z / n)
        return mean, min(mean, max(0.0, middle - half)), max(mean, min(1.0, middle + half))
    if n < 2:
        return mean, -math.inf, math.inf
    half = _Z * math.sqrt(max(0.0, squares - n * mean * mean) / (n - 1) / n)
    return mean, mean - half, mean + half


_SORTS: dict[str, Callable[[ItemRow], Any]] = {
    "order": lambda row: row.place or math.inf,
    "name": lambda row: row.item,
    "shown": lambda row: -row.shown,
    "observed": lambda row: -row.observed,
    "positive": lambda row: -row.positive,
    "estimate": lambda row: math.inf if row.estimate is None else -row.estimate,
}


def item_table(served: ServedRanker, *, search: str, sort: str, limit: int) -> ItemTableAnswer:
    """The items whose names contain `search`, sorted, at most `limit` of them."""
    fold, wanted = served.fold, search.casefold()
    numbers = {name: fold.number[name] for name in fold.items} if fold.has_items else fold.stored.present
    place = {name: i for i, name in enumerate(_order(fold), start=1)}
    rows = [
        _row(served, name, number, place.get(name, 0))
        for name, number in numbers.items()
        if wanted in name.casefold()
    ]
    rows.sort(key=_SORTS["order"])
    rows.sort(key=_SORTS[sort])
    return ItemTableAnswer(rows[:limit], len(numbers), fold.item_counts.since)


def _order(fold: Fold) -> list[str]:
    """The order that the ranker holds best now, of items whose features are all stored."""
    catalogue, ranker = fold.stored, fold.ranker
    one_for_all = not (fold.has_items or ranker.takes_queries) and catalogue.n_columns == ranker.n_features
    if not one_for_all or not catalogue.present:
        return fold.current()
    rows = catalogue.vectors(np.array(list(catalogue.present.values())))
    names = list(catalogue.present)
    return [names[i] for i in ranker.current(rows).tolist()]


def _row(served: ServedRanker, name: str, number: int, place: int) -> ItemRow:
    sums = served.fold.item_counts.of(number)
    mean, low, high = mean_interval(sums[OBSERVED], sums[SUM], sums[SQUARES]) or (None, None, None)
    return ItemRow(
        name,
        place,
        int(sums[SHOWN]),
        int(sums[OBSERVED]),
        int(sums[POSITIVE]),
        mean,
        low if low is not None and math.isfinite(low) else None,
        high if high is not None and math.isfinite(high) else None,
    )


def item_features(served: ServedRanker, item: str) -> ItemFeatures:
    """The features of one item."""
    catalogue = served.fold.stored
    if item not in catalogue.present:
        raise NotFound(f"{item!r} has no stored features", field="item")
    row = catalogue.vectors(np.array([catalogue.present[item]]))[0]
    weights = served.fold.ranker.weights_now()
    known = np.zeros(len(row)) if weights is None else weights[: len(row)]
    return ItemFeatures(item, catalogue.since(item), feature_parts(row, known, catalogue.feature_names))


def feature_parts(
    row: NDArray[np.float32], weights: NDArray[np.float64], names: list[str]
) -> list[FeaturePart]:
    """What each feature of an item adds to its score."""
    return [
        FeaturePart(k, value, weight, value * weight, names[k] if k < len(names) else None)
        for k, (value, weight) in enumerate(zip(row.tolist(), weights.tolist(), strict=True))
    ]
