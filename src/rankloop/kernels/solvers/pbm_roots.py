"""The likeliest attraction of each item given the examinations, or the other way round, from counts by group of cells.

A cell is clicked with probability x w, where x belongs to its group and w to the cell. The best x is the root of a
rising convex function, found by Newton's method within bounds that close in on it. Every group stops when its own
root has settled, so that a million easy groups do not wait for the hardest one.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import apart, inlined

_STEPS = 100
_SETTLED = 1e-9  # the last step, relative: the next would be its square


@inlined
def _excess(x: float, first: int, last: int, other: Any, weights: Any, missed: Any, disliked: float) -> Any:
    """Expected clicks for the misses there were, and the slope; each rises from 0 to infinity."""
    value, slope = 0.0, 0.0
    for cell in range(first, last):
        weight = weights[other[cell]]
        risk = missed[cell] * weight
        if risk > 0.0:
            rest = 1.0 / (1.0 - x * weight)
            lost = risk * rest
            value += lost
            slope += lost * rest
    value *= x
    if disliked > 0.0:
        miss = disliked / (1.0 - x)
        value += x * miss
        slope += miss / (1.0 - x)
    return value, slope


@apart
def likeliest(
    starts: Any,
    other: Any,
    weights: Any,
    clicked: Any,
    missed: Any,
    liked: float,
    disliked: float,
    x: Any,
) -> None:
    """Replace each `x`, the start, by the likeliest one from 0 to 1.

    The cells of group g are those from ``starts[g]`` on; the weight of a cell is ``weights[other[cell]]``. Each group
    has so many more impressions of weight 1, `liked` with a click and `disliked` without. A group without a click gets
    0.
    """
    for g in range(len(x)):
        first, last = starts[g], starts[g + 1]
        hits = 0.0
        for cell in range(first, last):
            hits += clicked[cell]
        hits += liked
        if hits <= 0.0:
            x[g] = 0.0
            continue
        value, _ = _excess(1.0, first, last, other, weights, missed, disliked)
        if value <= hits:
            x[g] = 1.0
            continue
        low, high = 0.0, 1.0
        at = x[g] if 0.0 < x[g] < 1.0 else 0.5
        for _ in range(_STEPS):
            value, slope = _excess(at, first, last, other, weights, missed, disliked)
            if value > hits:
                high = at
            else:
                low = at
            after = at - (value - hits) / slope if slope > 0.0 else at
            if not low < after < high:
                after = 0.5 * (low + high)
            moved = abs(after - at)
            still = moved > _SETTLED * min(at, 1.0 - at) + 1e-15
            at = after
            if not still:
                break
        x[g] = at
