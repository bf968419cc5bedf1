"""Lists that were shown, what was clicked, and the probability that each was shown: a log for off-policy evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers
from rankloop.feedback.candidates import Candidates
from rankloop.feedback.shown_lists import ShownLists, numbered


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

    Examples
    --------
    >>> LoggedLists(items=[[0, 1], [1, 0]], clicks=[[1, 0], [0, 0]], list_propensities=[0.5, 0.5])
    LoggedLists('lists': 2 lists of 2, 2 items, 1 click)
    >>> LoggedLists(items=[[1]], clicks=[[1]], propensities=[[0.5]], features=[[[0.1, 2.0], [0.3, 0.4]]])
    LoggedLists('lists': 1 list of 1, up to 2 candidates with 2 features, 1 click)
    """

    items: NDArray[np.int64]
    clicks: NDArray[np.int64]
    propensities: NDArray[np.float64] | None = None
    list_propensities: NDArray[np.float64] | None = None
    positions: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), np.int64))
    item_ids: tuple[str, ...] = ()
    bad_rows: Mapping[str, int] = field(default_factory=dict)
    name: str = "lists"
    features: Candidates | None = None

    def __post_init__(self) -> None:
        items, clicks = numbers("items", self.items), numbers("clicks", self.clicks)
        if items.ndim != 2 or items.size == 0 or (items != np.floor(items)).any():
            raise ValueError(f"items must be a matrix of item numbers, a list a row, got {self.items!r}")
        if self.features is None and (items < 0).any():
            raise ValueError(f"items must be a matrix of item numbers, a list a row, got {self.items!r}")
        if clicks.shape != items.shape or not np.isin(clicks, (0.0, 1.0)).all():
            raise ValueError(f"clicks must be 0 or 1 for each of the shown items, got {self.clicks!r}")
        if self.features is not None:
            object.__setattr__(self, "features", _candidates(self.features, items, clicks))
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
        most = int(items.max()) if self.features is None else int(self.features.sizes.max()) - 1
        self._set_names("item_ids", self.item_ids, numbered(most), most)
        self._freeze_bad_rows()

    @property
    def n_positions(self) -> int:
        """How many positions there are."""
        return int(self.positions.max()) + 1

    def __repr__(self) -> str:
        told = f"{self.n_rows:,} list{'' if self.n_rows == 1 else 's'} of {self.items.shape[1]}"
        if self.features is None:
            return self._told(f"{told}, {self.n_items:,} items")
        many = f"up to {self.n_items:,} candidates with {self.features.n_features:,} features"
        return self._told(f"{told}, {many}")

    def shares(self) -> NDArray[np.float64]:
        """How large a share each item had of each position: items by positions, columns adding up to 1.

        For a policy that changed while it was logged, this is what it did on average.
        """
        if self.features is not None:
            raise ValueError("shares are of items that are the same in every list, this log has features")
        cells = self.items * self.n_positions + self.positions
        size = self.n_items * self.n_positions
        times = np.bincount(cells.ravel(), minlength=size).reshape(self.n_items, self.n_positions)
        shares: NDArray[np.float64] = times / np.maximum(times.sum(axis=0), 1)
        return shares


def _candidates(
    features: Candidates | Sequence[ArrayLike], items: NDArray[np.float64], clicks: NDArray[np.float64]
) -> Candidates:
    """The features of each list's candidates; ValueError where the shown items are not among them."""
    lists = Candidates.read(features)
    if len(lists) != len(items):
        raise ValueError(f"features must be given for {len(items)} lists, got {len(lists)}")
    shown = items >= 0
    if (items < -1).any() or not shown[:, 0].all() or (shown[:, 1:] & ~shown[:, :-1]).any():
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
