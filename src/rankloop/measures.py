"""Measures of an order: eight of them, what each requires, and a registry by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import nearest, numbers, whole
from rankloop.kernels import discounts
from rankloop.kernels.discounts import by_logarithm, by_rank, evenly

__all__ = [
    "Measure",
    "auc",
    "average_precision",
    "dcg",
    "err",
    "get",
    "names",
    "ndcg",
    "pairwise_loss",
    "precision",
    "sum_loss",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Booleans = NDArray[np.bool_]

HIGHEST_GRADE = 1000  # 2^1000, even summed over the longest list, is still a finite float64


class Rows(NamedTuple):
    """Result i scores the order in row `order_row[i]` against the relevance in row `relevance_row[i]`."""

    orders: Ints
    relevances: Floats
    order_row: Ints
    relevance_row: Ints


def read_order(order: ArrayLike) -> Ints:
    """`order` as int64, every row of its last axis a permutation of 0, ..., m-1."""
    from rankloop.kernels import measures as kernels

    orders = np.asarray(order)
    _refuse_empty("order", orders)
    if orders.dtype.kind not in "iu":
        raise ValueError(f"order must hold item numbers (integers), got {order!r}")
    orders = np.asarray(orders, dtype=np.int64, order="C")
    m = orders.shape[-1]
    fault = int(kernels.first_fault(orders.reshape(-1, m)))
    if fault >= 0:
        where = _name("order", np.unravel_index(fault, orders.shape))
        item = orders.flat[fault]
        wrong = "appears twice" if 0 <= item < m else "is not an item number"
        raise ValueError(f"{where} = {item} {wrong}; an order of {m} items must list each of 0..{m - 1} once")
    return orders


def read_relevance(relevance: ArrayLike, *, binary: bool, highest: float, measure: str) -> Floats:
    """`relevance` as float64: finite, between 0 and `highest`, and only 0 and 1 if `binary`."""
    relevances = np.asarray(numbers("relevance", relevance), order="C")
    _refuse_empty("relevance", relevances)
    proper = np.isfinite(relevances) & (relevances >= 0.0)
    _demand(proper, relevances, "relevance must be finite and not negative")
    if binary:
        zero_or_one = (relevances == 0.0) | (relevances == 1.0)
        _demand(zero_or_one, relevances, f"{measure} needs relevance 0 or 1 here")
    low_enough = relevances <= highest
    _demand(low_enough, relevances, f"{measure} takes relevance up to {highest:g}; see graded(max_grade)")
    return relevances


def pair(orders: Ints, relevances: Floats) -> tuple[Rows, tuple[int, ...]]:
    """Match orders with relevances by broadcasting the axes before the last; also the shape of the answer."""
    m = orders.shape[-1]
    if relevances.shape[-1] != m:
        raise ValueError(f"order ranks {m} items but relevance is given for {relevances.shape[-1]}")
    flat_orders, flat_relevances = orders.reshape(-1, m), relevances.reshape(-1, m)
    try:
        # Row numbers are broadcast, not rows, so that a million orders of one list do not copy its relevance.
        order_row, relevance_row = np.broadcast_arrays(
            np.arange(len(flat_orders)).reshape(orders.shape[:-1]),
            np.arange(len(flat_relevances)).reshape(relevances.shape[:-1]),
        )
    except ValueError:
        shapes = f"order of shape {orders.shape}, relevance of shape {relevances.shape}"
        raise ValueError(f"the axes before the last do not fit together: {shapes}") from None
    return Rows(flat_orders, flat_relevances, order_row.ravel(), relevance_row.ravel()), order_row.shape


def _refuse_empty(argument: str, array: NDArray[np.generic]) -> None:
    if array.ndim == 0:
        raise ValueError(f"{argument} must list one entry per item, got {array!r}")
    if array.shape[-1] == 0:
        raise ValueError(f"{argument} is empty: a list needs at least one item")


def _demand(right: Booleans, relevances: Floats, rule: str) -> None:
    if not right.all():
        first = np.unravel_index(int(right.argmin()), right.shape)
        raise ValueError(f"{_name('relevance', first)} = {relevances[first]:g}; {rule}")


def _name(argument: str, index: tuple[np.intp, ...]) -> str:
    return f"{argument}[{', '.join(str(i) for i in index)}]"


def _f_dot_g(measure: Measure, rows: Rows) -> Floats:
    # f(order) . g(relevance) + offset(relevance), for each pair of checked rows.
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
    score: Callable[[Measure, Rows], Floats] = _f_dot_g
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
        rows, shape = pair(read_order(order), measure._read(relevance, binary=measure.binary))
        values = measure.score(measure, rows).reshape(shape)
        return float(values) if values.ndim == 0 else values

    def at(self, k: int) -> Measure:
        """The same measure of the first `k` positions; a `k` beyond the end of a list means all of it."""
        if self.cutoffs == "none":
            raise ValueError(f"{self.family} has no cut-off form, got k={k!r}")
        return dataclasses.replace(self, cutoff=whole("k", k, at_least=1))

    def within(self, n_items: int) -> Measure:
        """The same measure, where its cut-off is not beyond the end of a list that always has `n_items` items."""
        if self.cutoff is not None and self.cutoff > n_items:
            raise ValueError(f"measure must have a cut-off of at most n_items={n_items}, got {self.name!r}")
        return self

    def graded(self, max_grade: int) -> Measure:
        """The same measure for relevance from 0 to `max_grade`."""
        highest = whole("max_grade", max_grade, at_least=1, at_most=HIGHEST_GRADE)
        if self.binary and highest > 1:
            raise ValueError(f"{self.family} is defined for relevance 0 and 1 only, got max_grade={highest}")
        return dataclasses.replace(self, max_grade=highest)

    def discount(self, n_items: int) -> Floats:
        """The weight of gain at each position of `n_items`, f; zero beyond the cut-off; for losses, the rank from 1."""
        self._demand_cutoff()
        if self.weights is None:
            raise ValueError(f"{self.name} is not of the form f(order) . g(relevance), so it has no discount")
        discount = self.weights(whole("n_items", n_items, at_least=1))
        if self.cutoff is not None:
            discount[self.cutoff :] = 0.0
        return discount

    def gain(self, relevance: ArrayLike) -> Floats:
        """The gain g of each `relevance`, one number per item, for each vector along the last axis."""
        return self._gain_and_offset(relevance)[0]

    def offset(self, relevance: ArrayLike) -> float | Floats:
        """What the measure adds that depends on the `relevance` alone, a number for each vector."""
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
        return read_relevance(relevance, binary=binary, highest=highest, measure=self.name)

    def _demand_cutoff(self) -> None:
        if self.cutoffs == "required" and self.cutoff is None:
            raise ValueError(f"{self.family} needs a cut-off: write {self.family}@k, or .at(k)")


sum_loss = Measure(family="sum_loss", is_loss=True, linear=True, kind=discounts.IDENTITY, weights=by_rank)
"""Sum over items of rank times relevance, ranks counting from 1."""

dcg = Measure(
    family="dcg", is_loss=False, linear=True, kind=discounts.EXP2, cutoffs="optional", weights=by_logarithm
)
"""Discounted cumulative gain: sum over items of (2^relevance - 1) / log2(1 + rank)."""

# Erratum A6: rank <= k, and a sum as in the paper, not a share.
precision = Measure(
    family="precision",
    is_loss=False,
    linear=True,
    kind=discounts.IDENTITY,
    cutoffs="required",
    weights=evenly,
)
"""Sum of the relevance of the first k items, not divided by k."""


def _pairwise_loss(measure: Measure, rows: Rows) -> Floats:
    from rankloop.kernels import measures as kernels

    return kernels.pairwise_loss_rows(*rows)


pairwise_loss = Measure(
    family="pairwise_loss",
    is_loss=True,
    linear=False,
    kind=discounts.PAIRS,
    weights=by_rank,
    score=_pairwise_loss,
)
"""Number of pairs whose less relevant item stands higher."""

# Erratum A17: a loss, one minus what is usually called AUC.
auc = Measure(
    family="auc", is_loss=True, linear=False, kind=discounts.AUC, binary=True, weights=by_rank, max_grade=1
)
"""pairwise_loss divided by the number of pairs of unequal relevance; 0 when there is none."""


def _counting(measure: Measure, rows: Rows) -> int:
    m = int(rows.orders.shape[1])
    return m if measure.cutoff is None else min(measure.cutoff, m)


def _average_precision(measure: Measure, rows: Rows) -> Floats:
    from rankloop.kernels import measures as kernels

    return kernels.average_precision_rows(*rows, _counting(measure, rows))


ndcg = Measure(
    family="ndcg", is_loss=False, linear=False, kind=discounts.NDCG, cutoffs="optional", weights=by_logarithm
)
"""dcg divided by its largest value over all orders, at the same cut-off; 1 when nothing is relevant."""

average_precision = Measure(
    family="average_precision",
    is_loss=False,
    linear=False,
    binary=True,
    cutoffs="optional",
    score=_average_precision,
    max_grade=1,
)
"""Mean over the relevant items of the share of relevant ones down to their rank; 1 when there is none."""


def _err(measure: Measure, rows: Rows) -> Floats:
    from rankloop.kernels import measures as kernels

    return kernels.err_rows(*rows, _counting(measure, rows), measure.max_grade or 1)


err = Measure(family="err", is_loss=False, linear=False, cutoffs="optional", score=_err, max_grade=1)
"""Expected reciprocal rank: the mean of 1/rank of the item a reader stops at, or 0 for one who never stops. The
chance to stop at an item is (2^relevance - 1) / 2^max_grade; `err.graded(4)` is for grades 0 to 4."""


_MEASURES = {
    measure.family: measure
    for measure in (sum_loss, pairwise_loss, dcg, precision, ndcg, average_precision, auc, err)
}
_ALIASES = {"map": "average_precision"}


def names() -> list[str]:
    """Every measure, without cut-offs."""
    return list(_MEASURES)


def get(name: str | Measure, *, max_grade: int | None = None) -> Measure:
    """The measure called `name`, such as "ndcg@10", for relevance up to `max_grade`; a measure is returned as it is.

    Examples
    --------
    >>> get("ndcg@10")
    <measure ndcg@10>
    >>> get("err@10", max_grade=4).max_grade
    4
    """
    measure = name if isinstance(name, Measure) else _parse(name)
    return measure if max_grade is None else measure.graded(max_grade)


def _parse(name: str) -> Measure:
    family, at, k = str(name).partition("@")
    measure = _MEASURES.get(_ALIASES.get(family, family))
    if measure is None:
        ending = {"none": "", "optional": "[@k]", "required": "@k"}
        known = ", ".join(known.family + ending[known.cutoffs] for known in _MEASURES.values())
        close = nearest(family, [*_MEASURES, *_ALIASES])
        raise ValueError(f"measure {name!r} is not known; known are {known}{close}")
    if not at:
        return measure
    if not (k.isascii() and k.isdigit()):
        raise ValueError(f"measure {name!r} has a cut-off that is not a whole number")
    return measure.at(int(k))
