"""Random lists from the mean discount of each item, instead of from a chance for each item at each position.

The mean discounts p of a random list lie in the permutahedron: the convex hull of the discounts f in all orders.

`lead` finds the p that maximises p . G - beta |p|^2 / 2. In falling order of G it is G / beta minus the monotone
regression of G / beta - f: blocks of neighbours share a level, and an item alone in its block has its place for sure.

`find_breaks` writes p as a mixture of lists that are cut into parts and shuffled within each. The cuts are nested: with
a number u drawn evenly from [0, 1), break k, between the places k and k + 1, is there while u < breaks[k]. With all
breaks the list is in order, with none it is shuffled as a whole. Along the mixture the gap p_k - p_(k+1) is used up by
the difference of the mean discounts on both sides of break k, and the break goes when nothing is left of the gap. So
m - 1 numbers describe a distribution over lists whose chances are all known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot
from rankloop.kernels.random import below

_GONE = 3.0  # marks a break that is no longer there


class LeaderRoom(NamedTuple):
    """Room to work in, by place in the order; never state."""

    p: NDArray[np.float64]  # mean discounts
    level: NDArray[np.float64]  # of the block that a place belongs to, ...
    first: NDArray[np.int64]  # ... its first place ...
    last: NDArray[np.int64]  # ... and its last
    mean: NDArray[np.float64]  # of the discounts on one side of a break
    gap: NDArray[np.float64]  # what is left of p_k - p_(k+1) ...
    since: NDArray[np.float64]  # ... at this point of the mixture
    ends: NDArray[np.float64]  # the point where a break goes


def room(m: int) -> LeaderRoom:
    """Room for `m` items."""
    return LeaderRoom(
        np.empty(m),
        np.empty(m),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m),
        np.empty(m),
        np.empty(m),
        np.empty(m),
    )


@hot
def sort_again(G: Any, order: Any) -> None:
    """Bring `order` into falling order of G again, smaller numbers first where G is equal: quick if little changed."""
    for at in range(1, len(order)):
        item = order[at]
        place = at
        while place > 0:
            other = order[place - 1]
            if G[other] > G[item] or (G[other] == G[item] and other < item):
                break
            order[place] = other
            place -= 1
        order[place] = item


@hot
def lead(G: Any, order: Any, f: Any, beta: float, room: Any) -> float:
    """Write the leader p and its blocks to `room`; return (|f|^2 - |p|^2) / 2, the distance to a fixed list."""
    m = len(f)
    n = 0  # blocks so far; block b has its level, first and last place at index b until the end
    for place in range(m):
        room.level[n] = G[order[place]] / beta - f[place]
        room.first[n] = place
        room.last[n] = place
        while n > 0 and room.level[n - 1] <= room.level[n]:
            left = room.last[n - 1] + 1 - room.first[n - 1]
            right = room.last[n] + 1 - room.first[n]
            room.level[n - 1] = (room.level[n - 1] * left + room.level[n] * right) / (left + right)
            room.last[n - 1] = room.last[n]
            n -= 1
        n += 1
    distance = 0.0
    place = m - 1
    for b in range(n - 1, -1, -1):  # from the end, so that no block is overwritten before it is read
        level, first, last = room.level[b], room.first[b], room.last[b]
        while place >= first:
            room.p[place] = f[place] if first == last else G[order[place]] / beta - level
            room.level[place] = level
            room.first[place] = first
            room.last[place] = last
            distance += f[place] * f[place] - room.p[place] * room.p[place]
            place -= 1
    return max(0.5 * distance, 0.0)


@hot
def find_breaks(f: Any, room: Any, breaks: Any) -> None:
    """Write until which u each break is there, for the leader in `room`; the last entry is always 1."""
    m = len(f)
    for k in range(m):
        breaks[k] = 1.0
    first = 0
    while first < m:
        last = room.last[first]
        if last > first:
            _find_in_block(f, room, first, last, breaks)
        first = last + 1


@hot
def _find_in_block(f: Any, room: Any, first: int, last: int, breaks: Any) -> None:
    # Parts are known by their last place: mean[k] belongs to the part that ends with place k.
    mean, gap, since, ends = room.mean, room.gap, room.since, room.ends
    for k in range(first, last + 1):
        mean[k] = f[k]
    for k in range(first, last):
        gap[k] = room.p[k] - room.p[k + 1]
        since[k] = 0.0
        ends[k] = _end(gap[k], 0.0, mean[k] - mean[k + 1])
    now = 0.0
    for _ in range(last - first):
        at = first
        for k in range(first + 1, last):
            if ends[k] < ends[at]:
                at = k
        now = min(max(now, ends[at]), 1.0)
        breaks[at] = now
        ends[at] = _GONE
        before, after = at - 1, at + 1  # the next breaks that are still there
        while before >= first and ends[before] == _GONE:
            before -= 1
        while after < last and ends[after] == _GONE:
            after += 1
        left, right = float(at - before), float(after - at)
        merged = (left * mean[at] + right * mean[after]) / (left + right)
        if before >= first:
            gap[before] -= (now - since[before]) * (mean[before] - mean[at])
            since[before] = now
            ends[before] = _end(gap[before], now, mean[before] - merged)
        if after < last:
            beyond = after + 1
            while beyond < last and ends[beyond] == _GONE:
                beyond += 1
            gap[after] -= (now - since[after]) * (mean[after] - mean[beyond])
            since[after] = now
            ends[after] = _end(gap[after], now, merged - mean[beyond])
        mean[after] = merged


@hot
def _end(gap: float, now: float, slope: float) -> float:
    # Where the gap is used up; 2 stands for a break that no part of the mixture so far has used.
    if gap <= 0.0:
        return now
    return min(now + gap / slope, 2.0) if slope > 0.0 else 2.0


@hot
def first_chances(breaks: Any, k: int, chances: Any) -> None:
    """Write the chance of each place in the order to be among the first `k` of the list."""
    m = len(breaks)
    if k <= 0 or k >= m:
        for place in range(m):
            chances[place] = 0.0 if k <= 0 else 1.0
        return
    # The part around the cut grows with u. A place that joins it at u was on its own side until then.
    low, high = k - 1, k
    u, passed = breaks[k - 1], 0.0  # passed: the chance, so far, of a place in this part
    chances[low], chances[high] = u, 0.0
    while True:
        until = 1.0
        if low > 0:
            until = min(until, breaks[low - 1])
        if high < m - 1:
            until = min(until, breaks[high])
        if until > u:
            passed += (until - u) * (k - low) / (high - low + 1)
            u = until
        if u >= 1.0:
            break
        if low > 0 and breaks[low - 1] <= u:
            low -= 1
            chances[low] = u - passed
        else:
            high += 1
            chances[high] = -passed
    for place in range(m):
        if low <= place <= high:
            chances[place] += passed
        else:
            chances[place] = 1.0 if place < k else 0.0


@hot
def draw_places(breaks: Any, u: float, key: Any, places: Any) -> None:
    """Write a list of places in the order: shuffled within the parts that the breaks leave at `u`."""
    m = len(breaks)
    first = 0
    for place in range(m):
        places[place] = place
        if breaks[place] > u or place == m - 1:
            for i in range(place, first, -1):
                j = first + below(key, 2 + i, i - first + 1)
                kept = places[i]
                places[i] = places[j]
                places[j] = kept
            first = place + 1
