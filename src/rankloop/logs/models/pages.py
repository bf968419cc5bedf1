"""Pages as the fits take them: items numbered query by query, and the counts that every fit begins with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback import Sessions
from rankloop.logs.models.fitted import pair_numbers

Numbers = NDArray[np.float64]


class Pages(NamedTuple):
    """Pages, with a number for each (query, item) that occurs, -1 where nothing was shown."""

    log: Sessions
    pairs: NDArray[np.int64]
    clicks: NDArray[np.int8]
    codes: NDArray[np.int64]
    query: NDArray[np.int64]  # of each pair

    @property
    def n_pairs(self) -> int:
        """How many (query, item) there are."""
        return len(self.codes)

    @property
    def items(self) -> tuple[tuple[str, str], ...]:
        """Query and item of each pair, by name."""
        of = zip(self.query.tolist(), (self.codes % self.log.n_items).tolist(), strict=True)
        return tuple((self.log.query_ids[q], self.log.item_ids[i]) for q, i in of)

    def by_pair(self, which: NDArray[np.bool_]) -> Numbers:
        """For each pair, how many of its places are in `which`."""
        return np.bincount(self.pairs[which], minlength=self.n_pairs).astype(np.float64)


class Seen(NamedTuple):
    """Counts that take for granted that users leave with their last click, and read everything without one."""

    hits: Numbers  # by pair: clicks
    tries: Numbers  # by pair: places at or above the last click
    last: Numbers  # by pair: last clicks
    last_at: Numbers  # by position: last clicks, where something was shown further down
    clicks_at: Numbers  # by position: clicks, where something was shown further down


def numbered(log: Sessions) -> Pages:
    """Number the items of the pages."""
    shown = log.items >= 0
    wide = log.queries[:, None].astype(np.int64) * log.n_items + log.items
    size = log.n_queries * log.n_items
    seen = wide[shown]
    codes = np.flatnonzero(np.bincount(seen, minlength=size)) if size <= 4 * seen.size else np.unique(seen)
    return Pages(log, pair_numbers(log, codes), log.clicks, codes, codes // log.n_items)


def last_click(clicks: NDArray[np.int8]) -> NDArray[np.int64]:
    """The position of the last click of each page, -1 without one."""
    m = clicks.shape[1]
    last: NDArray[np.int64] = m - 1 - np.argmax(clicks[:, ::-1], axis=1)
    return np.where(clicks.any(axis=1), last, -1)


def seen_until_last_click(pages: Pages) -> Seen:
    """Count."""
    clicked, shown = pages.clicks == 1, pages.pairs >= 0
    last = last_click(pages.clicks)[:, None]
    places = np.arange(pages.clicks.shape[1])
    looked = shown & ((places <= last) | (last < 0))
    inside = np.zeros_like(shown)
    inside[:, :-1] = shown[:, 1:]
    is_last = clicked & (places == last)
    return Seen(
        pages.by_pair(clicked),
        pages.by_pair(looked),
        pages.by_pair(is_last),
        (is_last & inside).sum(axis=0).astype(np.float64),
        (clicked & inside).sum(axis=0).astype(np.float64),
    )
