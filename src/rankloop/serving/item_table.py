"""The table of items of one ranker: place, shown, observed, positive, and the mean of its feedback."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rankloop.serving.api import ItemRow, ItemTableAnswer
from rankloop.serving.errors import RequestError
from rankloop.serving.item_counts import OBSERVED, POSITIVE, SHOWN, SQUARES, SUM, mean_interval
from rankloop.serving.log.fold import Fold
from rankloop.serving.served_ranker import ServedRanker

_MOST = 10_000
_SORTS: dict[str, Callable[[ItemRow], Any]] = {
    "order": lambda row: row.place or math.inf,
    "name": lambda row: row.item,
    "shown": lambda row: -row.shown,
    "observed": lambda row: -row.observed,
    "positive": lambda row: -row.positive,
    "estimate": lambda row: math.inf if row.estimate is None else -row.estimate,
}


def item_table(served: ServedRanker, *, search: str, sort: str, limit: str) -> ItemTableAnswer:
    """The items whose names contain `search`, sorted, at most `limit` of them."""
    if sort not in _SORTS:
        raise RequestError(f"sort must be one of {', '.join(_SORTS)}, got {sort!r}", field="sort")
    if not limit.isdecimal() or not 1 <= int(limit) <= _MOST:
        raise RequestError(f"limit must be between 1 and {_MOST:,}, got {limit!r}", field="limit")
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
    return ItemTableAnswer(rows[: int(limit)], len(numbers), fold.item_counts.since)


def _order(fold: Fold) -> list[str]:
    """The order that the ranker holds best now, of items whose features are all stored."""
    catalogue = fold.stored
    if fold.has_items or catalogue.n_columns != fold.ranker.n_features or not catalogue.present:
        return fold.current()
    rows = catalogue.vectors(np.array(list(catalogue.present.values())))
    names = list(catalogue.present)
    return [names[i] for i in fold.ranker.current(rows).tolist()]


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
