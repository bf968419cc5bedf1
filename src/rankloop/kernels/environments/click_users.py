"""Users of fixed items who click by the tables of a click model. Worlds come in turn, as in `click_worlds`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.environments.click_users import draw_clicks
from rankloop.kernels.jit import hot, kernel


class Tables(NamedTuple):
    """Those of `rankloop.feedback.Browsing`, of one world or, with one axis more, of all."""

    attraction: NDArray[np.float64]
    examination: NDArray[np.float64]
    after_click: NDArray[np.float64]
    after_none: NDArray[np.float64]


class UserParams(NamedTuple):
    """How users click in each world, and what lists are worth there."""

    browsing: Tables
    rows: NDArray[np.int64]  # of the items in the tables
    best: NDArray[np.float64]  # by world: the expected clicks of its best list
    values: NDArray[
        np.float64
    ]  # by world and list: expected clicks of every list, where there are several worlds
    phase: int  # rounds before the next world comes
    share: float  # unused: no world is drawn


class UserState(NamedTuple):
    """The present world, what is needed to recompute the past, and room for `value`."""

    t: NDArray[np.int64]  # users so far
    start: NDArray[np.int64]  # since when regret is counted
    key: NDArray[np.uint64]  # of the schedule of worlds
    world: NDArray[np.int64]  # which one is here
    counts: NDArray[np.int64]  # rounds in each world
    last: NDArray[np.float64]  # zero between calls


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """A click or none at each position."""
    world, every = state.world[0], params.browsing
    here = Tables(
        every.attraction[world], every.examination[world], every.after_click[world], every.after_none[world]
    )
    draw_clicks(here, params.rows, 0, items, len(items), key, revealed)


@hot
def expected_clicks(params: Any, world: int, items: Any, last: Any) -> float:
    """The expected clicks on a list: last[r] is the chance to be reading with the last click at r; all 0 afterwards."""
    tables = params.browsing
    m = tables.examination.shape[1]
    total = 0.0
    last[0] = 1.0
    for j in range(m):
        clicks = 0.0
        for r in range(j + 1):
            click = last[r] * tables.examination[world, j, r] * tables.attraction[world, items[j], j]
            clicks += click
            last[r] = (last[r] - click) * tables.after_none[world, j]
        last[j + 1] = clicks * tables.after_click[world, items[j], j]
        total += clicks
    for r in range(m + 1):
        last[r] = 0.0
    return total


@hot
def value(params: Any, state: Any, items: Any) -> float:
    """Expected clicks in the present world."""
    return expected_clicks(params, state.world[0], items, state.last)


@kernel
def hindsight(params: Any, state: Any) -> Any:
    """The value of the best fixed list over all worlds so far; NaN where the lists are too many to be tried."""
    n_worlds, n_lists = params.values.shape
    if n_worlds == 1:
        return state.counts[0] * params.best[0]
    if n_lists == 0:
        return np.nan
    most = -np.inf
    for number in range(n_lists):
        total = 0.0
        for world in range(n_worlds):
            total += state.counts[world] * params.values[world, number]
        most = max(most, total)
    return most


@kernel
def values_of(params: Any, lists: Any, values: Any) -> None:
    """The expected clicks of each of `lists` in each world."""
    last = np.zeros(lists.shape[1] + 1)
    for world in range(len(values)):
        for number in range(len(lists)):
            values[world, number] = expected_clicks(params, world, lists[number], last)


@kernel
def best_subset(likes: Any, goes_on: Any, order: Any, m: int) -> Any:
    """The m items, in the given order of all, with the most clicks where each has its own chance to read on.

    A list that begins with item i is worth likes_i + goes_on_i times the rest of it; the rest is the best of the items
    that come later in the order.
    """
    n = len(order)
    most = np.full((n + 1, m + 1), -np.inf)
    most[:, 0] = 0.0
    for place in range(n - 1, -1, -1):
        i = order[place]
        for size in range(1, min(m, n - place) + 1):
            with_it = likes[i] + goes_on[i] * most[place + 1, size - 1]
            most[place, size] = max(most[place + 1, size], with_it)
    items = np.empty(m, np.int64)
    place = 0
    for j in range(m):
        size = m - j
        i = order[place]
        while likes[i] + goes_on[i] * most[place + 1, size - 1] < most[place + 1, size]:
            place += 1
            i = order[place]
        items[j] = i
        place += 1
    return items
