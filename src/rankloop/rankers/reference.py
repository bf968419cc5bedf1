"""Rankers to compare with: random orders, one order, and the best order in hindsight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop import measures
from rankloop.arguments import numbers, whole
from rankloop.base import Floats, Ints
from rankloop.compiled import CompiledRanker, RankerKernels, check_items, read_positions
from rankloop.features import is_sparse, read_features, read_sparse
from rankloop.feedback import Nothing
from rankloop.kernels.jit import hot
from rankloop.kernels.random import draw
from rankloop.measures import Measure


class UniformParams(NamedTuple):
    """How many items there are; 0 where each request brings its own."""

    n_items: int


class FixedParams(NamedTuple):
    """The order that is always shown."""

    order: Ints


class RoundsState(NamedTuple):
    """The number of rounds with feedback."""

    t: Ints


@hot
def rank_uniform(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Every list equally likely."""
    if context is None:
        n, m = params.n_items, len(items)
    else:
        n = m = context.shape[0]
    draw(key, 0, n, m, items)
    for position in range(m):
        propensities[position] = 1.0 / n
    return True


@hot
def rank_fixed(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """The given order."""
    for i in range(len(items)):
        items[i] = params.order[i]
    return False


@hot
def learn_nothing(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, answer: Any
) -> None:
    """Count the round."""
    state.t[0] += 1


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
    kernels = RankerKernels(rank_uniform, learn_nothing)

    def __init__(self, *, n_items: int | None = None, n_positions: int | None = None) -> None:
        self.n_items = None if n_items is None else whole("n_items", n_items, at_least=1)
        self.n_positions = read_positions(n_positions, self.n_items)
        self.feedback = Nothing()
        self.params = UniformParams(self.n_items or 0)
        self.state = RoundsState(np.zeros(1, np.int64))

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def read_context(self, context: Any) -> tuple[int, Any]:
        if self.n_positions is not None:
            return super().read_context(context)
        rows = read_sparse("context", context) if is_sparse(context) else read_features(context)
        return rows.shape[0], rows

    def example_context(self, rng: np.random.Generator) -> Any:
        return None if self.n_positions is not None else rng.random((int(rng.integers(1, 9)), 3))

    def current(self, context: Any = None) -> Ints:
        """Items by number: it has no preference among them."""
        return np.arange(self.read_context(context)[0])

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, n_positions: int | None = None, **parameters: Any) -> int:
        return 16 * (n_positions or n_items) + 8


class Fixed(CompiledRanker):
    """Always shows the same order.

    Parameters
    ----------
    order : array_like
        Every item once, best first.
    n_items : int, optional
        How many items there are, where `order` shows only some of them.

    Examples
    --------
    >>> Fixed(order=[2, 0, 1]).rank(rng=np.random.default_rng(1)).items
    array([2, 0, 1])
    """

    summary = "Always shows the same list."
    unservable = "it learns nothing"
    kernels = RankerKernels(rank_fixed, learn_nothing)
    n_items: int

    def __init__(self, *, order: ArrayLike, n_items: int | None = None) -> None:
        try:
            items = np.array(order)
        except ValueError:
            raise ValueError(f"order must list every item once, got {order!r}") from None
        if items.ndim != 1 or len(items) == 0 or items.dtype.kind not in "iu":
            raise ValueError(f"order must list every item once, got {order!r}")
        self.n_items = len(items) if n_items is None else whole("n_items", n_items, at_least=len(items))
        self.n_positions = len(items)
        try:
            check_items(items.astype(np.int64), self.n_positions, self.n_items)
        except ValueError as error:
            raise ValueError(f"order must list every item once: {error}") from None
        self.informed = True
        self.feedback = Nothing()
        self.params = FixedParams(items.astype(np.int64))
        self.state = RoundsState(np.zeros(1, np.int64))

    def current(self, context: Any = None) -> Ints:
        order: Ints = self.params.order.copy()
        return order

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, **parameters: Any) -> int:
        return 16 * n_items + 8


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
