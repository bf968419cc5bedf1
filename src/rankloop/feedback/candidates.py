"""The features of what each list of a log could have shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.features import read_features


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

    rows: NDArray[np.float64]
    starts: NDArray[np.int64]

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
        """Candidates from one array of items x features for each list.

        Parameters
        ----------
        lists : sequence of array_like or Candidates
            Features of the candidates, list by list, or an array of lists x items x features.

        Returns
        -------
        Candidates
            The same lists.
        """
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

    def __getitem__(self, number: int) -> NDArray[np.float64]:
        return self.rows[self.starts[number] : self.starts[number + 1]]

    def __repr__(self) -> str:
        return f"Candidates({len(self):,} lists, {len(self.rows):,} candidates, {self.n_features:,} features)"

    @property
    def n_features(self) -> int:
        """How many features a candidate has."""
        return int(self.rows.shape[1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many candidates each list has."""
        return np.diff(self.starts)
