"""Users of one of two worlds: which of them is decided when the first one comes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.environments.fixed_items import note_separable, note_tabled
from rankloop.kernels.jit import hot, inlined
from rankloop.kernels.random import uniform


class TwoWorldsUsers(NamedTuple):
    """Relevance vectors, their summed chances in each world, and the world; -1 where chance decides."""

    vectors: NDArray[Any]
    cumulative: NDArray[np.float64]
    world: int


class TwoWorldsSeparableState(NamedTuple):
    """As of fixed items, and the world."""

    t: NDArray[np.int64]
    relevance: NDArray[np.float64]
    gain: NDArray[np.float64]
    offset: NDArray[np.float64]
    total_gain: NDArray[np.float64]
    total_offset: NDArray[np.float64]
    world: NDArray[np.int64]  # decided when the first user comes


class TwoWorldsTabledState(NamedTuple):
    """As of fixed items, and the world."""

    t: NDArray[np.int64]
    relevance: NDArray[np.float64]
    totals: NDArray[np.float64]
    world: NDArray[np.int64]  # decided when the first user comes


@inlined
def _draw(users: Any, state: Any, key: Any) -> None:
    if state.t[0] == 0:
        state.world[0] = users.world if users.world >= 0 else int(uniform(key, 1) < 0.5)
    summed = users.cumulative[state.world[0]]
    row = np.searchsorted(summed, uniform(key, 0) * summed[-1], side="right")
    for i in range(len(state.relevance)):
        state.relevance[i] = users.vectors[row, i]


@hot
def arrive_separable(params: Any, state: Any, key: Any) -> None:
    """A user of the world, for a separable measure."""
    _draw(params.users, state, key)
    note_separable(params, state)


@hot
def arrive_tabled(params: Any, state: Any, key: Any) -> None:
    """A user of the world, for any measure."""
    _draw(params.users, state, key)
    note_tabled(params, state)
