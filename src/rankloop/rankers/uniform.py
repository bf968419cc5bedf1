"""Uniform: every order equally likely, for reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.compiled import CompiledRanker, RankerKernels, read_positions
from rankloop.features import is_sparse, read_features, read_sparse
from rankloop.feedback import Nothing
from rankloop.kernels.rankers import baselines


class Uniform(CompiledRanker):
    """Shows a random order and learns nothing: the baseline that every learner must beat.

    Parameters
    ----------
    n_items : int, optional
        How many items there are; None where each request brings a list of its own, as rows of features.
    n_positions : int, optional
        How many of the items are shown; None shows all of them.

    Examples
    --------
    >>> Uniform(n_items=5).rank(rng=np.random.default_rng(1)).propensities
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """

    summary = "Shows a random list."
    unservable = "it learns nothing"
    takes_sparse = True
    kernels = RankerKernels(baselines.rank_uniform, baselines.learn_nothing)

    def __init__(self, *, n_items: int | None = None, n_positions: int | None = None) -> None:
        self.n_items = None if n_items is None else whole("n_items", n_items, at_least=1)
        self.n_positions = read_positions(n_positions, self.n_items)
        self.feedback = Nothing()
        self.params = baselines.UniformParams(self.n_items or 0)
        self.state = baselines.RoundsState(np.zeros(1, np.int64))

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def read_context(self, context: Any) -> tuple[int, Any]:
        if self.n_positions is not None:
            return super().read_context(context)
        rows = read_sparse("context", context) if is_sparse(context) else read_features(context)
        return rows.shape[0], rows

    def example_context(self, rng: np.random.Generator) -> Any:
        return None if self.n_positions is not None else rng.random((int(rng.integers(1, 9)), 3))

    def current(self, context: Any = None) -> NDArray[np.int64]:
        """Items by number: it has no preference among them."""
        return np.arange(self.read_context(context)[0])

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return 16 * (n_positions or n_items) + 8

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=4)
        yield cls(n_items=1)
        yield cls(n_items=6, n_positions=2)
        yield cls()
