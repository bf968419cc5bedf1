"""Lists from a matrix of positions by items: the best one for given gains, and draws with given marginals.

In between, probabilistic multileaving, which draws one list from several rankers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.kernels.jit import Floats, Ints, hot, kernel
from rankloop.kernels.random import below, uniform
from rankloop.kernels.vectors import sum_stretch


def in_order(gains: Floats, items: Ints) -> Ints:
    """Exchange items in a list as long as that costs nothing and brings a smaller number further up.

    An assignment leaves open which of equally good lists it finds. This one is the same on every machine and, where
    nothing is known yet, shows items as the user numbered them. `items` has the largest sum of gains[j, items[j]].

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


# The best list for given gains: a rectangular assignment, by shortest augmenting paths.
#
# Positions come in one after another. Each finds the cheapest way to an item that is still free, possibly by pushing
# earlier positions to other items. Prices on positions and items keep every step's cost from being negative, so the
# cheapest way is Dijkstra's (Jonker and Volgenant 1987). m positions of n items take O(m^2 n) steps.


class AssignmentScratch(NamedTuple):
    """What is in it means nothing between calls."""

    position_price: Floats  # dual variables of the positions
    item_price: Floats  # dual variables of the items
    distance: Floats  # to each item in this search
    came_from: Ints  # the position before each item on the way
    shown_at: Ints  # the position of each item, or -1
    queue: Ints  # items in the order in which they are visited


@kernel
def assignment_scratch(m: int, n: int) -> Any:
    """Scratch to assign `n` items to `m` positions."""
    return AssignmentScratch(
        np.empty(m),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )


@hot
def assign(gains: Any, items: Any, scratch: Any) -> None:
    """Write to `items` the list that maximises the sum of gains[j, items[j]], no item twice.

    `gains` is positions x items, finite, with no more positions than items.
    """
    m, n = gains.shape
    position_price, item_price, distance, came_from, shown_at, queue = scratch
    for i in range(n):
        item_price[i] = 0.0
        shown_at[i] = -1
    for first in range(m):
        item, reached = _nearest(gains, first, scratch)
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
def _nearest(gains: Any, first: int, scratch: Any) -> Any:
    # The item to which the way straight from position `first` is shortest, and how long that is; it writes all
    # distances. Of equal ones a free item, the last of them, otherwise the first. Passes without branches: they take
    # half the time of one that compares as it goes.
    item_price, distance, shown_at = scratch.item_price, scratch.distance, scratch.shown_at
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
    assign(gains, items, assignment_scratch(*gains.shape))
    total = 0.0
    for j in range(len(items)):
        total += gains[j, items[j]]
    return total


# Probabilistic multileaving: one list drawn from several rankers, and what a click at each position says of each.
#
# Hofmann, Whiteson and de Rijke (2011) for two rankers, Schuth and others (2015) for more. At every position a ranker
# is drawn at random, and its next document from its own distribution over what is left. A click is credited to each
# ranker by the probability that the document was its choice, given all that was shown: the draw of the ranker is
# averaged out.


@hot
def multileave(left: Any, n: int, m: int, key: Any, first: int, items: Any, worth: Any) -> None:
    """Draw `m` of `n` items from the rankers' weights, and what a click at each position is worth to each ranker.

    Every row of `left` is a ranker and holds a positive weight for each item; the weights of shown items become 0. Two
    numbers of `key` are used for each position, from `first` on.
    """
    n_rankers = left.shape[0]
    for position in range(m):
        chooser = below(key, first + 2 * position, n_rankers)
        target = uniform(key, first + 2 * position + 1) * sum_stretch(left, chooser, 0, n)
        item = -1
        reached = 0.0
        for i in range(n):
            if left[chooser, i] > 0.0:
                item = i  # the last one, should rounding leave the target beyond all of them
                reached += left[chooser, i]
                if reached > target:
                    break
        items[position] = item
        total = 0.0
        for ranker in range(n_rankers):
            worth[ranker, position] = left[ranker, item] / sum_stretch(left, ranker, 0, n)
            total += worth[ranker, position]
            left[ranker, item] = 0.0
        for ranker in range(n_rankers):
            worth[ranker, position] /= total


# A random list with given marginals: item i stands at position j with probability x_ij exactly.
#
# Algorithm 3 (2022) takes x apart into matchings and draws one of them. So does this, but
# 1. rows are merged into bins of total at most one, so that a matching of bins is a list of items, one item drawn
#    inside each; there are at most 2m + 1 bins however many items there are;
# 2. the number that picks the matching is drawn first, and matchings are taken off only until their weights pass it;
# 3. heavy matchings come first: of entries above a level, which is halved when there are no more. The next matching
#    differs from the last only where an entry fell below, and one augmenting path repairs it.
# A bin that a matching skips must have space: what it lacks to one counts as an entry of its own, in columns beyond m.


_LARGE = 0.5  # a row above this has a bin of its own
_FULL = 1.0 + 1e-12
LEAST = 1e-13  # what is left in the end is rounding error


class SamplingScratch(NamedTuple):
    """Never state."""

    mass: Floats  # [position, bin]: what is left of the sums below
    whole: Floats  # [position, bin]: the sum of x over the bin
    slack: Floats  # of each bin: by how much matchings may still skip it
    start: Ints  # stretches of rows ...
    stop: Ints
    owner: Ints  # ... and the bin that each belongs to
    chosen: Ints  # the bin at each position; then the bins that are skipped
    holder: Ints  # the position that has a bin, or -1
    turn: Ints  # the bin that a position tries next
    seen: Ints  # a search: in which one a bin was seen last, ...
    since: Ints  # ... from which position, ...
    queue: Ints  # ... and the positions to go on from


class MatchingScratch(NamedTuple):
    """What it takes to take matchings off: some fields of `SamplingScratch`."""

    mass: Floats
    slack: Floats
    chosen: Ints
    holder: Ints
    turn: Ints
    seen: Ints
    since: Ints
    queue: Ints


def most_bins(m: int) -> int:
    """More than there can be, also where bins are not filled to the brim; a multiple of eight."""
    return 8 * ((5 * m // 2 + 11) // 8)


def sampling_scratch(m: int) -> SamplingScratch:
    """Scratch for `m` positions."""
    bins, stretches = most_bins(m), 6 * m + 8
    return SamplingScratch(
        np.empty((m, bins)),
        np.empty((m, bins)),
        np.empty(bins),
        np.empty(stretches, np.int64),
        np.empty(stretches, np.int64),
        np.empty(stretches, np.int64),
        np.empty(bins, np.int64),
        np.empty(bins, np.int64),
        np.empty(bins, np.int64),
        np.empty(bins, np.int64),
        np.empty(bins, np.int64),
        np.empty(bins, np.int64),
    )


def matching_scratch(m: int) -> MatchingScratch:
    """Scratch for matchings on `m` positions."""
    whole = sampling_scratch(m)._asdict()
    return MatchingScratch(**{name: whole[name] for name in MatchingScratch._fields})


def sampling_scratch_bytes(m: int) -> int:
    """Bytes of the scratch for `m` positions."""
    bins, stretches = most_bins(m), 6 * m + 8
    return 8 * (bins * (2 * m + 7) + 3 * stretches)


@hot
def sample(x: Any, rows: Any, key: Any, scratch: Any, items: Any) -> None:
    """Write a list to `items`, drawn from the numbers of `key`."""
    n_stretches, n_bins = _merge(x, rows, scratch)
    go_on(uniform(key, 0), 0.0, n_bins, scratch)  # Alg. 3, lines 2-8, as far as needed
    for j in range(len(items)):
        items[j] = _item(x, j, scratch.chosen[j], uniform(key, 1 + j), n_stretches, scratch)


@hot
def show(x: Any, rows: Any, key: Any, scratch: Any, items: Any, propensities: Any) -> bool:
    """Draw a list, write its chances. Exploring: on average, the items stand where they had less than an even one."""
    sample(x, rows, key, scratch, items)
    total = 0.0
    for j in range(len(items)):
        propensities[j] = min(1.0, x[j, items[j]])
        total += propensities[j]
    return total < 0.5 * len(items)


@hot
def _merge(x: Any, rows: Any, scratch: Any) -> Any:
    # Large rows alone; the others together, from the first on, into bins that are full when the next would not fit.
    m, n = x.shape
    n_stretches, n_bins, begun, filling, fill = 0, 0, 0, -1, 0.0
    for i in range(n):
        large = rows[i] > _LARGE
        if large or filling < 0 or fill + rows[i] > _FULL:
            if begun < i:
                scratch.start[n_stretches] = begun
                scratch.stop[n_stretches] = i
                scratch.owner[n_stretches] = filling
                n_stretches += 1
            begun = i
            if large:
                scratch.start[n_stretches] = i
                scratch.stop[n_stretches] = i + 1
                scratch.owner[n_stretches] = n_bins
                n_stretches += 1
                begun = i + 1
            else:
                filling = n_bins
                fill = rows[i]
            n_bins += 1
        else:
            fill += rows[i]
    if begun < n:
        scratch.start[n_stretches] = begun
        scratch.stop[n_stretches] = n
        scratch.owner[n_stretches] = filling
        n_stretches += 1
    for b in range(n_bins):
        scratch.slack[b] = 1.0
    for j in range(m):
        for b in range(n_bins):
            scratch.whole[j, b] = 0.0
        for s in range(n_stretches):
            if scratch.stop[s] == scratch.start[s] + 1:
                scratch.whole[j, scratch.owner[s]] += x[j, scratch.start[s]]
            else:
                scratch.whole[j, scratch.owner[s]] += sum_stretch(x, j, scratch.start[s], scratch.stop[s])
        for b in range(n_bins):
            scratch.mass[j, b] = scratch.whole[j, b]
            scratch.slack[b] -= scratch.whole[j, b]
    return n_stretches, n_bins


@hot
def go_on(u: float, passed: float, n_bins: int, scratch: Any) -> None:
    """Take matchings off what is left in `scratch` until their weights, with what has `passed`, are more than `u`."""
    level = begin(n_bins, scratch)
    search = 0
    while True:
        level, search = complete(level, search, n_bins, scratch)
        if level < LEAST:
            return
        weight = weight_of(n_bins, scratch)
        passed += weight
        if u < passed:
            return
        take_off(weight, level, n_bins, scratch)


@hot
def complete(level: float, search: int, n_bins: int, scratch: Any) -> Any:
    """Give every column in `scratch.chosen` a bin where it has an entry above the level, which is lowered for it.

    Returns the level and how many searches there were. Below `LEAST` only rounding error is left, and any list does.
    """
    c = 0
    while c < n_bins:
        if scratch.chosen[c] < 0 and not _take_free(c, level, n_bins, scratch):
            search += 1
            if not _augment(c, level, search, n_bins, scratch):
                level *= 0.5
                if level < LEAST:
                    _fill(n_bins, scratch)
                    return level, search
                continue
        c += 1
    return level, search


@hot
def weight_of(n_bins: int, scratch: Any) -> float:
    """The weight of the matching `scratch.chosen`: its least entry."""
    m = len(scratch.mass)
    weight = 2.0
    for c in range(n_bins):
        b = scratch.chosen[c]
        weight = min(weight, scratch.mass[c, b] if c < m else scratch.slack[b])
    return weight


@hot
def take_off(weight: float, level: float, n_bins: int, scratch: Any) -> None:
    """Subtract a matching; columns whose entry falls below the level lose their bin."""
    m = len(scratch.mass)
    for c in range(n_bins):
        b = scratch.chosen[c]
        if c < m:
            scratch.mass[c, b] -= weight
            left = scratch.mass[c, b]
        else:
            scratch.slack[b] -= weight
            left = scratch.slack[b]
        if left < level:
            scratch.chosen[c] = -1
            scratch.holder[b] = -1
            scratch.turn[c] = b + 1


@hot
def begin(n_bins: int, scratch: Any) -> float:
    """Each position takes its likeliest bin, if that is free. Above the returned level every position has entries."""
    m = len(scratch.mass)
    level = 1.0
    for b in range(n_bins):
        scratch.holder[b] = -1
        scratch.seen[b] = 0
        scratch.chosen[b] = -1
        scratch.turn[b] = b
    for j in range(m):
        best = 0
        for b in range(1, n_bins):
            if scratch.mass[j, b] > scratch.mass[j, best]:
                best = b
        level = min(level, scratch.mass[j, best])
        if scratch.holder[best] < 0:
            scratch.holder[best] = j
            scratch.chosen[j] = best
    return 0.5 * level


@hot
def _take_free(c: int, level: float, n_bins: int, scratch: Any) -> bool:
    # An item that lost a bin tries the one after it: where all lose theirs at once, all move on by one.
    m = len(scratch.mass)
    b = scratch.turn[c]
    for _ in range(n_bins):
        if b >= n_bins:
            b -= n_bins
        if scratch.holder[b] < 0 and (scratch.mass[c, b] if c < m else scratch.slack[b]) >= level:
            scratch.chosen[c] = b
            scratch.holder[b] = c
            return True
        b += 1
    return False


@hot
def _augment(c: int, level: float, search: int, n_bins: int, scratch: Any) -> bool:
    # The shortest way to give column c a bin, others moving on to bins where they have an entry above the level.
    m = len(scratch.mass)
    scratch.queue[0] = c
    first, last = 0, 1
    while first < last:
        k = scratch.queue[first]
        first += 1
        for b in range(n_bins):
            if scratch.seen[b] == search or (scratch.mass[k, b] if k < m else scratch.slack[b]) < level:
                continue
            scratch.seen[b] = search
            scratch.since[b] = k
            if scratch.holder[b] >= 0:
                scratch.queue[last] = scratch.holder[b]
                last += 1
                continue
            while True:
                k = scratch.since[b]
                before = scratch.chosen[k]
                scratch.chosen[k] = b
                scratch.holder[b] = k
                if k == c:
                    return True
                b = before
    return False


@hot
def _fill(n_bins: int, scratch: Any) -> None:
    # Only rounding error is left: any list will do.
    for c in range(n_bins):
        if scratch.chosen[c] < 0:
            for b in range(n_bins):
                if scratch.holder[b] < 0:
                    scratch.chosen[c] = b
                    scratch.holder[b] = c
                    break


@hot
def _item(x: Any, j: int, b: int, u: float, n_stretches: int, scratch: Any) -> int:
    # An item of bin b, with odds as in column j.
    left = u * scratch.whole[j, b]
    best = -1
    for s in range(n_stretches):
        if scratch.owner[s] == b:
            for i in range(scratch.start[s], scratch.stop[s]):
                best = i
                left -= x[j, i]
                if left < 0.0:
                    return i
    return best
