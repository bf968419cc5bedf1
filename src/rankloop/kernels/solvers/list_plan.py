"""How rows of x are gathered, to be evaluated in bulk and drawn by bin, for as long as x does not move far.

The items with the largest row sums are kept one by one, in slots, with copies of what belongs to them; all others are
summed in bulk (`shifted_sums`), around the multipliers of the round in which the plan was made. Both kinds are merged
into bins of total at most one, first bins of slots, then bins of other items that follow each other, and the matchings
of bins that x was made of then are listed. Nothing here depends on how good the plan still is: see `planned_lists`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import apart, hot
from rankloop.kernels.row_vectors import aligned
from rankloop.kernels.solvers.list_sampling import LEAST, begin, complete, most_bins, take_off, weight_of
from rankloop.kernels.solvers.shifted_sums import REACH, TERMS, add_entry, values
from rankloop.kernels.vector_sums import sum_stretch

SLOT_BINS, BINS, MATCHINGS, LISTED, EXACT = range(5)  # entries of `counts`
# Rows of `edge`: the sums of x and, over items whose multiplier is zero, of x / D; v when the sums in bulk were taken,
# and the least D that an item in bulk had then.
COLUMNS, GROUND, ANCHOR, LEAST_D = range(4)
_SLOTS = 48  # beside two for each position
MOST_MATCHINGS = 64
_LARGE = 0.5  # a row above this has a bin of its own
_FULL = 0.9  # what bins are filled to, so that they may grow
_NOTHING = 1e100  # the losses of an empty slot
_ALL = 0.995  # of the weight of all matchings, where the list ends


class Plan(NamedTuple):
    """The arrays of a plan, to be part of a ranker's state."""

    counts: NDArray[
        np.int64
    ]  # bins of slots, bins, matchings, when to list them again, and whether x is exact
    kept: NDArray[np.int64]  # by slot: its item, or -1
    place: NDArray[np.int64]  # by item: its slot; or -1 - b in bin b
    slot_L: NDArray[np.float64]  # by position and slot
    slot_lines: NDArray[np.float64]  # the same by slot and position, and nothing beyond the last position
    slot_u: NDArray[np.float64]
    slot_x: NDArray[np.float64]
    slot_rows: NDArray[np.float64]
    sums: NDArray[np.float64]  # by position, power and bin; in the place of a last bin, over all of them
    table: NDArray[
        np.float64
    ]  # by position and item: 1 / D^2 then, summed over the items in bulk up to this one
    bounds: NDArray[np.int64]  # by bin: its first slot or item, and the one after its last
    edge: NDArray[
        np.float64
    ]  # the sums of x over each position, and of x / D over those whose multiplier is zero
    matchings: NDArray[np.int64]  # by matching: the bin at each position, then the bins left out
    whole: NDArray[np.float64]  # by position and bin: the sum of x; last row: what the bin lacks to one


def slots(n: int, m: int) -> int:
    """How many items are kept one by one, and a few empty slots, for vectors of eight."""
    return 8 * ((min(n, 2 * m + _SLOTS) + 7) // 8)


def blank(n: int, m: int) -> Plan:
    """Room for a plan."""
    some, bins = slots(n, m), most_bins(m)
    return Plan(
        counts=np.zeros(5, np.int64),
        kept=np.full(some, -1, np.int64),
        place=np.zeros(n, np.int64),
        slot_L=aligned(m, some),
        slot_lines=aligned(some, 8 * ((m + 7) // 8), fill=_NOTHING),
        slot_u=aligned(some),
        slot_x=aligned(m, some),
        slot_rows=aligned(some),
        sums=aligned(m, TERMS, bins),
        table=np.zeros((m, n)),
        bounds=np.zeros((bins, 2), np.int64),
        edge=aligned(4, 8 * ((m + 7) // 8), fill=1.0),
        matchings=np.zeros((MOST_MATCHINGS, bins), np.int64),
        whole=aligned(m + 1, bins),
    )


@hot
def make(L: Any, u: Any, v: Any, rows: Any, plan: Any) -> None:
    """A plan for the leader x, which lies in `plan.table`, of these multipliers and row sums.

    Where x is not exact, because numbers end, no multipliers belong to it: `table` then has the sums of x itself.
    """
    n, n_slots = len(u), len(plan.kept)
    bound = -1.0 if n <= n_slots else _LARGE
    while bound > 1e-9:
        more = 0
        for i in range(n):
            more += rows[i] > 0.7 * bound
        if more > n_slots:
            break
        bound *= 0.7
    _fill_slots(bound, L, u, rows, plan)
    _merge(bound, rows, plan)
    _take_sums(L, v, plan)


@hot
def _fill_slots(bound: float, L: Any, u: Any, rows: Any, plan: Any) -> None:
    # Large rows first, so that bins of the others follow each other.
    m = len(L)
    s, large = 0, 0
    for which in range(2):
        for i in range(len(u)):
            if rows[i] > bound and (rows[i] > _LARGE) == (which == 0):
                plan.place[i] = s
                plan.kept[s] = i
                plan.slot_u[s] = u[i]
                plan.slot_rows[s] = rows[i]
                for j in range(m):
                    plan.slot_L[j, s] = L[j, i]
                    plan.slot_lines[s, j] = L[j, i]
                    plan.slot_x[j, s] = plan.table[j, i]
                s += 1
        if which == 0:
            large = s
    plan.counts[SLOT_BINS] = large
    for empty in range(s, len(plan.kept)):
        plan.kept[empty] = -1
        plan.slot_u[empty] = 0.0
        plan.slot_rows[empty] = 0.0
        for j in range(m):
            plan.slot_L[j, empty] = _NOTHING
            plan.slot_x[j, empty] = 0.0


@hot
def _merge(bound: float, rows: Any, plan: Any) -> None:
    # Next fit: a bin ends where the next row would be too much.
    bins = 0
    for s in range(plan.counts[SLOT_BINS]):  # the large ones
        plan.bounds[bins, 0] = s
        plan.bounds[bins, 1] = s + 1
        bins += 1
    fill = 2.0
    for s in range(plan.counts[SLOT_BINS], len(plan.kept)):
        if plan.kept[s] < 0:
            break
        if fill + plan.slot_rows[s] > _FULL:
            plan.bounds[bins, 0] = s
            bins += 1
            fill = 0.0
        fill += plan.slot_rows[s]
        plan.bounds[bins - 1, 1] = s + 1
    plan.counts[SLOT_BINS] = bins
    fill = 2.0
    for i in range(len(rows)):
        if rows[i] > bound:
            continue
        if fill + rows[i] > _FULL:
            plan.bounds[bins, 0] = i
            bins += 1
            fill = 0.0
        fill += rows[i]
        plan.place[i] = -bins
        plan.bounds[bins - 1, 1] = i + 1
    plan.counts[BINS] = bins


@hot
def _take_sums(L: Any, v: Any, plan: Any) -> None:
    m, n = L.shape
    for j in range(m):
        plan.edge[ANCHOR, j] = v[j]
        for k in range(TERMS):
            for b in range(plan.sums.shape[2]):
                plan.sums[j, k, b] = 0.0
        least, total = np.inf, 0.0
        for i in range(n):
            if plan.place[i] < 0:
                D = L[j, i] + v[j]
                add_entry(plan.sums, j, -1 - plan.place[i], D, 1.0)
                total += 1.0 / (D * D) if plan.counts[EXACT] else plan.table[j, i]
                least = min(least, D)
            plan.table[j, i] = total
        plan.edge[LEAST_D, j] = min(least, _NOTHING)
        for b in range(plan.counts[SLOT_BINS], plan.counts[BINS]):
            for k in range(TERMS):
                plan.sums[j, k, -1] += plan.sums[j, k, b]


@hot
def sum_before(plan: Any, j: int, i: int) -> Any:
    """What `plan.table` has summed up before item i."""
    return plan.table[j, i - 1] if i > 0 else 0.0


@hot
def within_reach(v: Any, plan: Any) -> bool:
    """Whether the sums hold for these multipliers."""
    good = True
    for j in range(len(v)):
        good &= abs(v[j] - plan.edge[ANCHOR, j]) <= REACH * plan.edge[LEAST_D, j]
    return good


@hot
def weigh(t: float, v: Any, plan: Any) -> bool:
    """Write the sums of x over bins and what these lack to one; False where one has become too large."""
    m, first, last = len(v), plan.counts[SLOT_BINS], plan.counts[BINS]
    if first < last:
        for j in range(m):
            if plan.counts[EXACT]:
                values(plan.sums, j, v[j] - plan.edge[ANCHOR, j], t, last, plan.whole)
            else:
                for b in range(first, last):
                    start, stop = plan.bounds[b, 0], plan.bounds[b, 1]
                    plan.whole[j, b] = sum_before(plan, j, stop) - sum_before(plan, j, start)
    good = True
    for b in range(last):
        start, stop, lack = plan.bounds[b, 0], plan.bounds[b, 1], 1.0
        for j in range(m):
            if b < first:
                plan.whole[j, b] = (
                    plan.slot_x[j, start] if stop == start + 1 else sum_stretch(plan.slot_x, j, start, stop)
                )
            lack -= plan.whole[j, b]
        plan.whole[m, b] = lack
        good &= lack >= -1e-9
    return good


@apart
def list_matchings(t: float, plan: Any, sampler: Any) -> None:
    """Take x apart and list the heaviest matchings as they come off; also the round in which to list them again."""
    n_bins = plan.counts[BINS]
    copy_weights(plan, sampler)
    level = begin(n_bins, sampler)
    search, number, passed = 0, 0, 0.0
    while number < len(plan.matchings) and passed < _ALL:
        level, search = complete(level, search, n_bins, sampler)
        if level < LEAST:
            break
        for c in range(n_bins):
            plan.matchings[number, c] = sampler.chosen[c]
        number += 1
        weight = weight_of(n_bins, sampler)
        passed += weight
        take_off(weight, level, n_bins, sampler)
    plan.counts[MATCHINGS] = number
    plan.counts[LISTED] = int(t) + 1 + int(np.sqrt(t))


@hot
def copy_weights(plan: Any, sampler: Any) -> None:
    """The sums of x over bins, for the sampler to take matchings off."""
    m, n_bins = len(plan.whole) - 1, plan.counts[BINS]
    for j in range(m):
        for b in range(n_bins):
            sampler.mass[j, b] = plan.whole[j, b]
    for b in range(n_bins):
        sampler.slack[b] = plan.whole[m, b]
