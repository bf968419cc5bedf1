"""BestInHindsight: the fixed order that would have been best for a known set of users, for reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rankloop import measures
from rankloop.arguments import numbers
from rankloop.measures import Measure
from rankloop.rankers.fixed import Fixed


class BestInHindsight(Fixed):
    """Always shows the order that is best for the given users taken together: regret 0 after the last of them.

    Parameters
    ----------
    relevance : array_like
        A users x items matrix: everything that will ever be asked.
    measure : str or Measure, optional
        A measure of the form f(order) . g(relevance), such as "dcg", "ndcg" or "auc".

    Examples
    --------
    >>> BestInHindsight(relevance=[[0, 1, 0], [0, 1, 1]], measure="dcg").params.order
    array([1, 2, 0])
    """

    def __init__(self, *, relevance: ArrayLike, measure: str | Measure = "dcg") -> None:
        scored = measures.get(measure)
        matrix = numbers("relevance", relevance)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise ValueError(
                f"relevance must be a users x items matrix with at least one of each, got shape {matrix.shape}"
            )
        scored.within(matrix.shape[1])
        if not scored.separable:
            raise ValueError(
                f"measure {scored.name!r} is not of the form f(order) . g(relevance): its best order is not a sort"
            )
        super().__init__(order=np.argsort(-scored.gain(matrix).sum(axis=0), kind="stable"))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(relevance=[[0, 1, 0], [0, 1, 1]], measure="ndcg")
