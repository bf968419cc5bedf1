"""The chances of a list that is shuffled within nested parts, and in which one item may have been moved forward.

`breaks` says until which u each break between neighbouring places is there (see `permutahedron`). The parts for all u
form a binary tree: a part is a node, it lasts from the u at which its last inner break goes until one of the breaks at
its ends does. Within a part of n places every place is equally likely at every position, so the chance of place a at
position b is the sum of (how long it lasts) / n over all parts that hold both. These are the smallest such part and the
parts around it, so sums from the root down answer any question in one walk up the tree.

With chance explore[l] place l is then moved forward to position k - 1, if it stood further back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot


class TreeRoom(NamedTuple):
    """Room to work in; never state. Node k is the part that forms when break k goes."""

    parent: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    first: NDArray[np.int64]  # place of the part ...
    last: NDArray[np.int64]
    stack: NDArray[np.int64]
    before: NDArray[np.float64]  # explore, summed over the places before this one
    sums: NDArray[np.float64]  # [node]: five sums over this part and all around it


def room(m: int) -> TreeRoom:
    """Room for `m` items."""
    return TreeRoom(
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m + 1),
        np.empty((m, 5)),
    )


def room_bytes(m: int) -> int:
    """Bytes of the room for `m` items."""
    return 8 * (12 * m + 1)


@hot
def plant(breaks: Any, explore: Any, room: Any) -> None:
    """Build the tree."""
    m = len(breaks)
    room.before[0] = 0.0
    for place in range(m):
        room.before[place + 1] = room.before[place] + explore[place]
    top = 0
    for k in range(m - 1):
        room.left[k], room.right[k] = -1, -1
        while top > 0 and breaks[room.stack[top - 1]] <= breaks[k]:
            top -= 1
            room.left[k] = room.stack[top]
            room.last[room.stack[top]] = k
        room.first[k] = room.stack[top - 1] + 1 if top > 0 else 0
        room.parent[k] = room.stack[top - 1] if top > 0 else -1
        if top > 0:
            room.right[room.stack[top - 1]] = k
        if room.left[k] >= 0:
            room.parent[room.left[k]] = k
        room.stack[top] = k
        top += 1
    if top == 0:
        return
    for s in range(top):
        room.last[room.stack[s]] = m - 1
    top = 1  # stack[0] is the root; parents before children
    while top > 0:
        top -= 1
        k = room.stack[top]
        _sum_down(breaks, k, room)
        if room.left[k] >= 0:
            room.stack[top] = room.left[k]
            top += 1
        if room.right[k] >= 0:
            room.stack[top] = room.right[k]
            top += 1


@hot
def _sum_down(breaks: Any, k: int, room: Any) -> None:
    parent, sums = room.parent[k], room.sums
    lasts = (1.0 if parent < 0 else breaks[parent]) - breaks[k]
    first = room.first[k]
    n = room.last[k] + 1 - first
    inside = room.before[room.last[k] + 1] - room.before[first]
    even = lasts / n
    pair = even / (n - 1)
    for s in range(5):
        sums[k, s] = 0.0 if parent < 0 else sums[parent, s]
    sums[k, 0] += even
    sums[k, 1] += even * room.before[first] - pair * first * inside
    sums[k, 2] += pair * inside
    sums[k, 3] += pair
    sums[k, 4] += pair * first


@hot
def _drawn(breaks: Any, explore: Any, place: int, position: int, room: Any) -> Any:
    # (the chance of `place` at `position` before anything is moved; the same and that a place drawn by `explore`,
    # another one, stands before it)
    m = len(breaks)
    if m == 1:
        return 1.0, 0.0
    # The smallest part of two places or more that holds `place`.
    if place == 0:
        node = 0
    elif place == m - 1:
        node = m - 2
    else:
        node = place - 1 if breaks[place - 1] <= breaks[place] else place
    alone = 0.0
    if place == position:
        alone = breaks[node]
    while node >= 0 and not room.first[node] <= position <= room.last[node]:
        node = room.parent[node]
    if node < 0:
        return 0.0, 0.0
    sums = room.sums[node]
    ahead = sums[1] + position * (sums[2] - explore[place] * sums[3]) + explore[place] * sums[4]
    return sums[0] + alone, ahead + alone * room.before[place]


@hot
def chance(breaks: Any, explore: Any, k: int, place: int, position: int, room: Any) -> Any:
    """The chance that `place` is shown at `position`, after `plant`."""
    there, behind = _drawn(breaks, explore, place, position, room)
    if position < k - 1:
        return there
    own = explore[place]
    rest = 1.0 - room.before[len(breaks)]
    if position == k - 1:
        # Drawn there and nothing moved, or what was to move stood before it; or moved there itself.
        further = 1.0
        for before in range(position):
            further -= _drawn(breaks, explore, place, before, room)[0]
        return rest * there + behind + own * further
    # Nothing moved, or it came from further up; or it was pushed back by one that came from further down.
    above, behind_above = _drawn(breaks, explore, place, position - 1, room)
    others = room.before[len(breaks)] - own
    return rest * there + behind + max(others * above - behind_above, 0.0)
