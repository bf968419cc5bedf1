"""Simulated users of fixed items, each with a relevance vector of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, numbers, shares, whole
from rankloop.base import Floats


@dataclass(frozen=True, eq=False)
class Independent:
    """Users who grade every item independently. tails[phase, grade - 1, item] = P(grade or better).

    Parameters
    ----------
    tails : ndarray of float
        The probability of a grade or a better one, by phase, grade - 1 and item.
    period : int
        Rounds in a phase.
    """

    tails: Floats
    period: int

    @property
    def n_items(self) -> int:
        return int(self.tails.shape[2])

    @property
    def max_grade(self) -> int:
        return int(self.tails.shape[1])

    @property
    def is_binary(self) -> bool:
        return self.max_grade == 1


@dataclass(frozen=True, eq=False)
class Listed:
    """Users who bring one of the listed vectors: row after row, or drawn by `weights` where there are some.

    Parameters
    ----------
    vectors : ndarray of int or ndarray of float
        The relevance vectors, a row for each user.
    weights : ndarray of float or None
        The probability of each row; None takes row after row.
    """

    vectors: NDArray[np.int8] | Floats
    weights: Floats | None

    @property
    def n_items(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def max_grade(self) -> int:
        return max(1, int(np.ceil(self.vectors.max())))

    @property
    def is_binary(self) -> bool:
        return self.vectors.dtype == np.int8 and self.max_grade == 1


Users = Independent | Listed


def bernoulli(probabilities: ArrayLike) -> Independent:
    """Users who find each item relevant with its own chance of `probabilities`, independently.

    Examples
    --------
    >>> bernoulli([0.9, 0.5, 0.1]).n_items
    3
    """
    return switching([shares("probabilities", probabilities)], period=1)


def noisy_halves(*, n_items: int = 10, noise: float = 0.25) -> Independent:
    """The paper's users (2015, section 10): all agree on which half of the items is relevant, up to some noise.

    The first half of `n_items` is relevant, the rest is not; a Gaussian of standard deviation `noise` is added to each,
    and the result is cut at 1/2 to 0 or 1 (erratum A23).

    Examples
    --------
    >>> users = noisy_halves(n_items=4, noise=0.5)
    >>> users.tails.round(3)
    array([[[0.841, 0.841, 0.159, 0.159]]])
    """
    n_items = whole("n_items", n_items, at_least=1)
    noise = number("noise", noise, at_least=0)
    flip = 0.5 * erfc(0.5 / noise / sqrt(2)) if noise > 0 else 0.0
    return bernoulli(np.where(np.arange(n_items) < (n_items + 1) // 2, 1 - flip, flip))


def switching(phases: Sequence[ArrayLike | Independent], *, period: int) -> Independent:
    """An oblivious adversary: the next of the `phases` of users begins every `period` rounds.

    A phase is a vector of probabilities, for Bernoulli users, or users that grade items independently.

    Examples
    --------
    >>> switching([[0.9, 0.1], [0.1, 0.9]], period=1000).tails.shape
    (2, 1, 2)
    """
    if len(phases) == 0:
        raise ValueError("phases must name at least one vector of probabilities, got none")
    tails = [
        phase.tails[0] if isinstance(phase, Independent) else shares(f"phases[{i}]", phase)[None]
        for i, phase in enumerate(phases)
    ]
    if len({tail.shape for tail in tails}) > 1:
        raise ValueError(f"phases must agree in items and grades, got {[tail.shape[::-1] for tail in tails]}")
    return Independent(np.stack(tails), whole("period", period, at_least=1))


def graded(probabilities: ArrayLike) -> Independent:
    """Users who grade items independently: `probabilities` has a row for each item, with the chance of each grade.

    Examples
    --------
    >>> graded([[0.2, 0.3, 0.5], [0.8, 0.1, 0.1]]).tails.round(3)
    array([[[0.8, 0.2],
            [0.5, 0.1]]])
    """
    table = numbers("probabilities", probabilities)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise ValueError(
            f"probabilities must be items x grades with at least two grades, got shape {table.shape}"
        )
    shares("probabilities", table, n_axes=2)
    if not np.allclose(table.sum(axis=1), 1.0):
        raise ValueError(f"probabilities must sum to 1 for every item, got {table.sum(axis=1)}")
    tails = 1.0 - np.cumsum(table, axis=1)[:, :-1]
    return Independent(np.ascontiguousarray(tails.T)[None], 1)


def listed(vectors: ArrayLike, *, weights: ArrayLike | None = None, in_order: bool = False) -> Listed:
    """Users drawn from the rows of `vectors`, evenly or by `weights`; `in_order` takes the rows one after another.

    Examples
    --------
    >>> listed([[1, 0, 0], [0, 1, 1]]).weights
    array([0.5, 0.5])
    """
    rows = relevance_matrix("vectors", vectors)
    if in_order:
        if weights is not None:
            raise ValueError("weights have no meaning with in_order=True")
        return Listed(rows, None)
    given = np.full(len(rows), 1 / len(rows)) if weights is None else numbers("weights", weights)
    if given.shape != (len(rows),):
        raise ValueError(f"weights must be one for each of the {len(rows)} vectors, got shape {given.shape}")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.sum() > 0):
        raise ValueError(f"weights must be finite, not negative and not all zero, got {given}")
    return Listed(rows, given / given.sum())


def relevance_matrix(name: str, values: ArrayLike) -> NDArray[np.int8] | Floats:
    """`values` as a checked users x items matrix, one byte an entry where the grades allow; `name` is for the error."""
    try:
        matrix = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a users x items matrix, got rows of different length") from None
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers, got {matrix.dtype}")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"{name} must be a users x items matrix with at least one of each, got shape {matrix.shape}"
        )
    if matrix.dtype.kind == "f" and not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(f"{name} must be finite, got {matrix[row, column]} at row {row}, column {column}")
    if matrix.min() < 0:
        raise ValueError(f"{name} must not be negative, got {matrix.min()}")
    if matrix.max() > 1000:
        raise ValueError(f"{name} must be at most 1000, got {matrix.max()}")
    whole_grades = matrix.dtype.kind in "bui" or bool((matrix == np.floor(matrix)).all())
    if whole_grades and matrix.max() <= 127:
        return np.array(matrix, dtype=np.int8, order="C")  # a copy: users do not change
    return np.array(matrix, dtype=np.float64, order="C")
