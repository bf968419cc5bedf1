"""A log of clicks, counted: how often each item was shown and clicked at each position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, whole
from rankloop.notebook import sentence

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClickLog:
    """All of a log that a position-based model needs: counts by query, item and position, never the rows themselves.

    A cell is an item at a position for a query; cells that never occurred are left out. Its size is that of the
    different things that were shown, however often they were.

    Parameters
    ----------
    queries : Counts
        For each cell: the query and the item, as indices into `query_ids` and `item_ids`, and the position,
        from 0.
    items : Counts
        For each cell: the query and the item, as indices into `query_ids` and `item_ids`, and the position,
        from 0.
    positions : Counts
        For each cell: the query and the item, as indices into `query_ids` and `item_ids`, and the position,
        from 0.
    shown : Counts
        For each cell: how often the item was shown there, and how often it was clicked when it was.
    clicked : Counts
        For each cell: how often the item was shown there, and how often it was clicked when it was.
    query_ids : tuple of str
        Their names in the source.
    item_ids : tuple of str
        Their names in the source.
    rows : Counts
        For each query, how many rows of the source (pages or impressions) were counted.
    n_positions : int
        Length of the longest list.
    bad_rows : mapping of str to int, optional
        Rows that were left out, by reason.
    name : str, optional
        What to call it in a figure.
    bad_clicks : mapping of str to int, optional
        Clicks on the rows that were left out, by reason, where there were any.

    Examples
    --------
    >>> log = ClickLog.count(items=[[0, 1], [1, 0], [1, 0]], clicks=[[1, 0], [0, 1], [0, 0]])
    >>> log
    ClickLog('clicks': 1 query, 2 items, 2 positions, 3 rows, 2 clicks)
    >>> shown, clicked = log.matrices()
    >>> shown
    array([[1, 2],
           [2, 1]])
    >>> clicked
    array([[1, 1],
           [0, 0]])
    """

    queries: Counts
    items: Counts
    positions: Counts
    shown: Counts
    clicked: Counts
    query_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    rows: Counts
    n_positions: int
    bad_rows: Mapping[str, int] = field(default_factory=dict)
    name: str = "clicks"
    bad_clicks: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cells = ("queries", "items", "positions", "shown", "clicked")
        for column in (*cells, "rows"):
            array = getattr(self, column)
            if not _is_fixed(array):
                array = np.array(array, dtype=np.int64)
                array.setflags(write=False)
            object.__setattr__(self, column, array)
            if column != "rows" and array.shape != self.queries.shape:
                raise ValueError(f"{column} must have {len(self.queries)} numbers, got {array.shape}")
        for told in ("bad_rows", "bad_clicks"):
            object.__setattr__(self, told, MappingProxyType(dict(getattr(self, told))))
        for column, count in (
            ("queries", len(self.query_ids)),
            ("items", len(self.item_ids)),
            ("positions", self.n_positions),
        ):
            array = getattr(self, column)
            if array.size and not 0 <= array.min() <= array.max() < count:
                raise ValueError(f"{column} must lie between 0 and {count - 1}, got {array}")
        wrong = (self.shown < 1) | (self.clicked < 0) | (self.clicked > self.shown)
        if wrong.any():
            first = int(np.argmax(wrong))
            raise ValueError(
                f"clicked must lie between 0 and shown, and shown be at least 1,"
                f" got {self.clicked[first]} and {self.shown[first]}"
            )
        if self.rows.shape != (len(self.query_ids),):
            raise ValueError(f"rows must have a number for each query, got {self.rows}")

    @classmethod
    def count(cls, *, items: ArrayLike, clicks: ArrayLike, name: str = "clicks") -> ClickLog:
        """Count lists in memory: `items` and `clicks` have a row for each list, `clicks` being 0 or 1.

        Parameters
        ----------
        items : array_like
            Item numbers, a row for each list.
        clicks : array_like
            0 or 1 for each of them.
        name : str, optional
            What to call the log in a figure.

        Returns
        -------
        ClickLog
            The counts.
        """
        shown, clicked = numbers("items", items), numbers("clicks", clicks)
        if shown.ndim != 2 or shown.size == 0 or (shown < 0).any() or (shown != np.floor(shown)).any():
            raise ValueError(f"items must be a matrix of item numbers, a list a row, got {items!r}")
        if clicked.shape != shown.shape or not np.isin(clicked, (0.0, 1.0)).all():
            raise ValueError(f"clicks must be 0 or 1 for each of the shown items, got {clicks!r}")
        n_rows, m = shown.shape
        cells = (shown.astype(np.int64) * m + np.arange(m)).ravel()
        n_items = int(shown.max()) + 1
        times = np.bincount(cells, minlength=n_items * m).reshape(n_items, m)
        hits = np.bincount(cells[clicked.ravel() == 1.0], minlength=n_items * m).reshape(n_items, m)
        return cls.from_matrices(shown=times, clicked=hits, n_rows=n_rows, name=name)

    @classmethod
    def from_matrices(
        cls,
        *,
        shown: ArrayLike,
        clicked: ArrayLike,
        item_ids: tuple[str, ...] | None = None,
        n_rows: int | None = None,
        name: str = "clicks",
    ) -> ClickLog:
        """A log from existing counts: two matrices with a row for each item and a column for each position.

        Parameters
        ----------
        shown : array_like
            How often each item was shown at each position.
        clicked : array_like
            How often it was clicked there.
        item_ids : tuple of str, optional
            What the items are called; by default their numbers.
        n_rows : int, optional
            How many lists were counted; by default the number of impressions of the first position.
        name : str, optional
            What to call the log in a figure.

        Returns
        -------
        ClickLog
            The counts.
        """
        times, hits = numbers("shown", shown), numbers("clicked", clicked)
        if times.ndim != 2 or times.size == 0:
            raise ValueError(f"shown must be a matrix of items by positions, got {shown!r}")
        if hits.shape != times.shape:
            raise ValueError(f"clicked must have the shape of shown, {times.shape}, got {hits.shape}")
        for given, of in (("shown", times), ("clicked", hits)):
            if not (np.isfinite(of).all() and (of == np.floor(of)).all() and (of >= 0).all()):
                raise ValueError(f"{given} must be counts, got {of}")
        if (hits > times).any():
            raise ValueError(f"clicked must not exceed shown, got {hits} of {times}")
        items, positions = np.nonzero(times)
        ids = tuple(str(i) for i in range(len(times))) if item_ids is None else tuple(item_ids)
        if len(ids) != len(times):
            raise ValueError(f"item_ids must be {len(times)} names, got {len(ids)}")
        return cls(
            queries=np.zeros(len(items), np.int64),
            items=items,
            positions=positions,
            shown=times[items, positions].astype(np.int64),
            clicked=hits[items, positions].astype(np.int64),
            query_ids=("",),
            item_ids=ids,
            rows=np.array([times[:, 0].sum() if n_rows is None else n_rows]),
            n_positions=times.shape[1],
            name=name,
        )

    @property
    def n_cells(self) -> int:
        """How many different (query, item, position) there are."""
        return len(self.queries)

    @property
    def n_rows(self) -> int:
        """How many rows of the source were counted."""
        return int(self.rows.sum())

    @property
    def n_bad_rows(self) -> int:
        """How many rows of the source were left out."""
        return sum(self.bad_rows.values())

    def __repr__(self) -> str:
        def several(count: int, one: str, many: str) -> str:
            return f"{count:,} {one if count == 1 else many}"

        told = [
            several(len(self.query_ids), "query", "queries"),
            several(len(self.item_ids), "item", "items"),
            several(self.n_positions, "position", "positions"),
            several(self.n_rows, "row", "rows"),
            several(int(self.clicked.sum()), "click", "clicks"),
        ]
        bad = f"; {several(self.n_bad_rows, 'bad row', 'bad rows')} left out" if self.n_bad_rows else ""
        return f"ClickLog({self.name!r}: {', '.join(told)}{bad})"

    def _repr_html_(self) -> str:
        return sentence(repr(self))

    def select(
        self, *, query: str | None = None, top: int | None = None, positions: int | None = None
    ) -> ClickLog:
        """Only one query's cells, only the first positions, and only the `top` items shown most often there.

        Parameters
        ----------
        query : str, optional
            The query to keep; by default all.
        top : int, optional
            How many items to keep; by default all.
        positions : int, optional
            How many positions to keep; by default all.

        Returns
        -------
        ClickLog
            The smaller log.
        """
        n_positions = self.n_positions
        if positions is not None:
            n_positions = min(n_positions, whole("positions", positions, at_least=1))
        keep = self.positions < n_positions
        query_ids, rows = self.query_ids, self.rows
        if query is not None:
            if query not in self.query_ids:
                known = "left out, the log names none" if self.query_ids == ("",) else self._some_queries()
                raise ValueError(f"query must be {known}, got {query!r}")
            number = self.query_ids.index(query)
            keep &= self.queries == number
            query_ids, rows = (query,), self.rows[number : number + 1]
        codes = self.queries * len(self.item_ids) + self.items
        pairs, which = np.unique(codes[keep], return_inverse=True)
        if top is not None:
            times = np.bincount(which, self.shown[keep], minlength=len(pairs))
            first = np.argsort(-times, kind="stable")[: whole("top", top, at_least=1)]
            keep &= np.isin(codes, pairs[first])
        used, items = np.unique(self.items[keep], return_inverse=True)
        return replace(
            self,
            queries=np.zeros(len(items), np.int64) if query is not None else self.queries[keep],
            items=items,
            positions=self.positions[keep],
            shown=self.shown[keep],
            clicked=self.clicked[keep],
            query_ids=query_ids,
            item_ids=tuple(self.item_ids[i] for i in used),
            rows=rows,
            n_positions=n_positions,
        )

    def pairs(self) -> tuple[tuple[tuple[str, str], ...], Counts]:
        """The different (query, item) there are, by name, and for each cell which of them it belongs to."""
        codes, which = np.unique(self.queries * len(self.item_ids) + self.items, return_inverse=True)
        query, item = np.divmod(codes, max(len(self.item_ids), 1))
        names = zip(query.tolist(), item.tolist(), strict=True)
        return tuple((self.query_ids[q], self.item_ids[i]) for q, i in names), which.astype(np.int64)

    def matrices(self) -> tuple[Counts, Counts]:
        """Two matrices, items by positions: how often shown and how often clicked, over all queries together."""
        shape = (len(self.item_ids), self.n_positions)
        cells = self.items * self.n_positions + self.positions
        size = shape[0] * shape[1]
        shown = np.bincount(cells, self.shown, size).astype(np.int64).reshape(shape)
        return shown, np.bincount(cells, self.clicked, size).astype(np.int64).reshape(shape)

    def _some_queries(self) -> str:
        most = np.argsort(-self.rows, kind="stable")[:10]
        more = len(self.query_ids) - len(most)
        return (
            "one of " + ", ".join(self.query_ids[i] for i in most) + (f" and {more:,} more" if more else "")
        )


def _is_fixed(array: object) -> bool:
    """Whether these are whole numbers that nobody else can change, so that they need not be copied."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype == np.int64
        and array.flags.owndata
        and not array.flags.writeable
    )
