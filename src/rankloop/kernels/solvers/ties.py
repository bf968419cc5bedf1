"""Lists that are equally good: the one that keeps items in the order in which they are numbered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def in_order(gains: NDArray[np.float64], items: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exchange items in a list as long as that costs nothing and brings a smaller number further up.

    An assignment leaves open which of equally good lists it finds. This one is the same on every machine and, where
    nothing is known yet, shows items as the user numbered them.

    Parameters
    ----------
    gains : NDArray[np.float64]
        Positions x items.
    items : NDArray[np.int64]
        A list with the largest sum of gains[j, items[j]], no item twice.

    Returns
    -------
    NDArray[np.int64]
        A list with the same sum.

    Examples
    --------
    >>> in_order(np.array([[0.5, 0.5, 0.5], [0.1, 0.2, 0.2]]), np.array([2, 1]))
    array([0, 1])
    """
    m, n = gains.shape
    items = items.copy()
    position = np.full(n, -1)
    position[items] = np.arange(m)
    changed = True
    while changed:
        changed = False
        for j in range(m):
            item = items[j]
            shown = position[:item]
            # What position j gains by a smaller item, and the position that had that one by this.
            change = gains[j, :item] - gains[j, item]
            change += np.where(shown >= 0, gains[shown, item] - gains[shown, np.arange(item)], 0.0)
            free = np.flatnonzero((change >= 0.0) & ((shown < 0) | (shown > j)))
            if len(free):
                other = free[0]
                items[j] = other
                if position[other] >= 0:
                    items[position[other]] = item
                position[item], position[other] = position[other], j
                changed = True
    return items
