"""Checks that run at every call of `rank` and `learn`: yes or no, and who hears no finds out what is wrong."""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import apart


@apart
def ordinary(items: Any, seen: Any, n_items: int, revealed: Any, clicks: bool, most: float) -> bool:
    """Whether all `items` are below `n_items`, none twice, and feedback is from 0 to `most`, of clicks 0 or 1.

    `seen` has `n_items` entries, all false, before and after.
    """
    for j in range(len(revealed)):
        if not 0.0 <= revealed[j] <= most or (clicks and revealed[j] != 0.0 and revealed[j] != 1.0):
            return False
    n_marked, good = 0, True
    while good and n_marked < len(items):
        i = items[n_marked]
        good = 0 <= i < n_items and not seen[i]
        if good:
            seen[i] = True
            n_marked += 1
    for j in range(n_marked):
        seen[items[j]] = False
    return good


@apart
def within(values: Any, least: Any, most: Any) -> bool:
    """Whether all values lie from `least` to `most`; false where one is NaN."""
    inside = 0
    for j in range(len(values)):
        inside += least <= values[j] and values[j] <= most
    return inside == len(values)
