"""The list with the most expected clicks under a click model: exactly, and without trying all lists where possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from rankloop.feedback import Browsing
from rankloop.kernels.environments import click_users as kernels
from rankloop.kernels.solvers.assignment import best_list
from rankloop.kernels.solvers.ties import in_order

MOST_LISTS = 1 << 18  # that are tried one by one


def best_of_world(tables: Browsing) -> tuple[float, NDArray[np.int64]]:
    """The expected clicks of the best list, and the list; NaN and no list in particular where it cannot be found."""
    n, m = tables.attraction.shape
    likes, looks = tables.attraction, tables.examination
    always = bool((looks == 1.0).all())
    stays = bool((tables.after_none == 1.0).all())
    lower = np.tril_indices(m)
    if stays and (tables.after_click == 1.0).all() and (looks[lower] == looks[lower[0], 0]).all():
        gains = np.ascontiguousarray(looks[:, :1] * likes.T)
        items = np.empty(m, np.int64)
        best_list(gains, items)
        items = in_order(gains, items)
    elif always and all(_by_item(table) for table in (likes, tables.after_click, tables.after_none[None])):
        items = _best_chain(likes[:, 0].copy(), tables.after_click[:, 0], tables.after_none[0], m)
    elif always and stays and _falls_by_position(tables):
        items = np.argsort(-likes[:, 0], kind="stable")[:m].astype(np.int64)
    else:
        lists = every_list(n, m)
        if lists is None:
            return float("nan"), np.arange(m)
        items = lists[first_best(values_of(tables, lists))]
    return float(values_of(tables, items[None])[0]), items


def _by_item(table: NDArray[np.float64]) -> bool:
    # The same at every position.
    return bool((table == table[:, :1]).all())


def every_list(n: int, m: int) -> NDArray[np.int64] | None:
    """All lists of m of n items, smaller numbers first; None where there are too many."""
    if math.perm(n, m) > MOST_LISTS:
        return None
    return np.array(list(permutations(range(n), m)), np.int64)


def first_best(values: NDArray[np.float64]) -> int:
    """The first of the largest values, up to rounding."""
    most = values.max()
    return int(np.argmax(values >= most - 1e-12 * abs(most)))


def values_of(tables: Browsing, lists: NDArray[np.int64]) -> NDArray[np.float64]:
    """The expected clicks of each list."""
    params = user_params([tables], n_lists=len(lists))
    kernels.values_of(params, lists, params.values)
    values: NDArray[np.float64] = params.values[0]
    return values


def user_params(worlds: Sequence[Browsing], *, n_lists: int = 0, phase: int = 1) -> kernels.UserParams:
    """What the kernels take, with room for the best value of each world and for those of so many lists."""
    return kernels.UserParams(
        # One memory layout for all models: a loop is compiled for each.
        browsing=kernels.Tables(
            *(np.ascontiguousarray(np.stack(parts)) for parts in zip(*worlds, strict=True))
        ),
        rows=np.arange(len(worlds[0].attraction)),
        best=np.empty(len(worlds)),
        values=np.empty((len(worlds), n_lists)),
        phase=phase,
        share=0.0,
    )


def _best_chain(
    likes: NDArray[np.float64],
    after_click: NDArray[np.float64],
    after_none: float,
    m: int,
) -> NDArray[np.int64]:
    # Exchanging neighbours i and k of a list shows that i belongs first where likes_i leaves_k > likes_k leaves_i.
    leaves = likes * (1.0 - after_click) + (1.0 - likes) * (1.0 - after_none)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(likes > 0.0, likes / leaves, 0.0)
    order = np.argsort(-first, kind="stable").astype(np.int64)
    items: NDArray[np.int64] = kernels.best_subset(likes, 1.0 - leaves, order, m)
    return items


def _falls_by_position(tables: Browsing) -> bool:
    # As in the dependent click model: likes by item, and a chance to read on after a click that falls by position.
    by_position = tables.after_click[0]
    return bool(
        _by_item(tables.attraction)
        and (tables.after_click == by_position).all()
        and (np.diff(by_position) <= 0.0).all()
    )
