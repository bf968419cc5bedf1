"""Pages one by one, each with its query, its items and its clicks: for click models that counts are not enough for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import numbers, share, whole
from rankloop.feedback.click_log import ClickLog
from rankloop.feedback.shown_lists import ShownLists, numbered


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sessions(ShownLists):
    """Result pages in the order of the log: what each showed at which position, and what was clicked.

    Parameters
    ----------
    items : ndarray of int32
        Item numbers, a row for each page, a column for each position. Shorter pages end in -1.
    clicks : ndarray of int8
        0 or 1 for each of them; 0 where nothing was shown.
    queries : ndarray of int32, optional
        The query of each page, as an index into `query_ids`; left out, all pages have the same query.
    order : ndarray of int16, optional
        When each item was first clicked: 1 for the first click of the page, 2 for the next, 0 without a click. None
        where the log does not tell.
    query_ids : tuple of str, optional
        What the queries are called.
    item_ids : tuple of str, optional
        What the items are called; left out, their numbers.
    bad_rows : mapping of str to int, optional
        Rows of the source that were left out, by reason.
    name : str, optional
        What to call it in a figure.

    Examples
    --------
    >>> pages = Sessions(items=[[0, 1], [1, 0], [1, -1]], clicks=[[1, 0], [0, 1], [0, 0]], item_ids=("cat", "dog"))
    >>> pages
    Sessions('sessions': 3 pages of up to 2, 1 query, 2 items, 2 clicks)
    >>> pages.count().matrices()[0]
    array([[1, 1],
           [2, 1]])
    """

    items: NDArray[np.int32]
    clicks: NDArray[np.int8]
    queries: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    order: NDArray[np.int16] | None = None
    query_ids: tuple[str, ...] = ()
    item_ids: tuple[str, ...] = ()
    bad_rows: Mapping[str, int] = field(default_factory=dict)
    name: str = "sessions"

    def __post_init__(self) -> None:
        items = _whole("items", self.items)
        if items.ndim != 2 or items.size == 0 or (items < -1).any():
            raise ValueError(f"items must be a matrix of item numbers, a page a row, got {self.items!r}")
        shown = items >= 0
        if not shown[:, 0].all() or (shown[:, 1:] & ~shown[:, :-1]).any():
            raise ValueError("items must be -1 only behind the last item of a page, and a page must show one")
        clicks = _whole("clicks", self.clicks)
        if clicks.shape != items.shape or (clicks < 0).any() or (clicks > shown).any():
            raise ValueError(f"clicks must be 0 or 1 for each of the shown items, got {self.clicks!r}")
        queries = _whole("queries", self.queries) if np.size(self.queries) else np.zeros(len(items), np.int32)
        if queries.shape != items.shape[:1] or (queries < 0).any():
            raise ValueError(f"queries must be {len(items)} query numbers, got {self.queries!r}")
        self._set("items", items.astype(np.int32))
        self._set("clicks", clicks.astype(np.int8))
        self._set("queries", queries.astype(np.int32))
        if self.order is not None:
            order = _whole("order", self.order)
            if order.shape != items.shape or ((order > 0) != (clicks > 0)).any():
                raise ValueError(f"order must be above 0 for each click and 0 elsewhere, got {self.order!r}")
            self._set("order", order.astype(np.int16))
        last_item, last_query = int(items.max()), int(queries.max())
        self._set_names("item_ids", self.item_ids, numbered(last_item), last_item)
        self._set_names(
            "query_ids", self.query_ids, numbered(last_query) if last_query else ("",), last_query
        )
        self._freeze_bad_rows()

    @property
    def n_queries(self) -> int:
        """How many queries have a name."""
        return len(self.query_ids)

    @property
    def n_positions(self) -> int:
        """How many positions the longest page has."""
        return int(self.items.shape[1])

    def __repr__(self) -> str:
        queries = f"{self.n_queries:,} {'query' if self.n_queries == 1 else 'queries'}"
        return self._told(
            f"{self.n_rows:,} pages of up to {self.n_positions}, {queries}, {self.n_items:,} items"
        )

    def count(self) -> ClickLog:
        """The same log counted by query, item and position, for models that need no more.

        Returns
        -------
        ClickLog
            The counts.
        """
        shown = self.items >= 0
        rows, places = np.nonzero(shown)
        n, m = self.n_items, self.n_positions
        codes = (self.queries[rows].astype(np.int64) * n + self.items[shown]) * m + places
        cells, which = np.unique(codes, return_inverse=True)
        pairs, positions = np.divmod(cells, m)
        queries, items = np.divmod(pairs, n)
        return ClickLog(
            queries=queries,
            items=items,
            positions=positions,
            shown=np.bincount(which, minlength=len(cells)),
            clicked=np.bincount(which, self.clicks[shown], len(cells)).astype(np.int64),
            query_ids=self.query_ids,
            item_ids=self.item_ids,
            rows=np.bincount(self.queries, minlength=self.n_queries),
            n_positions=m,
            bad_rows=self.bad_rows,
            name=self.name,
        )

    def pairs(self) -> tuple[tuple[tuple[str, str], ...], NDArray[np.int64]]:
        """The different (query, item) there are, by name, and for each shown item which of them it is, else -1.

        Returns
        -------
        tuple
            The names, and a matrix of their numbers of the shape of `items`.
        """
        shown = self.items >= 0
        codes = self.queries[:, None].astype(np.int64) * self.n_items + self.items
        known, which = np.unique(codes[shown], return_inverse=True)
        numbers_of = np.full(self.items.shape, -1, np.int64)
        numbers_of[shown] = which
        query, item = np.divmod(known, self.n_items)
        names = zip(query.tolist(), item.tolist(), strict=True)
        return tuple((self.query_ids[q], self.item_ids[i]) for q, i in names), numbers_of

    def select(self, *, query: str | None = None, positions: int | None = None) -> Sessions:
        """Only one query's pages, and only the first positions of each; items keep their numbers.

        Parameters
        ----------
        query : str, optional
            The query to keep; by default all.
        positions : int, optional
            How many positions to keep; by default all.

        Returns
        -------
        Sessions
            The smaller log.
        """
        kept = self
        if query is not None:
            if query not in self.query_ids:
                raise ValueError(f"query must be one of the log's {self.n_queries:,}, got {query!r}")
            kept = kept._rows(self.queries == self.query_ids.index(query))
            kept = replace(kept, queries=np.zeros(kept.n_rows, np.int32), query_ids=(query,))
        if positions is not None:
            m = min(self.n_positions, whole("positions", positions, at_least=1))
            kept = replace(
                kept,
                items=kept.items[:, :m],
                clicks=kept.clicks[:, :m],
                order=None if kept.order is None else kept.order[:, :m],
            )
        return kept

    def split(self, first: float) -> tuple[Sessions, Sessions]:
        """The first pages and the later ones, to fit on the past and to test on what came after it.

        Parameters
        ----------
        first : float
            The share of the pages in the first part, above 0 and below 1.

        Returns
        -------
        tuple of Sessions
            The two parts, in the order of the log, neither of them empty.
        """
        size = round(share("first", first) * self.n_rows)
        if not 0 < size < self.n_rows:
            raise ValueError(f"first must leave pages on both sides, got {first!r} of {self.n_rows:,}")
        early = np.arange(self.n_rows) < size
        return self._rows(early), self._rows(~early)

    def _rows(self, which: NDArray[np.bool_]) -> Sessions:
        if not which.any():
            raise ValueError(f"{self.name} has no such page")
        return replace(
            self,
            items=self.items[which],
            clicks=self.clicks[which],
            queries=self.queries[which],
            order=None if self.order is None else self.order[which],
        )


def _whole(name: str, given: Any) -> NDArray[Any]:
    values = np.asarray(given)
    if values.dtype.kind in "iub":  # millions of numbers: no copy of them as floats
        return values.astype(np.int8) if values.dtype.kind == "b" else values
    values = numbers(name, given)
    if (values != np.floor(values)).any():
        raise ValueError(f"{name} must be whole numbers, got {given!r}")
    return values
