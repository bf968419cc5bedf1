"""Queries whose documents are described by a few features each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankloop.features import SparseRows
from rankloop.notebook import sentence


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class SparseDataset:
    """A learning-to-rank dataset without the zeros of its features; `Dataset.sparse` makes it.

    Parameters
    ----------
    features : SparseRows
        One row per document.
    relevance : ndarray of float
        One grade per document.
    offsets : ndarray of int
        Query i has the documents from ``offsets[i]`` up to, not including, ``offsets[i + 1]``.
    query_ids : tuple of str
        The names of the queries.
    name : str
        What to call the dataset.
    max_grade : int
        The highest grade a document could have.

    Examples
    --------
    >>> from rankloop import data
    >>> queries = data.Dataset(
    ...     features=[[3.0, 0.0], [0.0, 0.0], [0.0, 0.5]],
    ...     relevance=[2, 0, 1],
    ...     offsets=[0, 2, 3],
    ...     query_ids=("jaguar", "python"),
    ...     name="two queries",
    ...     max_grade=2,
    ... )
    >>> queries.sparse()
    SparseDataset('two queries': 2 queries, 3 documents, 2 features, 33% of the entries)
    """

    features: SparseRows
    relevance: NDArray[np.float64]
    offsets: NDArray[np.int64]
    query_ids: tuple[str, ...]
    name: str
    max_grade: int

    def __repr__(self) -> str:
        n, d = self.features.shape
        share = len(self.features.data) / (n * d)
        size = (
            f"{len(self.offsets) - 1:,} queries, {n:,} documents, {d:,} features, {share:.0%} of the entries"
        )
        return f"SparseDataset({self.name!r}: {size})"

    def _repr_html_(self) -> str:
        return sentence(repr(self))
