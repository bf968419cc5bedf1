"""Uniform: every order equally likely, for reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.base import whole
from rankloop.compiled import CompiledRanker, RankerKernels
from rankloop.feedback import Nothing
from rankloop.kernels import reference


class Uniform(CompiledRanker):
    """Shows a random order and learns nothing: the line that every learner must beat.

    Parameters
    ----------
    n_items : how many items there are.

    Examples
    --------
    >>> Uniform(n_items=5).rank(rng=np.random.default_rng(1)).propensities
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """

    kernels = RankerKernels(reference.rank_uniform, reference.learn_nothing)

    def __init__(self, *, n_items: int) -> None:
        self.n_items = self.n_positions = whole("n_items", n_items, at_least=1)
        self.feedback = Nothing()
        self.params = reference.UniformParams(self.n_items)
        self.state = reference.RoundsState(np.zeros(1, np.int64))

    def blank_propensities(self) -> NDArray[np.float64]:
        return np.empty(self.n_positions)

    def current(self, context: Any = None) -> NDArray[np.int64]:
        """Items as they are numbered: it holds none of them better than another."""
        return np.arange(self.n_items)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=4)
        yield cls(n_items=1)
