"""The pseudo-inverse of a small matrix of whole numbers, computed in fractions: the same on every machine."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Rows = list[list[Fraction]]


def pseudoinverse(H: NDArray[np.int64]) -> NDArray[np.float64]:
    """The Moore-Penrose inverse of `H`, every entry rounded once.

    Parameters
    ----------
    H : ndarray of int64
        A matrix of low rank; the cost grows with the cube of the rank.

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
    distinct, copy = np.unique(H, axis=0, return_inverse=True)
    basis = [[Fraction(int(entry)) for entry in distinct[i]] for i in _independent(distinct)]
    if not basis:
        return np.zeros(H.shape[::-1])
    # H = B R with R the basis: H^+ = R^T (R R^T)^-1 (B^T B)^-1 B^T
    R_inverse = _times(_transposed(basis), _inverse(_times(basis, _transposed(basis))))
    B = _times([[Fraction(int(entry)) for entry in row] for row in distinct], R_inverse)
    count = np.bincount(copy.ravel(), minlength=len(distinct))
    weighted = [[entry * int(n) for entry in row] for row, n in zip(B, count, strict=True)]
    B_inverse = _times(_inverse(_times(_transposed(weighted), B)), _transposed(B))
    exact = _times(R_inverse, B_inverse)
    rounded = np.array([[float(entry) for entry in row] for row in exact])
    return np.ascontiguousarray(rounded[:, copy.ravel()])


def _independent(matrix: NDArray[np.int64]) -> list[int]:
    """The first rows that are independent of those before them."""
    chosen: list[int] = []
    reduced: list[tuple[int, list[Fraction]]] = []  # (pivot, row with 1 there)
    for i, entries in enumerate(matrix.tolist()):
        row = [Fraction(entry) for entry in entries]
        for pivot, known in reduced:
            if row[pivot]:
                factor = row[pivot]
                row = [a - factor * b for a, b in zip(row, known, strict=True)]
        pivot = next((j for j, entry in enumerate(row) if entry), -1)
        if pivot >= 0:
            reduced.append((pivot, [entry / row[pivot] for entry in row]))
            chosen.append(i)
    return chosen


def _inverse(matrix: Rows) -> Rows:
    """Of a symmetric positive definite matrix, by elimination; no row need be exchanged."""
    n = len(matrix)
    rows = [row + [Fraction(i == j) for j in range(n)] for i, row in enumerate(matrix)]
    for i in range(n):
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for other in range(n):
            if other != i and rows[other][i]:
                factor = rows[other][i]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[i], strict=True)]
    return [row[n:] for row in rows]


def _times(left: Rows, right: Rows) -> Rows:
    columns = _transposed(right)
    return [
        [sum((a * b for a, b in zip(row, column, strict=True) if a and b), Fraction(0)) for column in columns]
        for row in left
    ]


def _transposed(rows: Rows) -> Rows:
    return [list(column) for column in zip(*rows, strict=True)]
