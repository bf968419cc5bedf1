"""Fewer points for a line: as many as the eye can tell apart. Needs no drawing library: the terminal uses it, too."""

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
