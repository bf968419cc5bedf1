"""What each item of a catalogue was shown and got back: counts that follow from the log, for the table of items."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.serving.log.records import Decision, Packed, pack, unpack
from rankloop.serving.log.stored_features import items_shown

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
        """The five sums of one item."""
        self._count()
        if item >= self._sums.shape[1]:
            return [0.0] * 5
        found: list[float] = self._sums[:, item].tolist()
        return found

    def save(self) -> SavedItemCounts:
        """For a snapshot."""
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
