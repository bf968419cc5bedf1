"""The best list for given gains: a rectangular assignment, by shortest augmenting paths.

Positions come in one after another. Each finds the cheapest way to an item that is still free, possibly by pushing
earlier positions to other items. Prices on positions and items keep every step's cost from being negative, so the
cheapest way is Dijkstra's (Jonker and Volgenant 1987). m positions of n items take O(m^2 n) steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot, kernel


class Room(NamedTuple):
    """Room to work in; what is in it means nothing between calls."""

    position_price: NDArray[np.float64]  # dual variables of the positions
    item_price: NDArray[np.float64]  # dual variables of the items
    distance: NDArray[np.float64]  # to each item in this search
    came_from: NDArray[np.int64]  # the position before each item on the way
    shown_at: NDArray[np.int64]  # the position of each item, or -1
    queue: NDArray[np.int64]  # items in the order in which they are visited


@kernel
def room(m: int, n: int) -> Any:
    """Room to assign `n` items to `m` positions."""
    return Room(
        np.empty(m),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )


@hot
def assign(gains: Any, items: Any, room: Any) -> None:
    """Write to `items` the list that maximises the sum of gains[j, items[j]], no item twice.

    `gains` is positions x items, finite, with no more positions than items.
    """
    m, n = gains.shape
    position_price, item_price, distance, came_from, shown_at, queue = room
    for i in range(n):
        item_price[i] = 0.0
        shown_at[i] = -1
    for first in range(m):
        item, reached = _nearest(gains, first, room)
        position_price[first] = 0.0
        if shown_at[item] < 0:  # nobody is pushed
            position_price[first] -= reached
            shown_at[item] = first
            items[first] = item
            continue
        for i in range(n):
            came_from[i] = first
            queue[i] = i
        n_open = n - 1
        queue[item] = n_open
        queue[n_open] = item
        # queue[:n_open] are the items that no shortest way has been found to yet
        while shown_at[item] >= 0:
            position = shown_at[item]
            offset = reached + position_price[position]
            reached, nearest = np.inf, 0
            for place in range(n_open):
                i = queue[place]
                through = offset + item_price[i] - gains[position, i]
                if through < distance[i]:
                    distance[i] = through
                    came_from[i] = position
                if distance[i] < reached or (distance[i] == reached and shown_at[i] < 0):
                    reached, nearest = distance[i], place
            item = queue[nearest]
            n_open -= 1
            queue[nearest] = queue[n_open]
            queue[n_open] = item
        position_price[first] -= reached
        for place in range(n_open, n):
            i = queue[place]
            saved = reached - distance[i]
            item_price[i] += saved
            if shown_at[i] >= 0:
                position_price[shown_at[i]] -= saved
        position = -1
        while position != first:
            position = came_from[item]
            shown_at[item] = position
            pushed = items[position]
            items[position] = item
            item = pushed


@hot
def _nearest(gains: Any, first: int, room: Any) -> Any:
    # The item to which the way straight from position `first` is shortest, and how long that is; it writes all
    # distances. Of equal ones a free item, the last of them, otherwise the first. Passes without branches: they take
    # half the time of one that compares as it goes.
    item_price, distance, shown_at = room.item_price, room.distance, room.shown_at
    n = len(distance)
    for i in range(n):
        distance[i] = item_price[i] - gains[first, i]
    reached = distance[0]
    for i in range(1, n):
        reached = distance[i] if distance[i] < reached else reached
    item = -1
    for i in range(n):
        if distance[i] == reached and (item < 0 or shown_at[i] < 0):
            item = i
    return item, reached


@kernel
def best_list(gains: Any, items: Any) -> float:
    """`assign` with its own scratch space; returns the value of the list."""
    assign(gains, items, room(*gains.shape))
    total = 0.0
    for j in range(len(items)):
        total += gains[j, items[j]]
    return total
