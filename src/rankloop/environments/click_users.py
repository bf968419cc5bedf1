"""Users of any click model over fixed items: where a click ranker meets users that it was not made for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.base import Floats, Ints, Ranking
from rankloop.compiled import EnvironmentKernels
from rankloop.environments import click_worlds
from rankloop.environments.click_worlds import ScheduledWorlds
from rankloop.feedback import (
    Browsing,
    ClickModel,
)
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.lists import best_list, in_order
from rankloop.kernels.random import uniform


@hot
def draw_clicks(
    browsing: Any, rows: Any, start: int, items: Any, n_shown: int, key: Any, clicks: Any
) -> None:
    """A click (1) or none (0) for each entry of `clicks`.

    The item at position j has row `rows[start + items[j]]` in the tables of `browsing`. Of entries from `n_shown` on,
    which the user does not see, none is clicked.
    """
    reads, last = True, 0
    for position in range(len(clicks)):
        clicks[position] = 0.0
        if not (reads and position < n_shown):
            continue
        row = rows[start + items[position]]
        chance = browsing.examination[position, last] * browsing.attraction[row, position]
        if uniform(key, 2 * position) < chance:
            clicks[position] = 1.0
            last = position + 1
            goes_on = browsing.after_click[row, position]
        else:
            goes_on = browsing.after_none[position]
        reads = uniform(key, 2 * position + 1) < goes_on


class Tables(NamedTuple):
    """Those of `rankloop.feedback.Browsing`, of one world or, with one axis more, of all."""

    attraction: Floats
    examination: Floats
    after_click: Floats
    after_none: Floats


class UserParams(NamedTuple):
    """How users click in each world, and what lists are worth there."""

    browsing: Tables
    rows: Ints  # of the items in the tables
    best: Floats  # by world: the expected clicks of its best list
    values: Floats  # by world and list: expected clicks of every list, where there are several worlds
    phase: int  # rounds before the next world comes
    share: float  # unused: no world is drawn


class UserState(NamedTuple):
    """The present world, what is needed to recompute the past, and scratch for `value`."""

    t: Ints  # users so far
    start: Ints  # since when regret is counted
    key: NDArray[np.uint64]  # of the schedule of worlds
    world: Ints  # which one is here
    counts: Ints  # rounds in each world
    last: Floats  # zero between calls


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
def _values_of_lists(params: Any, lists: Any, values: Any) -> None:
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


MOST_LISTS = 1 << 18  # that are tried one by one


def best_of_world(tables: Browsing) -> tuple[float, Ints]:
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


def _by_item(table: Floats) -> bool:
    # The same at every position.
    return bool((table == table[:, :1]).all())


def every_list(n: int, m: int) -> Ints | None:
    """All lists of m of n items, smaller numbers first; None where there are too many."""
    if math.perm(n, m) > MOST_LISTS:
        return None
    return np.array(list(permutations(range(n), m)), np.int64)


def first_best(values: Floats) -> int:
    """The first of the largest values, up to rounding."""
    most = values.max()
    return int(np.argmax(values >= most - 1e-12 * abs(most)))


def values_of(tables: Browsing, lists: Ints) -> Floats:
    """The expected clicks of each list."""
    params = user_params([tables], n_lists=len(lists))
    _values_of_lists(params, lists, params.values)
    values: Floats = params.values[0]
    return values


def user_params(worlds: Sequence[Browsing], *, n_lists: int = 0, phase: int = 1) -> UserParams:
    """What the kernels take, with space for the best value of each world and for those of so many lists."""
    return UserParams(
        # One memory layout for all models: a loop is compiled for each.
        browsing=Tables(*(np.ascontiguousarray(np.stack(parts)) for parts in zip(*worlds, strict=True))),
        rows=np.arange(len(worlds[0].attraction)),
        best=np.empty(len(worlds)),
        values=np.empty((len(worlds), n_lists)),
        phase=phase,
        share=0.0,
    )


def _best_chain(likes: Floats, after_click: Floats, after_none: float, m: int) -> Ints:
    # Exchanging neighbours i and k of a list shows that i belongs first where likes_i leaves_k > likes_k leaves_i.
    leaves = likes * (1.0 - after_click) + (1.0 - likes) * (1.0 - after_none)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(likes > 0.0, likes / leaves, 0.0)
    order = np.argsort(-first, kind="stable").astype(np.int64)
    items: Ints = best_subset(likes, 1.0 - leaves, order, m)
    return items


def _falls_by_position(tables: Browsing) -> bool:
    # As in the dependent click model: likes by item, and a chance to read on after a click that falls by position.
    by_position = tables.after_click[0]
    return bool(
        _by_item(tables.attraction)
        and (tables.after_click == by_position).all()
        and (np.diff(by_position) <= 0.0).all()
    )


class ClickUsers(ScheduledWorlds):
    """Users who click as a model says: cascade, dependent click, user browsing, dynamic Bayesian and so on.

    The value of a list is its expected number of clicks. `best()` is the best fixed list over the whole schedule,
    `hindsight()` the value of the best fixed list over the rounds played, `ideal(rounds)` the value of showing the
    best list of each round's own users. All are exact.

    Parameters
    ----------
    models : ClickModel or sequence of ClickModel
        How users click, from `rankloop.feedback`; several come in turn, for `phase` rounds each.
    n_positions : int, optional
        How many items are shown; None shows as many as the model has positions, or all items.
    phase : int, optional
        Rounds before the next model, where there are several.

    Notes
    -----
    Which list is best depends on the model. Where the chances to look do not depend on clicks (position-based, trust
    bias) it is an assignment of items to positions. Where the chance to read on depends on the item alone (cascade,
    dynamic Bayesian, click chain) the best order of given items is by falling likes / (1 - goes on), the chance of a
    click over the chance to leave, and the best items are found by dynamic programming. Under a dependent click
    model whose chances to read on do not rise with the position, and under the cascade model, it is the list by
    falling attraction. Other models, and the best fixed list of several models, are found by trying all lists:
    above 262,144 of them `hindsight` is NaN, and so is the regret, and `best` raises ValueError.

    Examples
    --------
    >>> from rankloop.feedback import CascadeModel
    >>> world = ClickUsers(CascadeModel(attraction=[0.2, 0.8, 0.5]), n_positions=2)
    >>> world.best().items, round(world.value(world.best()), 3)
    (array([1, 2]), 0.9)
    """

    params: UserParams
    state: UserState
    kernels = EnvironmentKernels(click_worlds.arrive, respond, value, hindsight)

    def __init__(
        self,
        models: ClickModel | Sequence[ClickModel],
        *,
        n_positions: int | None = None,
        phase: int = 100_000,
    ) -> None:
        given = [models] if isinstance(models, ClickModel) else models
        if not isinstance(given, Sequence) or len(given) == 0:
            raise ValueError(f"models must be a click model or a list of at least one, got {models!r}")
        for number, model in enumerate(given):
            if not isinstance(model, ClickModel):
                raise ValueError(
                    f"models[{number}] must be a click model of rankloop.feedback, got {model!r}"
                )
        if len({model.n_items for model in given}) > 1:
            raise ValueError(f"models must have equally many items, got {[model.n_items for model in given]}")
        self.models = tuple(given)
        self.n_items = given[0].n_items
        most = min(model.n_positions or model.n_items for model in given)
        self.n_positions = most if n_positions is None else whole("n_positions", n_positions, at_least=1)
        if self.n_positions > self.n_items:
            raise ValueError(f"n_positions must be at most n_items={self.n_items}, got {n_positions}")
        tables = [model.browsing(self.n_positions) for model in given]
        self._lists = every_list(self.n_items, self.n_positions) if len(given) > 1 else None
        self.params = params = user_params(
            tables,
            n_lists=0 if self._lists is None else len(self._lists),
            phase=whole("phase", phase, at_least=1),
        )
        if self._lists is not None:
            _values_of_lists(params, self._lists, params.values)
        self.best_lists = np.zeros((len(given), self.n_positions), np.int64)  # the best list of each world
        for world, table in enumerate(tables):
            params.best[world], self.best_lists[world] = best_of_world(table)
        self.state = UserState(
            t=np.zeros(1, np.int64),
            start=np.zeros(1, np.int64),
            key=np.zeros(1, np.uint64),
            world=np.zeros(1, np.int64),
            counts=np.zeros(len(given), np.int64),
            last=np.zeros(self.n_positions + 1),
        )

    def best(self, context: Any = None) -> Ranking:
        """The best fixed list: in expectation, each model as often as the schedule has it."""
        if len(self.models) == 1 and np.isfinite(self.params.best[0]):
            return Ranking(self.best_lists[0].copy())
        if self._lists is None:
            raise ValueError(
                f"the best of all lists of {self.n_positions} of {self.n_items} items cannot be found: "
                "they are too many to be tried"
            )
        return Ranking(self._lists[first_best(self.shares @ self.params.values)])
