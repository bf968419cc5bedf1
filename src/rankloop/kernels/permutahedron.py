"""Random lists from the mean discount of each item, instead of from a chance for each item at each position.

The mean discounts p of a random list lie in the permutahedron: the convex hull of the discounts f in all orders.

`lead` finds the p that maximises p . G - beta |p|^2 / 2. In falling order of G it is G / beta minus the monotone
regression of G / beta - f: blocks of neighbours share a level, and an item alone in its block has its place for
sure.

`find_breaks` writes p as a mixture of lists that are cut into parts and shuffled within each. The cuts are nested:
with a number u drawn evenly from [0, 1), break k, between the places k and k + 1, is there while u < breaks[k].
With all breaks the list is in order, with none it is shuffled as a whole. Along the mixture the gap p_k - p_(k+1)
is used up by the difference of the mean discounts on both sides of break k, and the break goes when nothing is left
of the gap. So m - 1 numbers describe a distribution over lists whose chances are all known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.kernels.jit import Floats, Ints, hot
from rankloop.kernels.random import below

_GONE = 3.0  # marks a break that is no longer there


class LeaderScratch(NamedTuple):
    """By place in the order; never state."""

    p: Floats  # mean discounts
    level: Floats  # of the block that a place belongs to, ...
    first: Ints  # ... its first place ...
    last: Ints  # ... and its last
    mean: Floats  # of the discounts on one side of a break
    gap: Floats  # what is left of p_k - p_(k+1) ...
    since: Floats  # ... at this point of the mixture
    ends: Floats  # the point where a break goes


def leader_scratch(m: int) -> LeaderScratch:
    """Scratch for `m` items."""
    return LeaderScratch(
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
def lead(G: Any, order: Any, f: Any, beta: float, scratch: Any) -> float:
    """Write the leader p and its blocks to `scratch`; return (|f|^2 - |p|^2) / 2, the distance to a fixed list."""
    m = len(f)
    n = 0  # blocks so far; block b has its level, first and last place at index b until the end
    for place in range(m):
        scratch.level[n] = G[order[place]] / beta - f[place]
        scratch.first[n] = place
        scratch.last[n] = place
        while n > 0 and scratch.level[n - 1] <= scratch.level[n]:
            left = scratch.last[n - 1] + 1 - scratch.first[n - 1]
            right = scratch.last[n] + 1 - scratch.first[n]
            scratch.level[n - 1] = (scratch.level[n - 1] * left + scratch.level[n] * right) / (left + right)
            scratch.last[n - 1] = scratch.last[n]
            n -= 1
        n += 1
    distance = 0.0
    place = m - 1
    for b in range(n - 1, -1, -1):  # from the end, so that no block is overwritten before it is read
        level, first, last = scratch.level[b], scratch.first[b], scratch.last[b]
        while place >= first:
            scratch.p[place] = f[place] if first == last else G[order[place]] / beta - level
            scratch.level[place] = level
            scratch.first[place] = first
            scratch.last[place] = last
            distance += f[place] * f[place] - scratch.p[place] * scratch.p[place]
            place -= 1
    return max(0.5 * distance, 0.0)


@hot
def find_breaks(f: Any, scratch: Any, breaks: Any) -> None:
    """Write until which u each break is there, for the leader in `scratch`; the last entry is always 1."""
    m = len(f)
    for k in range(m):
        breaks[k] = 1.0
    first = 0
    while first < m:
        last = scratch.last[first]
        if last > first:
            _find_in_block(f, scratch, first, last, breaks)
        first = last + 1


@hot
def _find_in_block(f: Any, scratch: Any, first: int, last: int, breaks: Any) -> None:
    # Parts are known by their last place: mean[k] belongs to the part that ends with place k.
    mean, gap, since, ends = scratch.mean, scratch.gap, scratch.since, scratch.ends
    for k in range(first, last + 1):
        mean[k] = f[k]
    for k in range(first, last):
        gap[k] = scratch.p[k] - scratch.p[k + 1]
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


# The chances of a list that is shuffled within nested parts, and in which one item may have been moved forward.
#
# The parts for all u form a binary tree: a part is a node, it lasts from the u at which its last inner break goes
# until one of the breaks at its ends does. Within a part of n places every place is equally likely at every
# position, so the chance of place a at position b is the sum of (how long it lasts) / n over all parts that hold
# both. These are the smallest such part and the parts around it, so sums from the root down answer any question in
# one walk up the tree.
#
# With chance explore[l] place l is then moved forward to position k - 1, if it stood further back.


class TreeScratch(NamedTuple):
    """Never state. Node k is the part that forms when break k goes."""

    parent: Ints
    left: Ints
    right: Ints
    first: Ints  # place of the part ...
    last: Ints
    stack: Ints
    before: Floats  # explore, summed over the places before this one
    sums: Floats  # [node]: five sums over this part and all around it


def tree_scratch(m: int) -> TreeScratch:
    """Scratch for `m` items."""
    return TreeScratch(
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m + 1),
        np.empty((m, 5)),
    )


def tree_scratch_bytes(m: int) -> int:
    """Bytes of the scratch for `m` items."""
    return 8 * (12 * m + 1)


@hot
def plant(breaks: Any, explore: Any, scratch: Any) -> None:
    """Build the tree."""
    m = len(breaks)
    scratch.before[0] = 0.0
    for place in range(m):
        scratch.before[place + 1] = scratch.before[place] + explore[place]
    top = 0
    for k in range(m - 1):
        scratch.left[k], scratch.right[k] = -1, -1
        while top > 0 and breaks[scratch.stack[top - 1]] <= breaks[k]:
            top -= 1
            scratch.left[k] = scratch.stack[top]
            scratch.last[scratch.stack[top]] = k
        scratch.first[k] = scratch.stack[top - 1] + 1 if top > 0 else 0
        scratch.parent[k] = scratch.stack[top - 1] if top > 0 else -1
        if top > 0:
            scratch.right[scratch.stack[top - 1]] = k
        if scratch.left[k] >= 0:
            scratch.parent[scratch.left[k]] = k
        scratch.stack[top] = k
        top += 1
    if top == 0:
        return
    for s in range(top):
        scratch.last[scratch.stack[s]] = m - 1
    top = 1  # stack[0] is the root; parents before children
    while top > 0:
        top -= 1
        k = scratch.stack[top]
        _sum_down(breaks, k, scratch)
        if scratch.left[k] >= 0:
            scratch.stack[top] = scratch.left[k]
            top += 1
        if scratch.right[k] >= 0:
            scratch.stack[top] = scratch.right[k]
            top += 1


@hot
def _sum_down(breaks: Any, k: int, scratch: Any) -> None:
    parent, sums = scratch.parent[k], scratch.sums
    lasts = (1.0 if parent < 0 else breaks[parent]) - breaks[k]
    first = scratch.first[k]
    n = scratch.last[k] + 1 - first
    inside = scratch.before[scratch.last[k] + 1] - scratch.before[first]
    even = lasts / n
    pair = even / (n - 1)
    for s in range(5):
        sums[k, s] = 0.0 if parent < 0 else sums[parent, s]
    sums[k, 0] += even
    sums[k, 1] += even * scratch.before[first] - pair * first * inside
    sums[k, 2] += pair * inside
    sums[k, 3] += pair
    sums[k, 4] += pair * first


@hot
def _drawn(breaks: Any, explore: Any, place: int, position: int, scratch: Any) -> Any:
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
    while node >= 0 and not scratch.first[node] <= position <= scratch.last[node]:
        node = scratch.parent[node]
    if node < 0:
        return 0.0, 0.0
    sums = scratch.sums[node]
    ahead = sums[1] + position * (sums[2] - explore[place] * sums[3]) + explore[place] * sums[4]
    return sums[0] + alone, ahead + alone * scratch.before[place]


@hot
def chance(breaks: Any, explore: Any, k: int, place: int, position: int, scratch: Any) -> Any:
    """The chance that `place` is shown at `position`, after `plant`."""
    there, behind = _drawn(breaks, explore, place, position, scratch)
    if position < k - 1:
        return there
    own = explore[place]
    rest = 1.0 - scratch.before[len(breaks)]
    if position == k - 1:
        # Drawn there and nothing moved, or what was to move stood before it; or moved there itself.
        further = 1.0
        for before in range(position):
            further -= _drawn(breaks, explore, place, before, scratch)[0]
        return rest * there + behind + own * further
    # Nothing moved, or it came from further up; or it was pushed back by one that came from further down.
    above, behind_above = _drawn(breaks, explore, place, position - 1, scratch)
    others = scratch.before[len(breaks)] - own
    return rest * there + behind + max(others * above - behind_above, 0.0)
