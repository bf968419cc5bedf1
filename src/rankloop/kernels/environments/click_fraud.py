"""Users who click by the tables of a click model, and others who click to promote one item.

Fake users come in a share of the rounds, or instead of a genuine user whose clicks would help an item that the
attacker wants to hold down, until a budget is spent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.environments.click_users import Tables, draw_clicks, expected_clicks
from rankloop.kernels.jit import hot
from rankloop.kernels.random import uniform


class FraudParams(NamedTuple):
    """How genuine users click, and what fake ones are there for."""

    browsing: Any  # tables with one world
    rows: NDArray[np.int64]  # of the items in the tables
    best: float  # the expected clicks of the best list
    promoted: int  # the item that fake users click
    share: float  # of the users who are fake
    victim: NDArray[np.bool_]  # by item: whether its clicks are to be kept from the ranker
    budget: int  # how many genuine users' clicks the attacker can replace


class FraudState(NamedTuple):
    """The present user, and what the attacker has spent."""

    t: NDArray[np.int64]  # users so far
    fake: NDArray[np.int64]  # 1 where the present user is fake
    genuine: NDArray[np.int64]  # genuine users since the counting began
    spent: NDArray[np.int64]  # users whose clicks were replaced
    clicks: NDArray[
        np.float64
    ]  # of all positions, also those that the ranker does not observe; zero between calls
    last: NDArray[np.float64]  # zero between calls


@hot
def arrive(params: Any, state: Any, key: Any) -> None:
    """The next user, genuine or fake."""
    fake = uniform(key, 0) < params.share
    state.fake[0] = fake
    state.genuine[0] += not fake
    state.t[0] += 1


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """The clicks that the ranker observes."""
    hidden = state.fake[0] == 1
    clicks = state.clicks
    if not hidden:
        every = params.browsing
        here = Tables(every.attraction[0], every.examination[0], every.after_click[0], every.after_none[0])
        draw_clicks(here, params.rows, 0, items, len(items), key, clicks)
        if state.spent[0] < params.budget:
            for j in range(len(clicks)):
                hidden = hidden or (clicks[j] > 0.0 and params.victim[items[j]])
            state.spent[0] += hidden
    for j in range(len(clicks)):
        if hidden:
            clicks[j] = items[j] == params.promoted
        if j < len(revealed):
            revealed[j] = clicks[j]
        clicks[j] = 0.0


@hot
def value(params: Any, state: Any, items: Any) -> float:
    """Expected clicks of the present user if genuine; a fake user's are worth nothing."""
    if state.fake[0] == 1:
        return 0.0
    return expected_clicks(params, 0, items, state.last)


@hot
def hindsight(params: Any, state: Any) -> Any:
    """The value of the best list to all genuine users so far."""
    return state.genuine[0] * params.best
