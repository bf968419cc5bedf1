"""Logs of lists that were shown and clicked: counted, page by page, or with the chance that each had.

`ClickLog` holds counts by query, item and position. `Sessions` holds the pages themselves, for click models that counts
are not enough for; `LoggedLists` also what each was shown with, for off-policy evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import ArgumentError, numbers, share, whole
from rankloop.extras import counted
from rankloop.features import read_features

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Counts = Ints


class FrozenLog:
    """A log whose arrays nobody changes, with a name and a count of rows that were left out."""

    __slots__ = ()

    item_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    bad_rows: Mapping[str, int]
    name: str

    def _set(self, name: str, array: NDArray[np.generic]) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def _freeze(self, mapping: str) -> None:
        object.__setattr__(self, mapping, MappingProxyType(dict(getattr(self, mapping))))

    def _summary(self, *parts: str, n_clicks: int) -> str:
        bad = sum(self.bad_rows.values())
        left_out = f"; {counted(bad, 'bad row')} left out" if bad else ""
        text = ", ".join([*parts, counted(n_clicks, "click")])
        return f"{type(self).__name__}({self.name!r}: {text}{left_out})"

    def _pair_names(self, codes: Ints) -> tuple[tuple[str, str], ...]:
        # Of query numbers times the number of items plus item numbers.
        query, item = np.divmod(codes, max(len(self.item_ids), 1))
        names = zip(query.tolist(), item.tolist(), strict=True)
        return tuple((self.query_ids[q], self.item_ids[i]) for q, i in names)


class ShownLists(FrozenLog):
    """A log with a row for each shown list."""

    __slots__ = ()

    items: NDArray[Any]
    clicks: NDArray[Any]

    def _set_names(self, what: str, names: tuple[str, ...], default: tuple[str, ...], most: int) -> None:
        # There must be a name for every number up to `most`.
        names = tuple(names) or default
        if most >= len(names):
            raise ValueError(f"{what} must name number {most}, got {len(names)} names")
        object.__setattr__(self, what, names)

    @property
    def n_rows(self) -> int:
        """How many lists there are."""
        return len(self.items)

    @property
    def n_items(self) -> int:
        """How many items have a name."""
        return len(self.item_ids)


def _numbered(most: int) -> tuple[str, ...]:
    return tuple(str(one) for one in range(most + 1))


def _read_lists(items: Any, clicks: Any, *, blanks: bool = False) -> tuple[Floats, Floats]:
    shown, clicked = numbers("items", items), numbers("clicks", clicks)
    below = not blanks and (shown < 0).any()
    if shown.ndim != 2 or shown.size == 0 or below or (shown != np.floor(shown)).any():
        raise ValueError(f"items must be a matrix of item numbers, a list a row, got {items!r}")
    if clicked.shape != shown.shape or not np.isin(clicked, (0.0, 1.0)).all():
        raise ValueError(f"clicks must be 0 or 1 for each of the shown items, got {clicks!r}")
    return shown, clicked


def _has_gaps(shown: NDArray[np.bool_]) -> bool:
    # Whether a list is empty, or shows nothing between two of its items.
    return bool(not shown[:, 0].all() or (shown[:, 1:] & ~shown[:, :-1]).any())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClickLog(FrozenLog):
    """All of a log that a position-based model needs: counts by query, item and position, never the rows themselves.

    A cell is an item at a position for a query; cells that never occurred are left out. Its size is that of the
    different things that were shown, however often they were.

    Parameters
    ----------
    queries, items, positions : Counts
        For each cell: the query and the item, as indices into `query_ids` and `item_ids`, and the position,
        from 0.
    shown, clicked : Counts
        For each cell: how often the item was shown there, and how often it was clicked when it was.
    query_ids, item_ids : tuple of str
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
        self._freeze("bad_rows")
        self._freeze("bad_clicks")
        sizes = (len(self.query_ids), len(self.item_ids), self.n_positions)
        for column, count in zip(cells, sizes, strict=False):
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
        """Count lists in memory: `items` and `clicks`, 0 or 1, have a row for each list; figures call it `name`."""
        shown, clicked = _read_lists(items, clicks)
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
        shown, clicked : array_like
            How often each item was shown at each position, and how often it was clicked there.
        item_ids : tuple of str, optional
            What the items are called; by default their numbers.
        n_rows : int, optional
            How many lists were counted; by default the number of impressions of the first position.
        name : str, optional
            What to call the log in a figure.
        """
        times, hits = numbers("shown", shown), numbers("clicked", clicked)
        if times.ndim != 2 or times.size == 0:
            raise ValueError(f"shown must be a matrix of items by positions, got {shown!r}")
        if hits.shape != times.shape:
            raise ValueError(f"clicked must have the shape of shown, {times.shape}, got {hits.shape}")
        for argument, counts in (("shown", times), ("clicked", hits)):
            if not (np.isfinite(counts).all() and (counts == np.floor(counts)).all() and (counts >= 0).all()):
                raise ValueError(f"{argument} must be counts, got {counts}")
        if (hits > times).any():
            raise ValueError(f"clicked must not exceed shown, got {hits} of {times}")
        items, positions = np.nonzero(times)
        ids = _numbered(len(times) - 1) if item_ids is None else tuple(item_ids)
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
        return self._summary(
            counted(len(self.query_ids), "query", "queries"),
            counted(len(self.item_ids), "item"),
            counted(self.n_positions, "position"),
            counted(self.n_rows, "row"),
            n_clicks=int(self.clicked.sum()),
        )

    def select(
        self, *, query: str | None = None, top: int | None = None, positions: int | None = None
    ) -> ClickLog:
        """Only the cells of one `query`, the first `positions`, and the `top` items shown most often there."""
        n_positions = self.n_positions
        if positions is not None:
            n_positions = min(n_positions, whole("positions", positions, at_least=1))
        keep = self.positions < n_positions
        query_ids, rows = self.query_ids, self.rows
        if query is not None:
            if query not in self.query_ids:
                known = "left out, the log names none" if self.query_ids == ("",) else self._some_queries()
                raise ArgumentError("query", f"query must be {known}, got {query!r}")
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
        return self._pair_names(codes), which.astype(np.int64)

    def matrices(self) -> tuple[Counts, Counts]:
        """Two matrices, items by positions: how often shown and how often clicked, over all queries together."""
        n, m = len(self.item_ids), self.n_positions
        cells = self.items * m + self.positions
        shown, clicked = (np.bincount(cells, counts, n * m) for counts in (self.shown, self.clicked))
        return shown.astype(np.int64).reshape(n, m), clicked.astype(np.int64).reshape(n, m)

    def _some_queries(self) -> str:
        most = np.argsort(-self.rows, kind="stable")[:10]
        more = len(self.query_ids) - len(most)
        names = ", ".join(self.query_ids[i] for i in most)
        return f"one of {names}" + (f" and {more:,} more" if more else "")


def _is_fixed(array: object) -> bool:
    # Whether these are whole numbers that nobody else can change, so that they need not be copied.
    return (
        isinstance(array, np.ndarray)
        and array.dtype == np.int64
        and array.flags.owndata
        and not array.flags.writeable
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Candidates:
    """Candidates of many lists, each with its features, one list after the other.

    Parameters
    ----------
    rows : ndarray of float
        Features, a row for each candidate.
    starts : ndarray of int
        Where each list begins in `rows`, and at the end how many rows there are.

    Examples
    --------
    >>> lists = Candidates.read([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5]]])
    >>> lists, lists.sizes
    (Candidates(2 lists, 3 candidates, 2 features), array([2, 1]))
    >>> lists[1]
    array([[0.5, 0.5]])
    """

    rows: Floats
    starts: Ints

    def __post_init__(self) -> None:
        rows = read_features(self.rows, name="rows").astype(np.float64)
        starts = np.asarray(self.starts, np.int64)
        if starts.ndim != 1 or len(starts) < 2 or starts[0] != 0 or starts[-1] != len(rows):
            raise ValueError(f"starts must begin with 0 and end with {len(rows)}, got {self.starts!r}")
        if (np.diff(starts) < 1).any():
            raise ValueError(f"starts must rise: each list needs a candidate, got {self.starts!r}")
        for name, array in (("rows", rows), ("starts", starts.copy())):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def read(cls, lists: Candidates | Sequence[ArrayLike] | NDArray[Any]) -> Candidates:
        """Candidates from `lists`: an array of items x features for each, or one of lists x items x features."""
        if isinstance(lists, Candidates):
            return lists
        if len(lists) == 0:
            raise ValueError("features must be given for at least one list, got none")
        parts: list[NDArray[Any]] = []
        for number, part in enumerate(lists):
            n_features = parts[0].shape[1] if parts else None
            parts.append(read_features(part, n_features, name=f"features of list {number}"))
        sizes = [len(part) for part in parts]
        return cls(np.concatenate(parts), np.concatenate([[0], np.cumsum(sizes)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> Floats:
        return self.rows[self.starts[number] : self.starts[number + 1]]

    def __repr__(self) -> str:
        return f"Candidates({len(self):,} lists, {len(self.rows):,} candidates, {self.n_features:,} features)"

    @property
    def n_features(self) -> int:
        """How many features a candidate has."""
        return int(self.rows.shape[1])

    @property
    def sizes(self) -> Ints:
        """How many candidates each list has."""
        return np.diff(self.starts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LoggedLists(ShownLists):
    """A log of shown lists, row by row, all of one length.

    Parameters
    ----------
    items : ndarray of int
        Item numbers, a row for each list, a column for each position. With `features`, each list has items of its own,
        and the numbers are those of its candidates, from 0; lists with fewer candidates than positions end in -1.
    clicks : ndarray of int
        0 or 1 for each of them.
    propensities : ndarray of float, optional
        The chance with which the log's own policy showed just this item at just this position. None if unknown;
        anything where nothing was shown.
    list_propensities : ndarray of float, optional
        The chance with which it showed just this list. None if unknown.
    positions : ndarray of int, optional
        Where each item was, from 0, for logs whose rows are parts of lists; left out, it is 0, 1, 2, ...
    item_ids : tuple of str, optional
        What the items are called; left out, their numbers.
    bad_rows : mapping of str to int, optional
        Rows of the source that were left out, by reason.
    name : str, optional
        What to call it.
    features : Candidates or sequence of array_like, optional
        For each list the features of its candidates, items x features; None where items are the same for everybody.
    n_queries : int, optional
        How many queries the lists are of; whatever is estimated from them counts all of them together.

    Examples
    --------
    >>> LoggedLists(items=[[0, 1], [1, 0]], clicks=[[1, 0], [0, 0]], list_propensities=[0.5, 0.5])
    LoggedLists('lists': 2 lists of 2, 2 items, 1 click)
    >>> LoggedLists(items=[[1]], clicks=[[1]], propensities=[[0.5]], features=[[[0.1, 2.0], [0.3, 0.4]]])
    LoggedLists('lists': 1 list of 1, up to 2 candidates with 2 features, 1 click)
    """

    items: Ints
    clicks: Ints
    propensities: Floats | None = None
    list_propensities: Floats | None = None
    positions: Ints = field(default_factory=lambda: np.empty((0, 0), np.int64))
    item_ids: tuple[str, ...] = ()
    bad_rows: Mapping[str, int] = field(default_factory=dict)
    name: str = "lists"
    features: Candidates | None = None
    n_queries: int = 1

    def __post_init__(self) -> None:
        items, clicks = _read_lists(self.items, self.clicks, blanks=self.features is not None)
        whole("n_queries", self.n_queries, at_least=1)
        if self.features is not None:
            object.__setattr__(self, "features", _candidates(self.features, items, clicks))
        self._set("items", items.astype(np.int64))
        self._set("clicks", clicks.astype(np.int64))
        shapes = {"propensities": items.shape, "list_propensities": items.shape[:1]}
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values is not None:
                chances = numbers(name, values)
                if chances.shape != shape or not ((chances > 0.0) & (chances <= 1.0)).all():
                    raise ValueError(f"{name} must be {shape} chances above 0 and up to 1, got {values!r}")
                self._set(name, chances.copy())
        if np.size(self.positions) == 0:
            self._set("positions", np.broadcast_to(np.arange(items.shape[1]), items.shape).copy())
        else:
            places = numbers("positions", self.positions)
            if places.shape != items.shape or (places < 0).any() or (places != np.floor(places)).any():
                raise ValueError(
                    f"positions must be whole numbers, one for each item, got {self.positions!r}"
                )
            self._set("positions", places.astype(np.int64))
        most = int(items.max()) if self.features is None else int(self.features.sizes.max()) - 1
        self._set_names("item_ids", self.item_ids, _numbered(most), most)
        self._freeze("bad_rows")

    @property
    def n_positions(self) -> int:
        """How many positions there are."""
        return int(self.positions.max()) + 1

    def __repr__(self) -> str:
        items = f"{self.n_items:,} items"
        if self.features is not None:
            items = f"up to {self.n_items:,} candidates with {self.features.n_features:,} features"
        lists = f"{counted(self.n_rows, 'list')} of {self.items.shape[1]}"
        queries = [counted(self.n_queries, "query", "queries")] * (self.n_queries > 1)
        return self._summary(lists, *queries, items, n_clicks=int(self.clicks.sum()))

    def shares(self) -> Floats:
        """How large a share each item had of each position: items by positions, columns adding up to 1.

        For a policy that changed while it was logged, this is what it did on average.
        """
        if self.features is not None:
            raise ValueError("shares are of items that are the same in every list, this log has features")
        cells = self.items * self.n_positions + self.positions
        size = self.n_items * self.n_positions
        times = np.bincount(cells.ravel(), minlength=size).reshape(self.n_items, self.n_positions)
        shares: Floats = times / np.maximum(times.sum(axis=0), 1)
        return shares


def _candidates(features: Candidates | Sequence[ArrayLike], items: Floats, clicks: Floats) -> Candidates:
    # ValueError where the shown items are not among the candidates.
    lists = Candidates.read(features)
    if len(lists) != len(items):
        raise ValueError(f"features must be given for {len(items)} lists, got {len(lists)}")
    shown = items >= 0
    if (items < -1).any() or _has_gaps(shown):
        raise ValueError("items must be -1 only behind the last item of a list, and a list must show one")
    if (items >= lists.sizes[:, None]).any():
        row = int(np.argmax((items >= lists.sizes[:, None]).any(axis=1)))
        raise ValueError(
            f"items must be candidates of their list, got {items[row]} for list {row} of {lists.sizes[row]}"
        )
    if (clicks > shown).any():
        raise ValueError("clicks must be 0 where nothing was shown")
    ordered = np.sort(np.where(shown, items, -1.0 - np.arange(items.shape[1])), axis=1)
    if (np.diff(ordered, axis=1) == 0.0).any():
        row = int(np.argmax((np.diff(ordered, axis=1) == 0.0).any(axis=1)))
        raise ValueError(f"items must not show a candidate twice, got {items[row]} for list {row}")
    return lists


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
        if _has_gaps(shown):
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
        self._set_names("item_ids", self.item_ids, _numbered(last_item), last_item)
        unnamed = _numbered(last_query) if last_query else ("",)
        self._set_names("query_ids", self.query_ids, unnamed, last_query)
        self._freeze("bad_rows")

    @property
    def n_queries(self) -> int:
        """How many queries have a name."""
        return len(self.query_ids)

    @property
    def n_positions(self) -> int:
        """How many positions the longest page has."""
        return int(self.items.shape[1])

    def __repr__(self) -> str:
        return self._summary(
            f"{self.n_rows:,} pages of up to {self.n_positions}",
            counted(self.n_queries, "query", "queries"),
            f"{self.n_items:,} items",
            n_clicks=int(self.clicks.sum()),
        )

    def count(self) -> ClickLog:
        """The same log counted by query, item and position, for models that need no more."""
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

    def pairs(self) -> tuple[tuple[tuple[str, str], ...], Ints]:
        """The different (query, item) there are, by name, and for each shown item which of them it is, else -1."""
        shown = self.items >= 0
        codes = self.queries[:, None].astype(np.int64) * self.n_items + self.items
        known, which = np.unique(codes[shown], return_inverse=True)
        numbers_of = np.full(self.items.shape, -1, np.int64)
        numbers_of[shown] = which
        return self._pair_names(known), numbers_of

    def select(self, *, query: str | None = None, positions: int | None = None) -> Sessions:
        """Only the pages of one `query`, and only the first `positions` of each; items keep their numbers."""
        kept = self
        if query is not None:
            if query not in self.query_ids:
                raise ArgumentError(
                    "query", f"query must be one of the log's {self.n_queries:,}, got {query!r}"
                )
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
        """The `first` share of the pages and the rest, none of them empty: fit on the past, test on what came after."""
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


def _whole(name: str, values: Any) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind in "iub":  # millions of numbers: no copy of them as floats
        return array.astype(np.int8) if array.dtype.kind == "b" else array
    array = numbers(name, values)
    if (array != np.floor(array)).any():
        raise ValueError(f"{name} must be whole numbers, got {values!r}")
    return array
