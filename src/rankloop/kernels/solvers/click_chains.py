"""Users who read down a page: what their clicks say of where they stopped, summed over pages.

One user serves all chain models. They look at the first item. Having looked, they click with the chance alpha. Without
a click they read on with the chance none_j. After a click they are satisfied with the chance sat; then they read on
with the chance g1_j if they are, and g0_j if not. Every chance is a number in `x`, so that a step of expectation
maximisation is, for each of them, how often it came true over how often it was put to the test.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rankloop.kernels.elementary import log
from rankloop.kernels.jit import hot

_SMALL = 1e-200


class Chain(NamedTuple):
    """Which number of `x` each chance of the user is; -1 where it is fixed, and then `fixed_*` has it."""

    sat: int  # the satisfaction of item i is x[sat + i]; -1 for none is ever satisfied
    none: Any  # by position
    g0: Any
    g1: Any
    fixed_none: float
    fixed_g0: float
    fixed_g1: float


class Work(NamedTuple):
    """What is inferred of one page, by position."""

    looked: Any  # the chance that the user looked
    on: Any  # ... and then read on, without a click
    w: Any  # after a click: satisfied and read on, satisfied and left, unsatisfied and read on, ... and left
    unclicked: Any  # the chance of no click from here on, for one who looks here


@hot
def _chance(x: Any, index: Any, fixed: float, j: int) -> float:
    return x[index[j]] if index[j] >= 0 else fixed


@hot
def _page(pairs: Any, clicks: Any, x: Any, chain: Chain, work: Work) -> float:
    # Fills `work`, and returns the log likelihood. After the last click, the user may have stopped anywhere.
    length, last = 0, -1
    while length < len(pairs) and pairs[length] >= 0:
        if clicks[length] == 1:
            last = length
        length += 1
    total, chance = 0.0, 1.0
    unclicked = 1.0
    for back in range(length - 1 - last):
        j = length - 1 - back
        none = _chance(x, chain.none, chain.fixed_none, j)
        after = 1.0 if j == length - 1 else 1.0 - none + none * unclicked
        unclicked = (1.0 - x[pairs[j]]) * after
        work.unclicked[j] = unclicked
    for j in range(last + 1):
        i = pairs[j]
        work.looked[j] = 1.0
        work.on[j] = 1.0
        if clicks[j] == 0:
            chance *= 1.0 - x[i]
            chance *= _chance(x, chain.none, chain.fixed_none, j)
        else:
            chance *= x[i]
            sat = x[chain.sat + i] if chain.sat >= 0 else 0.0
            g0 = _chance(x, chain.g0, chain.fixed_g0, j)
            g1 = _chance(x, chain.g1, chain.fixed_g1, j)
            rest, left = 1.0, 0.0
            if j == last:
                rest, left = unclicked, 1.0
            work.w[j, 0] = sat * g1 * rest
            work.w[j, 1] = sat * (1.0 - g1) * left
            work.w[j, 2] = (1.0 - sat) * g0 * rest
            work.w[j, 3] = (1.0 - sat) * (1.0 - g0) * left
            if j < length - 1:
                sum_w = work.w[j, 0] + work.w[j, 1] + work.w[j, 2] + work.w[j, 3]
                chance *= sum_w
                for k in range(4):
                    work.w[j, k] /= sum_w
        if chance < _SMALL:
            total += log(chance)
            chance = 1.0
    if last < 0:
        chance *= unclicked
        reading = 1.0
    else:
        reading = work.w[last, 0] + work.w[last, 2]
    for j in range(last + 1, length):
        work.looked[j] = reading
        if j < length - 1:
            none = _chance(x, chain.none, chain.fixed_none, j)
            on = none * work.unclicked[j + 1]
            reading *= on / (1.0 - none + on)
            work.on[j] = reading
    told: float = total + log(chance)
    return told


@hot
def _scores(pairs: Any, clicks: Any, chain: Chain, work: Work, at: Any, hits: Any, tries: Any) -> int:
    # Which chances of one page were put to the test, how often each came true, and how often it was tried.
    count, m = 0, len(pairs)
    for j in range(m):
        if pairs[j] < 0:
            break
        ends = (
            j + 1 == m or pairs[j + 1] < 0
        )  # whether the user would read on behind the last item is never seen
        at[count], hits[count], tries[count] = pairs[j], float(clicks[j]), work.looked[j]
        count += 1
        if ends:
            break
        if clicks[j] == 0:
            if chain.none[j] >= 0:
                at[count], hits[count], tries[count] = chain.none[j], work.on[j], work.looked[j]
                count += 1
            continue
        w = work.w[j]
        if chain.sat >= 0:
            at[count], hits[count], tries[count] = chain.sat + pairs[j], w[0] + w[1], 1.0
            count += 1
        if chain.g0[j] >= 0:
            at[count], hits[count], tries[count] = chain.g0[j], w[2], w[2] + w[3]
            count += 1
        if chain.g1[j] >= 0:
            at[count], hits[count], tries[count] = chain.g1[j], w[0], w[0] + w[1]
            count += 1
    return count


@hot
def expect(
    pairs: Any, clicks: Any, x: Any, chain: Chain, work: Work, entries: Any, hits: Any, tries: Any
) -> float:
    """Add to `hits` and `tries`, for each chance in `x`, how often it came true and was tried; the log likelihood."""
    total = 0.0
    at, hit, tried = entries
    for s in range(len(pairs)):
        total += _page(pairs[s], clicks[s], x, chain, work)
        for k in range(_scores(pairs[s], clicks[s], chain, work, at, hit, tried)):
            hits[at[k]] += hit[k]
            tries[at[k]] += tried[k]
    return total


@hot
def information(
    pairs: Any, clicks: Any, x: Any, chain: Chain, work: Work, entries: Any, layout: Any, out: Any
) -> None:
    """Add up the outer products of each page's score, in log-odds.

    The chances of items come in blocks that never meet on a page: `layout` has, for each number of `x`, its block, its
    place there, the length of the block and where the block begins in `out.inner`; shared chances have block -1.
    """
    at, hit, tried = entries
    block, place, size, start = layout
    inner, border, shared = out
    for s in range(len(pairs)):
        _page(pairs[s], clicks[s], x, chain, work)
        count = _scores(pairs[s], clicks[s], chain, work, at, hit, tried)
        for k in range(count):
            hit[k] -= tried[k] * x[at[k]]
        for k in range(count):
            a = at[k]
            for other in range(count):
                b = at[other]
                product = hit[k] * hit[other]
                if block[a] < 0 and block[b] < 0:
                    shared[place[a], place[b]] += product
                elif block[a] >= 0 and block[b] < 0:
                    border[a, place[b]] += product
                elif block[a] >= 0 and block[a] == block[b]:
                    inner[start[a] + place[a] * size[a] + place[b]] += product
