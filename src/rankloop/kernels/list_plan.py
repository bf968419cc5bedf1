"""The minimiser of `tsallis` by a plan: items in slots one by one, all others in bulk.

A round changes x at what was shown, and by the factor (t + 1) / t everywhere. So the sums that the last round ended
with tell those that this one begins with, and Newton's first step needs no pass over the slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.kernels.jit import Floats, Ints, apart, hot
from rankloop.kernels.list_network import TIGHT, TOLERANCE, SolverScratch, eliminate
from rankloop.kernels.lists import LEAST, begin, complete, go_on, most_bins, take_off, weight_of
from rankloop.kernels.random import uniform
from rankloop.kernels.vectors import (
    TERMS,
    add_row,
    evaluate_column,
    fill_row,
    find_tight_slots,
    inverse_cubes,
    multiply_rows,
    polynomials,
    row_dot,
    row_dots,
    scale,
    subtract_rows,
    sum_rows,
    sum_stretch,
)

# Sums of 1 / D^2 over many items at once, D = L + v, as polynomials in how far v has moved since they were taken.
#
# Of an entry, 1 / (D + d)^2 = sum over k of (-1)^k (k + 1) d^k / D^(k + 2). The coefficients add up over items, so a
# column of items whose L stays is evaluated at any v in a few multiplications; an item whose L changes is taken out
# with its old coefficients and put in with its new ones. With |d| <= REACH D, what the polynomial leaves out is below
# (TERMS + 1) REACH^TERMS = 6e-11 of the sum.


REACH = 0.04


@hot
def add_entry(sums: Any, j: int, b: int, D: float, sign: float) -> None:
    """Add `sign` times the coefficients of 1 / (D + d)^2 to those of bin b in column j."""
    inverse = 1.0 / D
    term = sign * inverse * inverse
    for k in range(TERMS):
        sums[j, k, b] += float(k + 1) * term
        term *= -inverse


@hot
def value_and_slope(sums: Any, j: int, d: float) -> Any:
    """The sums of 1 / (D + d)^2 and of 1 / (D + d)^3 over column j, whose coefficients are in the last bin."""
    value, slope = 0.0, 0.0
    for k in range(TERMS - 1, -1, -1):
        slope = slope * d + value
        value = value * d + sums[j, k, -1]
    return value, -0.5 * slope


# How rows of x are gathered, to be evaluated in bulk and drawn by bin, for as long as x does not move far.
#
# The items with the largest row sums are kept one by one, in slots, with copies of what belongs to them; all others
# are summed in bulk, as above, around the multipliers of the round in which the plan was made. Both kinds are
# merged into bins of total at most one, first bins of slots, then bins of other items that follow each other, and the
# matchings of bins that x was made of then are listed. Nothing here depends on how good the plan still is.


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

    counts: Ints  # bins of slots, bins, matchings, when to list them again, whether x is exact
    kept: Ints  # by slot: its item, or -1
    place: Ints  # by item: its slot; or -1 - b in bin b
    slot_L: Floats  # by position and slot
    slot_lines: Floats  # the same by slot and position, and nothing beyond the last position
    slot_u: Floats
    slot_x: Floats
    slot_rows: Floats
    sums: Floats  # by position, power and bin; in the place of a last bin, over all of them
    table: Floats  # by position and item: 1 / D^2 then, summed over the items in bulk up to this
    bounds: Ints  # by bin: its first slot or item, and the one after its last
    edge: Floats  # by position: the four rows above
    matchings: Ints  # by matching: the bin at each position, then the bins left out
    whole: Floats  # by position and bin: the sum of x; last row: what the bin lacks to one


def aligned(*shape: int, fill: float = 0.0) -> Floats:
    """An array that begins where a line of the processor's cache does, so that no vector lies across two of them."""
    line, number = 64, int(np.prod(shape))
    memory = np.empty(number + line // 8)
    first = -(memory.ctypes.data % -line) // 8
    array = memory[first : first + number].reshape(shape)
    array[...] = fill
    return array


def slots(n: int, m: int) -> int:
    """How many items are kept one by one, and a few empty slots, for vectors of eight."""
    return 8 * ((min(n, 2 * m + _SLOTS) + 7) // 8)


def blank(n: int, m: int) -> Plan:
    """A plan of nothing yet."""
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
                polynomials(plan.sums, j, v[j] - plan.edge[ANCHOR, j], t, last, plan.whole)
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


# Lists drawn by a plan: its matchings first, one after another, each with the weight that it has in x now.
#
# Any order of matchings gives the same marginals, so an old list of them is as good as a new one, only less of x is
# covered by it; what is left is taken apart by search, as in `lists`. An item of a bin in bulk is drawn with
# the chances of the round in which the plan was made, and kept with the ratio of its chance now to that one.


_TRIES = 64


@hot
def show(t: float, L: Any, v: Any, plan: Any, key: Any, sampler: Any, items: Any, propensities: Any) -> bool:
    """Draw a list, write its chances. Exploring: on average, the items stand where they had less than an even one."""
    _choose(uniform(key, 0), plan, sampler)
    total = 0.0
    for j in range(len(items)):
        b = sampler.chosen[j]
        if b < plan.counts[SLOT_BINS]:
            s = _slot(j, b, uniform(key, 1 + j), plan)
            items[j] = plan.kept[s]
            chance = plan.slot_x[j, s]
        elif plan.counts[EXACT]:
            i = _item(j, b, key, L, v, plan)
            items[j] = i
            D = L[j, i] + v[j]
            chance = t / (D * D)
        else:
            i = _search(plan, j, b, uniform(key, 1 + j))
            items[j] = i
            chance = plan.table[j, i] - sum_before(plan, j, i)
        propensities[j] = min(1.0, chance)
        total += propensities[j]
    return total < 0.5 * len(items)


@hot
def _choose(u: float, plan: Any, sampler: Any) -> None:
    m, n_bins = len(plan.whole) - 1, plan.counts[BINS]
    copy_weights(plan, sampler)
    passed = 0.0
    for k in range(plan.counts[MATCHINGS]):
        weight = 2.0
        for c in range(m):
            weight = min(weight, sampler.mass[c, plan.matchings[k, c]])
        for c in range(m, n_bins):
            weight = min(weight, sampler.slack[plan.matchings[k, c]])
        if weight <= 0.0:
            continue
        passed += weight
        if u < passed:
            for c in range(m):
                sampler.chosen[c] = plan.matchings[k, c]
            return
        for c in range(m):
            sampler.mass[c, plan.matchings[k, c]] -= weight
        for c in range(m, n_bins):
            sampler.slack[plan.matchings[k, c]] -= weight
    _search_on(u, passed, n_bins, sampler)


@apart
def _search_on(u: float, passed: float, n_bins: int, sampler: Any) -> None:
    go_on(u, passed, n_bins, sampler)


@hot
def _slot(j: int, b: int, u: float, plan: Any) -> Any:
    left = u * plan.whole[j, b]
    last = plan.bounds[b, 1] - 1
    for s in range(plan.bounds[b, 0], last):
        left -= plan.slot_x[j, s]
        if left < 0.0:
            return s
    return last


@hot
def _item(j: int, b: int, key: Any, L: Any, v: Any, plan: Any) -> Any:
    # By rejection: D has grown by at least the way of v since, so the ratio is at most `most`.
    m = len(v)
    fall = min(0.0, v[j] - plan.edge[ANCHOR, j]) / plan.edge[LEAST_D, j]
    most = 1.0 / ((1.0 + fall) * (1.0 + fall))
    for tried in range(_TRIES):
        number = 1 + j + 2 * tried * m
        i = _search(plan, j, b, uniform(key, number))
        D = L[j, i] + v[j]
        if uniform(key, number + m) * most * (plan.table[j, i] - sum_before(plan, j, i)) * D * D < 1.0:
            return i
    return _scan(j, b, uniform(key, 1 + j + 2 * _TRIES * m), L, v, plan)


@hot
def _search(plan: Any, j: int, b: int, u: float) -> Any:
    # The item of bin b at the share u of what the table has there.
    low, high = plan.bounds[b, 0], plan.bounds[b, 1] - 1
    before = sum_before(plan, j, low)
    target = before + u * (plan.table[j, high] - before)
    while low < high:
        middle = (low + high) // 2
        if plan.table[j, middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@apart
def _scan(j: int, b: int, u: float, L: Any, v: Any, plan: Any) -> Any:
    # All items of the bin, where nearly all of its chances are gone.
    total, chosen = 0.0, plan.bounds[b, 0]
    for i in range(plan.bounds[b, 0], plan.bounds[b, 1]):
        if plan.place[i] < 0:
            D = L[j, i] + v[j]
            total += 1.0 / (D * D)
    left = u * total
    for i in range(plan.bounds[b, 0], plan.bounds[b, 1]):
        if plan.place[i] < 0:
            chosen = i
            D = L[j, i] + v[j]
            left -= 1.0 / (D * D)
            if left < 0.0:
                return i
    return chosen


# One step of Newton's method by a plan: that of `list_network`, with positions in vectors of eight.
#
# Here there are always more items than positions. What is left over of a vector counts as positions where D is
# infinite, so that x and x / D are zero there: were they only tiny, their products would underflow, which takes the
# processor several times as long.


_GROUND, _INVERSE, _DV, _V = range(4)  # rows of `lines`; five more are for the leader in full
_REACH = 0.7  # as in `tsallis`


class StepScratch(NamedTuple):
    """Never state."""

    tight: Ints
    h: Floats  # x / D of the tight rows
    share: Floats  # ... over the column sums of all
    lines: Floats  # by position: ground, one over the column sums of h, the step, v, and others
    du: Floats
    drain: Floats  # conductance from tight rows to the ground
    w: Floats  # ... and between them
    work: Floats  # three numbers by item, for the leader in full


def step_scratch(n: int, n_slots: int, m: int) -> StepScratch:
    """Scratch for `n` items on `m` positions, and a plan of `n_slots` slots."""
    most, width = min(n_slots, 2 * m), 8 * ((m + 7) // 8)
    return StepScratch(
        np.empty(most, np.int64),
        aligned(most, width),
        aligned(most, width),
        aligned(9, width),
        np.empty(most),
        np.empty(most),
        np.empty((most, most)),
        np.empty((3, n)),
    )


@hot
def scratch_in_full(m: int, scratch: Any) -> Any:
    """The same arrays, as scratch for the leader in full."""
    lines, work = scratch.lines, scratch.work
    return SolverScratch(
        work[0],
        lines[4, :m],
        lines[5, :m],
        scratch.tight,
        scratch.h,
        lines[6, :m],
        scratch.du,
        lines[7, :m],
        scratch.w,
        scratch.drain,
        work[1],
        lines[8, :m],
    )


@hot
def take_multipliers(v: Any, scratch: Any) -> None:
    """Copy the multipliers of the positions to `scratch.lines`, before the first step."""
    fill_row(scratch.lines, _V, v, np.inf)


@hot
def find_step(t: float, plan: Any, scratch: Any, n_tight: int) -> None:
    """Write the step of the tight rows' multipliers to `scratch.du`, of the positions' to `scratch.lines`."""
    _prepare(t, plan, scratch, n_tight)
    h, share, lines, du = scratch.h, scratch.share, scratch.lines, scratch.du
    sum_rows(lines, _INVERSE, lines, _GROUND, h, n_tight)
    for j in range(lines.shape[1]):
        lines[_INVERSE, j] = 1.0 / lines[_INVERSE, j]
    multiply_rows(lines, _DV, lines, _DV, lines, _INVERSE)
    for a in range(n_tight):
        multiply_rows(share, a, h, a, lines, _INVERSE)
        scratch.drain[a] = row_dot(share, a, lines, _GROUND)
        du[a] -= row_dot(h, a, lines, _DV)
        row_dots(scratch.w, a, share, a, h, a)
    eliminate(plan.slot_u, scratch, n_tight, False)
    subtract_rows(lines, _DV, share, du, n_tight)


@hot
def _prepare(t: float, plan: Any, scratch: Any, n_tight: int) -> None:
    # The excess of columns and tight rows, as Newton on 1 / sqrt(sum) takes it, and h.
    h, lines = scratch.h, scratch.lines
    for j in range(lines.shape[1]):
        total = plan.edge[COLUMNS, j]
        lines[_DV, j] = total * (np.sqrt(total) - 1.0)
    sum_rows(lines, _GROUND, plan.edge, GROUND, h, 0)  # a copy
    for a in range(n_tight):
        s = scratch.tight[a]
        inverse_cubes(h, a, plan.slot_lines, s, lines, _V, plan.slot_u[s], t)
        if plan.slot_u[s] == 0.0:  # it became tight just now: the next pass leaves it out of the ground
            for j in range(lines.shape[1]):
                lines[_GROUND, j] = max(lines[_GROUND, j] - h[a, j], 1e-3 * lines[_GROUND, j])
        total = plan.slot_rows[s]
        scratch.du[a] = total * (np.sqrt(total) - 1.0)


@hot
def move(t: float, v: Any, plan: Any, scratch: Any, n_tight: int) -> bool:
    """Take the step, or so much of it that no D falls by more than 0.7; False where there is none."""
    lowest, scale = 0.0, 1.0
    for a in range(n_tight):
        lowest = min(lowest, scratch.du[a])
    for j in range(len(v)):
        fall = -(scratch.lines[_DV, j] + lowest)
        total = plan.edge[COLUMNS, j]
        if fall > 0.0 and not fall * fall * total <= _REACH * _REACH * t:
            scale = min(scale, _REACH * np.sqrt(t / total) / fall)
        if not fall < np.inf:
            return False
    if not scale > 0.0:
        return False
    add_row(scratch.lines, _V, scratch.lines, _DV, scale)
    for j in range(len(v)):
        v[j] = scratch.lines[_V, j]
    for a in range(n_tight):
        s = scratch.tight[a]
        plan.slot_u[s] = max(0.0, plan.slot_u[s] + scale * scratch.du[a])
        plan.u[plan.kept[s]] = plan.slot_u[s]
    return True


_STEPS = 6  # two are usual


@hot
def add_loss(state: Any, j: int, i: int, loss: float) -> None:
    """Add to the losses of item i at position j, and keep all sums in step; before t is counted on."""
    t, v, before = float(state.t[0]), state.v[j], state.L_hat[j, i]
    after = before + loss
    state.L_hat[j, i] = after
    s = state.place[i]
    u = state.slot_u[s] if s >= 0 else 0.0
    old, new = 1.0 / (before + u + v), 1.0 / (after + u + v)
    fall = t * (new * new - old * old)
    state.edge[COLUMNS, j] += fall
    if u == 0.0:
        state.edge[GROUND, j] += t * (new * new * new - old * old * old)
    if s >= 0:
        state.slot_L[j, s] = after
        state.slot_lines[s, j] = after
        state.slot_rows[s] += fall
        return
    for sign in (-1.0, 1.0):
        D = (before if sign < 0.0 else after) + state.edge[ANCHOR, j]
        add_entry(state.sums, j, -1 - s, D, sign)
        add_entry(state.sums, j, -1, D, sign)


@hot
def newton(t: float, v: Any, plan: Any, scratch: Any) -> bool:
    """Move `plan.slot_u` and `v` to the optimum, write x of the slots; False where the plan does not reach so far."""
    _begin(t, plan)
    take_multipliers(v, scratch)
    for step in range(_STEPS):
        if step > 0:
            evaluate(t, v, plan)
        n_tight = find_tight_slots(plan.slot_u, plan.slot_rows, 1.0 + TIGHT, scratch.tight)
        if n_tight < 0:
            return False
        if step > 0 and _settled(len(v), plan, scratch, n_tight):
            return True
        find_step(t, plan, scratch, n_tight)
        if not move(t, v, plan, scratch, n_tight) or not within_reach(v, plan):
            return False
    return False


@hot
def _begin(t: float, plan: Any) -> None:
    ratio = t / (t - 1.0)
    scale(plan.edge, 2 * plan.edge.shape[1], ratio)  # COLUMNS and GROUND
    scale(plan.slot_rows, len(plan.slot_rows), ratio)


@hot
def evaluate(t: float, v: Any, plan: Any) -> None:
    """Chances of the slots, their row sums, and the sums of x and of x / D over all items."""
    bulk = plan.counts[SLOT_BINS] < plan.counts[BINS]
    for j in range(len(v)):
        total, ground = evaluate_column(
            plan.slot_L, j, plan.slot_u, v[j], t, 1.0, plan.slot_x, plan.slot_rows
        )
        if bulk:
            value, slope = value_and_slope(plan.sums, j, v[j] - plan.edge[ANCHOR, j])
            total += t * value
            ground += t * slope
        plan.edge[COLUMNS, j] = total
        plan.edge[GROUND, j] = ground


@hot
def _settled(m: int, plan: Any, scratch: Any, n_tight: int) -> bool:
    off = 0.0
    for j in range(m):
        off = max(off, abs(plan.edge[COLUMNS, j] - 1.0))
    for a in range(n_tight):
        off = max(off, abs(plan.slot_rows[scratch.tight[a]] - 1.0))
    return off <= TOLERANCE
