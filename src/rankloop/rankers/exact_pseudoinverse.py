"""The pseudo-inverse of a small matrix of whole numbers, computed in whole numbers: the same on every machine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[Any]  # of Python's whole numbers, which have any size


def pseudoinverse(H: NDArray[np.int64]) -> NDArray[np.float64]:
    """The Moore-Penrose inverse of `H`, every entry rounded once.

    Parameters
    ----------
    H : ndarray of int64
        A matrix; the cost grows with the cube of its rank.

    Returns
    -------
    ndarray of float64
        columns x rows.

    Examples
    --------
    >>> pseudoinverse(np.array([[1, 1], [1, 1], [0, 0]]))
    array([[0.25, 0.25, 0.  ],
           [0.25, 0.25, 0.  ]])
    """
    distinct, copy, count = np.unique(H, axis=0, return_inverse=True, return_counts=True)
    rows = distinct.astype(object)
    R = rows[_independent(rows)]
    if not len(R):
        return np.zeros(H.shape[::-1])
    # H = B R, so H^+ = R^T (R R^T)^-1 (B^T B)^-1 B^T, each distinct row counted as often as it stands in H. With the
    # numerators of (R R^T)^-1, of B and of (B^T B)^-1, all denominators but the last determinant cancel.
    adjugate, _ = _inverse(R @ R.T)
    B = rows @ R.T @ adjugate
    shared = math.gcd(*B.ravel().tolist())
    B //= shared
    inner, determinant = _inverse((B.T * count.astype(object)) @ B)
    exact = R.T @ adjugate @ inner @ B.T
    rounded = np.array([[entry / (determinant * shared) for entry in row] for row in exact.tolist()])
    return np.ascontiguousarray(rounded[:, copy.ravel()])


def _independent(matrix: Whole) -> list[int]:
    """The first rows that are independent of those before them."""
    chosen: list[int] = []
    reduced: list[tuple[int, Whole]] = []  # a column, and a row that is not 0 there
    for i, row in enumerate(matrix):
        for pivot, known in reduced:
            if row[pivot]:
                row = row * known[pivot] - known * row[pivot]
        found = np.flatnonzero(row)
        if len(found):
            row = row // math.gcd(*row.tolist())
            reduced.append((int(found[0]), row))
            chosen.append(i)
    return chosen


def _inverse(matrix: Whole) -> tuple[Whole, int]:
    """(numerators, denominator) of the inverse of a positive definite matrix, without fractions (Bareiss 1968)."""
    n = len(matrix)
    work = np.concatenate([matrix, np.eye(n, dtype=np.int64).astype(object)], axis=1)
    before = 1
    for i in range(n):
        pivot = work[i, i]  # a leading minor, so it is positive
        others = np.arange(n) != i
        work[others] = (work[others] * pivot - np.outer(work[others, i], work[i])) // before
        before = pivot
    return work[:, n:], int(before)
