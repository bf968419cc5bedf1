"""A random list with given marginals: item i stands at position j with probability x_ij exactly.

Algorithm 3 (2022) takes x apart into matchings and draws one of them. So does this, but
1. rows are merged into bins of total at most one, so that a matching of bins is a list of items, one item drawn inside
   each; there are at most 2m + 1 bins however many items there are;
2. the number that picks the matching is drawn first, and matchings are taken off only until their weights pass it;
3. heavy matchings come first: of entries above a level, which is halved when there are no more. The next matching
   differs from the last only where an entry fell below, and one augmenting path repairs it.
A bin that a matching skips must have room: what it lacks to one counts as an entry of its own, in columns beyond m.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot
from rankloop.kernels.random import uniform
from rankloop.kernels.vector_sums import sum_stretch

_LARGE = 0.5  # a row above this has a bin of its own
_FULL = 1.0 + 1e-12
LEAST = 1e-13  # what is left in the end is rounding error


class SamplerRoom(NamedTuple):
    """Room to work in; never state."""

    mass: NDArray[np.float64]  # [position, bin]: what is left of the sums below
    whole: NDArray[np.float64]  # [position, bin]: the sum of x over the bin
    slack: NDArray[np.float64]  # of each bin: by how much matchings may still skip it
    start: NDArray[np.int64]  # stretches of rows ...
    stop: NDArray[np.int64]
    owner: NDArray[np.int64]  # ... and the bin that each belongs to
    chosen: NDArray[np.int64]  # the bin at each position; then the bins that are skipped
    holder: NDArray[np.int64]  # the position that has a bin, or -1
    turn: NDArray[np.int64]  # the bin that a position tries next
    seen: NDArray[np.int64]  # a search: in which one a bin was seen last, ...
    since: NDArray[np.int64]  # ... from which position, ...
    queue: NDArray[np.int64]  # ... and the positions to go on from


class MatchingRoom(NamedTuple):
    """What it takes to take matchings off, with the fields of `SamplerRoom`."""

    mass: NDArray[np.float64]
    slack: NDArray[np.float64]
    chosen: NDArray[np.int64]
    holder: NDArray[np.int64]
    turn: NDArray[np.int64]
    seen: NDArray[np.int64]
    since: NDArray[np.int64]
    queue: NDArray[np.int64]


def most_bins(m: int) -> int:
    """More than there can be, also where bins are not filled to the brim; a multiple of eight."""
    return 8 * ((5 * m // 2 + 11) // 8)


def room(m: int) -> SamplerRoom:
    """Room for `m` positions."""
    bins, stretches = most_bins(m), 6 * m + 8
    return SamplerRoom(
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


def matching_room(m: int) -> MatchingRoom:
    """Room for matchings on `m` positions."""
    whole = room(m)._asdict()
    return MatchingRoom(**{name: whole[name] for name in MatchingRoom._fields})


def room_bytes(m: int) -> int:
    """Bytes of the room for `m` positions."""
    bins, stretches = most_bins(m), 6 * m + 8
    return 8 * (bins * (2 * m + 7) + 3 * stretches)


@hot
def sample(x: Any, rows: Any, key: Any, room: Any, items: Any) -> None:
    """Write a list to `items`, drawn from the numbers of `key`."""
    n_stretches, n_bins = _merge(x, rows, room)
    _choose(uniform(key, 0), n_bins, room)
    for j in range(len(items)):
        items[j] = _item(x, j, room.chosen[j], uniform(key, 1 + j), n_stretches, room)


@hot
def show(x: Any, rows: Any, key: Any, room: Any, items: Any, propensities: Any) -> bool:
    """Draw a list, write its chances. Exploring: on average, the items stand where they had less than an even one."""
    sample(x, rows, key, room, items)
    total = 0.0
    for j in range(len(items)):
        propensities[j] = min(1.0, x[j, items[j]])
        total += propensities[j]
    return total < 0.5 * len(items)


@hot
def _merge(x: Any, rows: Any, room: Any) -> Any:
    # Large rows alone; the others together, from the first on, into bins that are full when the next would not fit.
    m, n = x.shape
    n_stretches, n_bins, begun, filling, fill = 0, 0, 0, -1, 0.0
    for i in range(n):
        large = rows[i] > _LARGE
        if large or filling < 0 or fill + rows[i] > _FULL:
            if begun < i:
                room.start[n_stretches] = begun
                room.stop[n_stretches] = i
                room.owner[n_stretches] = filling
                n_stretches += 1
            begun = i
            if large:
                room.start[n_stretches] = i
                room.stop[n_stretches] = i + 1
                room.owner[n_stretches] = n_bins
                n_stretches += 1
                begun = i + 1
            else:
                filling = n_bins
                fill = rows[i]
            n_bins += 1
        else:
            fill += rows[i]
    if begun < n:
        room.start[n_stretches] = begun
        room.stop[n_stretches] = n
        room.owner[n_stretches] = filling
        n_stretches += 1
    for b in range(n_bins):
        room.slack[b] = 1.0
    for j in range(m):
        for b in range(n_bins):
            room.whole[j, b] = 0.0
        for s in range(n_stretches):
            if room.stop[s] == room.start[s] + 1:
                room.whole[j, room.owner[s]] += x[j, room.start[s]]
            else:
                room.whole[j, room.owner[s]] += sum_stretch(x, j, room.start[s], room.stop[s])
        for b in range(n_bins):
            room.mass[j, b] = room.whole[j, b]
            room.slack[b] -= room.whole[j, b]
    return n_stretches, n_bins


@hot
def _choose(u: float, n_bins: int, room: Any) -> None:
    # Alg. 3, lines 2-8, as far as needed.
    go_on(u, 0.0, n_bins, room)


@hot
def go_on(u: float, passed: float, n_bins: int, room: Any) -> None:
    """Take matchings off what is left in `room` until their weights, with what has `passed`, are more than `u`."""
    level = begin(n_bins, room)
    search = 0
    while True:
        level, search = complete(level, search, n_bins, room)
        if level < LEAST:
            return
        weight = weight_of(n_bins, room)
        passed += weight
        if u < passed:
            return
        take_off(weight, level, n_bins, room)


@hot
def complete(level: float, search: int, n_bins: int, room: Any) -> Any:
    """Give every column in `room.chosen` a bin where it has an entry above the level, which is lowered for it.

    Returns the level and how many searches there were. Below `LEAST` only rounding error is left, and any list does.
    """
    c = 0
    while c < n_bins:
        if room.chosen[c] < 0 and not _take_free(c, level, n_bins, room):
            search += 1
            if not _augment(c, level, search, n_bins, room):
                level *= 0.5
                if level < LEAST:
                    _fill(n_bins, room)
                    return level, search
                continue
        c += 1
    return level, search


@hot
def weight_of(n_bins: int, room: Any) -> float:
    """The weight of the matching `room.chosen`: its least entry."""
    m = len(room.mass)
    weight = 2.0
    for c in range(n_bins):
        b = room.chosen[c]
        weight = min(weight, room.mass[c, b] if c < m else room.slack[b])
    return weight


@hot
def take_off(weight: float, level: float, n_bins: int, room: Any) -> None:
    """Subtract a matching; columns whose entry falls below the level lose their bin."""
    m = len(room.mass)
    for c in range(n_bins):
        b = room.chosen[c]
        if c < m:
            room.mass[c, b] -= weight
            left = room.mass[c, b]
        else:
            room.slack[b] -= weight
            left = room.slack[b]
        if left < level:
            room.chosen[c] = -1
            room.holder[b] = -1
            room.turn[c] = b + 1


@hot
def begin(n_bins: int, room: Any) -> float:
    """Each position takes its likeliest bin, if that is free. Above the returned level every position has entries."""
    m = len(room.mass)
    level = 1.0
    for b in range(n_bins):
        room.holder[b] = -1
        room.seen[b] = 0
        room.chosen[b] = -1
        room.turn[b] = b
    for j in range(m):
        best = 0
        for b in range(1, n_bins):
            if room.mass[j, b] > room.mass[j, best]:
                best = b
        level = min(level, room.mass[j, best])
        if room.holder[best] < 0:
            room.holder[best] = j
            room.chosen[j] = best
    return 0.5 * level


@hot
def _take_free(c: int, level: float, n_bins: int, room: Any) -> bool:
    # An item that lost a bin tries the one after it: where all lose theirs at once, all move on by one.
    m = len(room.mass)
    b = room.turn[c]
    for _ in range(n_bins):
        if b >= n_bins:
            b -= n_bins
        if room.holder[b] < 0 and (room.mass[c, b] if c < m else room.slack[b]) >= level:
            room.chosen[c] = b
            room.holder[b] = c
            return True
        b += 1
    return False


@hot
def _augment(c: int, level: float, search: int, n_bins: int, room: Any) -> bool:
    # The shortest way to give column c a bin, others moving on to bins where they have an entry above the level.
    m = len(room.mass)
    room.queue[0] = c
    first, last = 0, 1
    while first < last:
        k = room.queue[first]
        first += 1
        for b in range(n_bins):
            if room.seen[b] == search or (room.mass[k, b] if k < m else room.slack[b]) < level:
                continue
            room.seen[b] = search
            room.since[b] = k
            if room.holder[b] >= 0:
                room.queue[last] = room.holder[b]
                last += 1
                continue
            while True:
                k = room.since[b]
                before = room.chosen[k]
                room.chosen[k] = b
                room.holder[b] = k
                if k == c:
                    return True
                b = before
    return False


@hot
def _fill(n_bins: int, room: Any) -> None:
    # Only rounding error is left: any list will do.
    for c in range(n_bins):
        if room.chosen[c] < 0:
            for b in range(n_bins):
                if room.holder[b] < 0:
                    room.chosen[c] = b
                    room.holder[b] = c
                    break


@hot
def _item(x: Any, j: int, b: int, u: float, n_stretches: int, room: Any) -> int:
    # An item of bin b, with odds as in column j.
    left = u * room.whole[j, b]
    best = -1
    for s in range(n_stretches):
        if room.owner[s] == b:
            for i in range(room.start[s], room.stop[s]):
                best = i
                left -= x[j, i]
                if left < 0.0:
                    return i
    return best
