"""Users who each bring a relevance vector for the same fixed items.

Two kinds of users (independent grades; listed vectors) times two kinds of measures: separable ones, whose best
ranking in hindsight is a sort of the summed gains, and the rest, which follow every ranking by means of a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot, inlined, kernel
from rankloop.kernels.measures import average_precision, err, gain, pairwise_loss
from rankloop.kernels.random import uniform
from rankloop.kernels.sorting import sorted_copy

AVERAGE_PRECISION, ERR, PAIRWISE_LOSS = range(3)


class IndependentUsers(NamedTuple):
    """tails[phase, grade - 1, item] is the chance of that grade or better; phases change every `period` rounds."""

    tails: NDArray[np.float64]
    period: int


class ListedUsers(NamedTuple):
    """The vectors themselves, in order, or drawn where `cumulative` holds their summed weights."""

    vectors: NDArray[Any]
    cumulative: NDArray[np.float64]


class SeparableParams(NamedTuple):
    """Who comes and how a ranking is scored."""

    users: Any
    kind: int
    discount: NDArray[np.float64]
    cutoff: int


class SeparableState(NamedTuple):
    """The user who is here, and the sums over all who came."""

    t: NDArray[np.int64]  # users so far
    relevance: NDArray[np.float64]  # of each item to this user
    gain: NDArray[np.float64]  # of each item to this user
    offset: NDArray[np.float64]  # of this user
    total_gain: NDArray[np.float64]  # of each item, over all users
    total_offset: NDArray[np.float64]  # over all users


class TabledParams(NamedTuple):
    """table[outcome, ranking] scores every ranking for every relevance vector; empty where there are too many."""

    users: Any
    measure: int
    cutoff: int
    max_grade: int  # of the users
    scale: int  # the highest grade that the measure knows
    table: NDArray[np.float64]


class TabledState(NamedTuple):
    """The user who is here, and the sums over all who came."""

    t: NDArray[np.int64]  # users so far
    relevance: NDArray[np.float64]  # of each item to this user
    totals: NDArray[np.float64]  # by ranking: its value, over all users


@inlined
def _draw_independent(users: Any, t: int, key: Any, relevance: Any) -> None:
    phase = t // users.period % len(users.tails) if len(users.tails) > 1 else 0
    for i in range(len(relevance)):
        relevance[i] = uniform(key, i) < users.tails[phase, 0, i]
    for grade in range(1, users.tails.shape[1]):
        for i in range(len(relevance)):
            relevance[i] += uniform(key, i) < users.tails[phase, grade, i]


@inlined
def _draw_listed(users: Any, t: int, key: Any, relevance: Any) -> None:
    row = t
    if len(users.cumulative) > 0:
        row = np.searchsorted(users.cumulative, uniform(key, 0) * users.cumulative[-1], side="right")
    for i in range(len(relevance)):
        relevance[i] = users.vectors[row, i]


@inlined
def note_separable(params: Any, state: Any) -> None:
    """Take down what the user who is here thinks, and add it to the sums."""
    offset = gain(params.kind, state.relevance, params.discount, state.gain)
    state.offset[0] = offset
    state.total_offset[0] += offset
    for i in range(len(state.gain)):
        state.total_gain[i] += state.gain[i]
    state.t[0] += 1


@inlined
def note_tabled(params: Any, state: Any) -> None:
    """Add the value of every ranking to the present user."""
    state.t[0] += 1
    if len(state.totals) == 0:
        return
    outcome = 0
    for i in range(len(state.relevance)):
        outcome = outcome * (params.max_grade + 1) + int(state.relevance[i])
    for ranking in range(len(state.totals)):
        state.totals[ranking] += params.table[outcome, ranking]


@hot
def arrive_independent_separable(params: Any, state: Any, key: Any) -> None:
    """A user with independent grades, for a separable measure."""
    _draw_independent(params.users, state.t[0], key, state.relevance)
    note_separable(params, state)


@hot
def arrive_independent_tabled(params: Any, state: Any, key: Any) -> None:
    """A user with independent grades, for any measure."""
    _draw_independent(params.users, state.t[0], key, state.relevance)
    note_tabled(params, state)


@hot
def arrive_listed_separable(params: Any, state: Any, key: Any) -> None:
    """A listed user, for a separable measure."""
    _draw_listed(params.users, state.t[0], key, state.relevance)
    note_separable(params, state)


@hot
def arrive_listed_tabled(params: Any, state: Any, key: Any) -> None:
    """A listed user, for any measure."""
    _draw_listed(params.users, state.t[0], key, state.relevance)
    note_tabled(params, state)


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """The relevance of the first items shown."""
    for position in range(len(revealed)):
        revealed[position] = state.relevance[items[position]]


@hot
def value_separable(params: Any, state: Any, items: Any) -> Any:
    """f(order) . g(relevance) + offset(relevance)."""
    total = 0.0
    for position in range(params.cutoff):
        total += params.discount[position] * state.gain[items[position]]
    return total + state.offset[0]


@hot
def value_tabled(params: Any, state: Any, items: Any) -> float:
    """Straight from the definition."""
    if params.measure == AVERAGE_PRECISION:
        return average_precision(items, state.relevance, params.cutoff)
    if params.measure == ERR:
        return err(items, state.relevance, params.cutoff, params.scale)
    return pairwise_loss(items, state.relevance)


@kernel
def hindsight_separable(params: Any, state: Any) -> Any:
    """The largest summed gains go to the best positions (2015, A3: the same sort for losses and gains)."""
    rising = sorted_copy(state.total_gain)
    total = 0.0
    for position in range(params.cutoff):
        total += params.discount[position] * rising[len(rising) - 1 - position]
    return total + state.total_offset[0]


@kernel
def hindsight_tabled(params: Any, state: Any) -> float:
    """The best of all rankings; NaN where they are too many to follow."""
    best = np.nan
    for ranking in range(len(state.totals)):
        total = state.totals[ranking]
        better = total < best if params.measure == PAIRWISE_LOSS else total > best
        if better or ranking == 0:
            best = total
    return best
