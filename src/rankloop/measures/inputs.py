"""Orders and relevance as given by users, checked and laid out for the kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers


class Rows(NamedTuple):
    """Result i scores the order in row `order_row[i]` against the relevance in row `relevance_row[i]`."""

    orders: NDArray[np.int64]
    relevances: NDArray[np.float64]
    order_row: NDArray[np.int64]
    relevance_row: NDArray[np.int64]


def read_order(order: ArrayLike) -> NDArray[np.int64]:
    """`order` as int64, every row of its last axis a permutation of 0, ..., m-1."""
    from rankloop.kernels import measures as kernels

    given = np.asarray(order)
    _refuse_empty("order", given)
    if given.dtype.kind not in "iu":
        raise ValueError(f"order must hold item numbers (integers), got {order!r}")
    orders = np.asarray(given, dtype=np.int64, order="C")
    m = orders.shape[-1]
    fault = int(kernels.first_fault(orders.reshape(-1, m)))
    if fault >= 0:
        where = _name("order", np.unravel_index(fault, orders.shape))
        item = orders.flat[fault]
        wrong = "appears twice" if 0 <= item < m else "is not an item number"
        raise ValueError(f"{where} = {item} {wrong}; an order of {m} items must list each of 0..{m - 1} once")
    return orders


def read_relevance(
    relevance: ArrayLike, *, binary: bool, highest: float, measure: str
) -> NDArray[np.float64]:
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


def pair(orders: NDArray[np.int64], relevances: NDArray[np.float64]) -> tuple[Rows, tuple[int, ...]]:
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


def _refuse_empty(argument: str, given: NDArray[np.generic]) -> None:
    if given.ndim == 0:
        raise ValueError(f"{argument} must list one entry per item, got {given!r}")
    if given.shape[-1] == 0:
        raise ValueError(f"{argument} is empty: a list needs at least one item")


def _demand(right: NDArray[np.bool_], relevances: NDArray[np.float64], rule: str) -> None:
    if not right.all():
        first = np.unravel_index(int(right.argmin()), right.shape)
        raise ValueError(f"{_name('relevance', first)} = {relevances[first]:g}; {rule}")


def _name(argument: str, index: tuple[np.intp, ...]) -> str:
    return f"{argument}[{', '.join(str(i) for i in index)}]"
