"""Clicks of a user who goes down a list: one draw for every click model that `rankloop.feedback` knows."""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import inlined
from rankloop.kernels.random import uniform


@inlined
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
