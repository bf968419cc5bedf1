"""Where things stand so that the eye can tell them apart: fewer points for a line, names that do not cover each other.

Needs no drawing library: the terminal uses it, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def thin(count: int, *, points: int = 400, logarithmic: bool = True) -> Sequence[int]:
    """Indices of at most `points` of `count` rows, evenly spaced to the eye; the last row is always among them.

    >>> list(thin(5))
    [0, 1, 2, 3, 4]
    """
    if count <= points:
        return list(range(count))
    spaced = np.geomspace(1, count, points) if logarithmic else np.linspace(1, count, points)
    return [int(i) for i in np.unique(np.round(spaced).astype(int)) - 1]


def spread(wanted: Sequence[float], *, gaps: Sequence[float], low: float, high: float) -> list[float]:
    """Positions as near to `wanted` as can be, in the same order, at least half the two neighbours' `gaps` apart.

    The least-squares answer: what collides is pooled and centred on the mean of what was wanted. If everything
    cannot fit between `low` and `high`, the gaps shrink together.

    >>> spread([1.0, 1.0, 5.0], gaps=[1.0, 1.0, 1.0], low=0.0, high=6.0)
    [0.5, 1.5, 5.0]
    """
    if len(wanted) != len(gaps):
        raise ValueError(f"gaps must have one entry for each of the {len(wanted)} positions, got {len(gaps)}")
    if not wanted:
        return []
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    room, needed = high - low, sum(gaps)
    shrink = min(1.0, room / needed) if needed > 0.0 else 1.0
    offsets, offset = [], 0.0
    for before, after in zip([order[0], *order], order, strict=False):
        offset += shrink * (gaps[before] + gaps[after]) / 2 if before != after else 0.0
        offsets.append(offset)
    # With the offsets taken away, "apart enough" becomes "not falling": isotonic regression by pooling.
    pools: list[tuple[float, int]] = []
    for i, offset in zip(order, offsets, strict=True):
        total, count = wanted[i] - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            earlier, members = pools.pop()
            total, count = total + earlier, count + members
        pools.append((total, count))
    levels = [total / count for total, count in pools for _ in range(count)]
    first, last = shrink * gaps[order[0]] / 2, offsets[-1] + shrink * gaps[order[-1]] / 2
    placed = [0.0] * len(wanted)
    for i, offset, level in zip(order, offsets, levels, strict=True):
        placed[i] = min(max(level, low + first), high - last) + offset
    return placed
