"""Lists that were shown, what was clicked, and the probability that each was shown: a log for off-policy evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import numbers


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LoggedLists:
    """A log of shown lists, row by row, all of one length.

    Parameters
    ----------
    items : ndarray of int
        Item numbers, a row for each list, a column for each position.
    clicks : ndarray of int
        0 or 1 for each of them.
    propensities : ndarray of float, optional
        The chance with which the log's own policy showed just this item at just this position. None if unknown.
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

    Examples
    --------
    >>> LoggedLists(items=[[0, 1], [1, 0]], clicks=[[1, 0], [0, 0]], list_propensities=[0.5, 0.5])
    LoggedLists('lists': 2 lists of 2, 2 items, 1 click)
    """

    items: NDArray[np.int64]
    clicks: NDArray[np.int64]
    propensities: NDArray[np.float64] | None = None
    list_propensities: NDArray[np.float64] | None = None
    positions: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), np.int64))
    item_ids: tuple[str, ...] = ()
    bad_rows: Mapping[str, int] = field(default_factory=dict)
    name: str = "lists"

    def __post_init__(self) -> None:
        items, clicks = numbers("items", self.items), numbers("clicks", self.clicks)
        if items.ndim != 2 or items.size == 0 or (items < 0).any() or (items != np.floor(items)).any():
            raise ValueError(f"items must be a matrix of item numbers, a list a row, got {self.items!r}")
        if clicks.shape != items.shape or not np.isin(clicks, (0.0, 1.0)).all():
            raise ValueError(f"clicks must be 0 or 1 for each of the shown items, got {self.clicks!r}")
        self._set("items", items.astype(np.int64))
        self._set("clicks", clicks.astype(np.int64))
        shapes = {"propensities": items.shape, "list_propensities": items.shape[:1]}
        for name, shape in shapes.items():
            given = getattr(self, name)
            if given is not None:
                chances = numbers(name, given)
                if chances.shape != shape or not ((chances > 0.0) & (chances <= 1.0)).all():
                    raise ValueError(f"{name} must be {shape} chances above 0 and up to 1, got {given!r}")
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
        ids = tuple(self.item_ids) or tuple(str(i) for i in range(int(items.max()) + 1))
        if items.max() >= len(ids):
            raise ValueError(
                f"item_ids must name every item, got {len(ids)} names for item {int(items.max())}"
            )
        object.__setattr__(self, "item_ids", ids)
        object.__setattr__(self, "bad_rows", MappingProxyType(dict(self.bad_rows)))

    def _set(self, name: str, array: NDArray[np.generic]) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    @property
    def n_rows(self) -> int:
        """How many lists there are."""
        return len(self.items)

    @property
    def n_items(self) -> int:
        """How many items there are to show."""
        return len(self.item_ids)

    @property
    def n_positions(self) -> int:
        """How many positions there are."""
        return int(self.positions.max()) + 1

    def __repr__(self) -> str:
        clicks, bad = int(self.clicks.sum()), sum(self.bad_rows.values())
        told = f"{self.n_rows:,} lists of {self.items.shape[1]}, {self.n_items:,} items"
        told += f", {clicks:,} click{'' if clicks == 1 else 's'}"
        if bad:
            told += f"; {bad:,} bad row{'' if bad == 1 else 's'} left out"
        return f"LoggedLists({self.name!r}: {told})"

    def shares(self) -> NDArray[np.float64]:
        """How large a share each item had of each position: items by positions, columns adding up to 1.

        For a policy that changed while it was logged, this is what it did on average.
        """
        cells = self.items * self.n_positions + self.positions
        size = self.n_items * self.n_positions
        times = np.bincount(cells.ravel(), minlength=size).reshape(self.n_items, self.n_positions)
        shares: NDArray[np.float64] = times / np.maximum(times.sum(axis=0), 1)
        return shares
