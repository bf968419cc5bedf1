"""Rows of features that are more than an array: sparse ones, and those of a query. No compiler is needed here."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class SparseRows(NamedTuple):
    """Rows of features as CSR, such as `scipy.sparse` keeps them.

    Parameters
    ----------
    data : ndarray of float
        The entries that are not zero, float32 or float64, row after row.
    indices : ndarray of int
        The feature of each entry, rising within a row.
    indptr : ndarray of int
        Row i has the entries from ``indptr[i]`` up to, not including, ``indptr[i + 1]``.
    shape : tuple of int
        The number of rows, and the number of features.

    Examples
    --------
    >>> SparseRows([3.0, 1.0, 2.0], [0, 1, 3], [0, 1, 3], (2, 4)).shape  # 3 0 0 0 and 0 1 0 2
    (2, 4)
    """

    data: NDArray[Any]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    shape: tuple[int, int]


class QueryRows(NamedTuple):
    """Documents of a query, for a ranker that remembers both; `rankloop.features.query_rows` makes it of their names.

    Parameters
    ----------
    features : ndarray of float
        A row for each document.
    items : ndarray of int
        The key of each document.
    query : int
        The key of the query.
    """

    features: NDArray[Any]
    items: NDArray[np.int64]
    query: int
