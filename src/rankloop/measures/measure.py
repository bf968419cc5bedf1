"""What a ranking measure is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import whole
from rankloop.kernels import discounts
from rankloop.measures import inputs

Floats = NDArray[np.float64]

HIGHEST_GRADE = 1000  # 2^1000, even summed over the longest list, is still a finite float64


def f_dot_g(measure: Measure, rows: inputs.Rows) -> Floats:
    """f(order) . g(relevance) + offset(relevance).

    Parameters
    ----------
    measure : Measure
        The measure.
    rows : inputs.Rows
        Orders and relevance vectors, checked and paired.

    Returns
    -------
    ndarray of float
        One value for each pair.
    """
    from rankloop.kernels import measures as kernels

    return kernels.separable_rows(measure.kind, *rows, measure.discount(rows.orders.shape[1]))


@dataclass(frozen=True, repr=False)
class Measure:
    """Scores an order of items against their relevance. A frozen value: compare it, hash it, pickle it.

    An order lists items by position, best first, items counting from 0. A relevance vector says how relevant each
    item is, item 0 first. An order has no ties, so no rule is needed to break them: items of equal relevance may
    change places without changing the value.

    Parameters
    ----------
    family : str
        The name without a cut-off, such as "dcg".
    is_loss : bool
        Smaller is better.
    linear : bool
        Equals f(order) . g(relevance) with g applied to each item's relevance on its own. These are the
        measures whose value can be estimated from one item's relevance at a time.
    kind : int, optional
        Which g the kernels use, from `rankloop.kernels.discounts`; -1 when not separable.
    binary : bool, optional
        Only defined for relevance 0 and 1.
    cutoffs : {"none", "optional", "required"}
        Whether there is an `@k` form, and whether the measure is defined without one.
    weights : callable, optional
        F by position for a list of n items without cut-off.
    score : callable, optional
        How to evaluate checked rows; by default f . g + offset.
    cutoff : int, optional
        Only the first `cutoff` positions count.
    max_grade : int, optional
        Relevance above it is refused; `err` also takes its scale from it. None: no limit.

    Examples
    --------
    >>> from rankloop import measures
    >>> measures.dcg([2, 0, 1], [0, 0, 1])
    1.0
    >>> measures.ndcg([[0, 1, 2], [2, 1, 0]], [0, 0, 1], k=2)
    array([0., 1.])
    """

    family: str
    is_loss: bool
    linear: bool
    kind: int = discounts.NOT_SEPARABLE
    binary: bool = False
    cutoffs: Literal["none", "optional", "required"] = "none"
    weights: Callable[[int], Floats] | None = None
    score: Callable[[Measure, inputs.Rows], Floats] = f_dot_g
    cutoff: int | None = None
    max_grade: int | None = None

    @property
    def name(self) -> str:
        """As `measures.get` takes it: "dcg", "dcg@5"."""
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    @property
    def separable(self) -> bool:
        """Whether it equals f(order) . g(relevance) + offset(relevance), where g may look at the whole vector.

        `pairwise_loss` does so for binary relevance only.
        """
        return self.kind != discounts.NOT_SEPARABLE

    def __repr__(self) -> str:
        return f"<measure {self.name}>"

    def as_argument(self) -> str:
        """The name, by which a saved ranker finds this measure again."""
        return self.name

    def __call__(self, order: ArrayLike, relevance: ArrayLike, *, k: int | None = None) -> float | Floats:
        """The value of `order`: a float for one order and one relevance vector, otherwise an array.

        The axes before the last are broadcast: many orders with one relevance vector, one order with many, or
        as many of the one as of the other.
        """
        measure = self if k is None else self.at(k)
        measure._demand_cutoff()
        rows, shape = inputs.pair(inputs.read_order(order), measure._read(relevance, binary=measure.binary))
        values = measure.score(measure, rows).reshape(shape)
        return float(values) if values.ndim == 0 else values

    def at(self, k: int) -> Measure:
        """The same measure of the first `k` positions; a `k` beyond the end of a list means all of it.

        Parameters
        ----------
        k : int
            How many positions count.

        Returns
        -------
        Measure
            The measure with that cut-off.
        """
        if self.cutoffs == "none":
            raise ValueError(f"{self.family} has no cut-off form, got k={k!r}")
        return dataclasses.replace(self, cutoff=whole("k", k, at_least=1))

    def within(self, n_items: int) -> Measure:
        """The same measure, where its cut-off is not beyond the end of a list that always has `n_items` items.

        Parameters
        ----------
        n_items : int
            Length of the list.

        Returns
        -------
        Measure
            This one.

        Raises
        ------
        ValueError
            Where the cut-off is larger: on items that do not change that is a mistake.
        """
        if self.cutoff is not None and self.cutoff > n_items:
            raise ValueError(f"measure must have a cut-off of at most n_items={n_items}, got {self.name!r}")
        return self

    def graded(self, max_grade: int) -> Measure:
        """The same measure for relevance from 0 to `max_grade`.

        Parameters
        ----------
        max_grade : int
            The largest relevance.

        Returns
        -------
        Measure
            The measure for that scale.
        """
        highest = whole("max_grade", max_grade, at_least=1, at_most=HIGHEST_GRADE)
        if self.binary and highest > 1:
            raise ValueError(f"{self.family} is defined for relevance 0 and 1 only, got max_grade={highest}")
        return dataclasses.replace(self, max_grade=highest)

    def discount(self, n_items: int) -> Floats:
        """The weight of gain at each position, f; zero beyond the cut-off; for losses, the rank from 1.

        Parameters
        ----------
        n_items : int
            The length of the list.

        Returns
        -------
        ndarray of float
            One weight for each position.
        """
        self._demand_cutoff()
        if self.weights is None:
            raise ValueError(f"{self.name} is not of the form f(order) . g(relevance), so it has no discount")
        discount = self.weights(whole("n_items", n_items, at_least=1))
        if self.cutoff is not None:
            discount[self.cutoff :] = 0.0
        return discount

    def gain(self, relevance: ArrayLike) -> Floats:
        """g(relevance), one number per item, for each vector along the last axis.

        Parameters
        ----------
        relevance : array_like
            The relevance of each item.

        Returns
        -------
        ndarray of float
            One gain for each item.
        """
        return self._gain_and_offset(relevance)[0]

    def offset(self, relevance: ArrayLike) -> float | Floats:
        """What the measure adds that depends on the relevance alone.

        Parameters
        ----------
        relevance : array_like
            The relevance of each item.

        Returns
        -------
        float or ndarray of float
            One number for each relevance vector.
        """
        offsets = self._gain_and_offset(relevance)[1]
        return float(offsets) if offsets.ndim == 0 else offsets

    def _gain_and_offset(self, relevance: ArrayLike) -> tuple[Floats, Floats]:
        from rankloop.kernels import measures as kernels

        # Erratum A4: pairwise_loss is f . g + offset for binary relevance only, and otherwise not.
        relevances = self._read(relevance, binary=self.kind in (discounts.PAIRS, discounts.AUC))
        *lead, m = relevances.shape
        gains, offsets = kernels.gain_rows(self.kind, relevances.reshape(-1, m), self.discount(m))
        return gains.reshape(relevances.shape), offsets.reshape(lead)

    def _read(self, relevance: ArrayLike, *, binary: bool) -> Floats:
        limit = HIGHEST_GRADE if self.kind in (discounts.EXP2, discounts.NDCG) else np.inf
        highest = limit if self.max_grade is None else self.max_grade
        return inputs.read_relevance(relevance, binary=binary, highest=highest, measure=self.name)

    def _demand_cutoff(self) -> None:
        if self.cutoffs == "required" and self.cutoff is None:
            raise ValueError(f"{self.family} needs a cut-off: write {self.family}@k, or .at(k)")
