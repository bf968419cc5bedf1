"""Fixed: one given order, for reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import whole
from rankloop.compiled import CompiledRanker, RankerKernels, check_items
from rankloop.feedback import Nothing
from rankloop.kernels.rankers import baselines


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
    kernels = RankerKernels(baselines.rank_fixed, baselines.learn_nothing)
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
        self.params = baselines.FixedParams(items.astype(np.int64))
        self.state = baselines.RoundsState(np.zeros(1, np.int64))

    def current(self, context: Any = None) -> NDArray[np.int64]:
        order: NDArray[np.int64] = self.params.order.copy()
        return order

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return 16 * n_items + 8

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(order=[2, 0, 1])
        yield cls(order=[4, 1], n_items=5)
        yield cls(order=[0])
