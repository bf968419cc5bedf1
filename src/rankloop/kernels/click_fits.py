"""The inner loops of fitting click models to counted sessions."""

from __future__ import annotations

from typing import Any, NamedTuple

from rankloop.kernels.elementary import log
from rankloop.kernels.jit import apart, hot

# Clicks that depend on the item and on a context alone, such as the position: one step, on counts.
#
# An item attracts with the chance alpha_i. In context k, one that attracts is clicked with the chance u_k, and one
# that does not with the chance v_k.


@hot
def expect_cells(
    items: Any, contexts: Any, shown: Any, clicked: Any, x: Any, u: Any, v: Any, hits: Any, tries: Any
) -> float:
    """Add to `hits` and `tries`, for each chance in `x`, how often it came true and was tried; the log likelihood.

    u[k] and v[k] say which number of `x` each is; -1 stands for a chance of 1, -2 for one of 0.
    """
    total = 0.0
    for c in range(len(items)):
        i, k = items[c], contexts[c]
        alpha = x[i]
        likes = 1.0 if u[k] == -1 else x[u[k]]
        errs = 0.0 if v[k] == -2 else x[v[k]]
        p = alpha * likes + (1.0 - alpha) * errs
        missed = shown[c] - clicked[c]
        attracted_click, attracted_miss = 0.0, 0.0
        if clicked[c] > 0.0:
            total += clicked[c] * log(p)
            attracted_click = clicked[c] * alpha * likes / p
        if missed > 0.0:
            total += missed * log(1.0 - p)
            attracted_miss = missed * alpha * (1.0 - likes) / (1.0 - p)
        hits[i] += attracted_click + attracted_miss
        tries[i] += shown[c]
        if u[k] >= 0:
            hits[u[k]] += attracted_click
            tries[u[k]] += attracted_click + attracted_miss
        if v[k] >= 0:
            hits[v[k]] += clicked[c] - attracted_click
            tries[v[k]] += shown[c] - attracted_click - attracted_miss
    return total


# Users who read down a page: what their clicks say of where they stopped, summed over pages.
#
# One user serves all chain models. They look at the first item. Having looked, they click with the chance alpha.
# Without a click they read on with the chance none_j. After a click they are satisfied with the chance sat; then they
# read on with the chance g1_j if they are, and g0_j if not. Every chance is a number in `x`, so that a step of
# expectation maximisation is, for each of them, how often it came true over how often it was put to the test.


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
    likelihood: float = total + log(chance)
    return likelihood


@hot
def _scores(pairs: Any, clicks: Any, chain: Chain, work: Work, at: Any, hits: Any, tries: Any) -> int:
    # Which chances of one page were put to the test, how often each came true, and how often it was tried.
    count, m = 0, len(pairs)
    for j in range(m):
        if pairs[j] < 0:
            break
        # Whether the user would read on behind the last item is never seen.
        ends = j + 1 == m or pairs[j + 1] < 0
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
def expect_chains(
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


# The chance of a click at each position of many pages, for any of the click models as one general user.
#
# The user reads from the top. While they read, they look at position j with a chance that depends on the last click
# above it. Having looked, they click: with the chance `true[j]` if the item attracts them, and `false[j]` if not.
# Then they read on or leave. One who does not look reads on.


class User(NamedTuple):
    """All chances; the attraction and the satisfaction by item, the others by position."""

    alpha: Any
    sat: Any
    looks: Any  # by position and last click: column 0 for none above, column r for the r-th position
    true: Any
    false: Any
    none: Any
    g0: Any
    g1: Any


@hot
def predict(pairs: Any, clicks: Any, user: User, reading: Any, given: Any, alone: Any) -> None:
    """Fill `given` with the chances given the clicks above, and `alone` with those that nothing is known of.

    Items that are not on the page have a pair of -1 and get nothing. `reading` has one number per position and one
    more.
    """
    m = pairs.shape[1]
    for s in range(len(pairs)):
        last, still = 0, 1.0
        reading[:] = 0.0
        reading[0] = 1.0
        for j in range(m):
            i = pairs[s, j]
            if i < 0:
                break
            alpha, sat = user.alpha[i], user.sat[i]
            like = alpha * user.true[j] + (1.0 - alpha) * user.false[j]
            after = sat * user.g1[j] + (1.0 - sat) * user.g0[j]
            seen = user.looks[j, last]
            p = still * seen * like
            given[s, j] = p
            if clicks[s, j] == 1:
                last, still = j + 1, after
            else:
                rest = 1.0 - p
                stays = still * (seen * (1.0 - like) * user.none[j] + 1.0 - seen)
                still = stays / rest if rest > 0.0 else 0.0
            total = 0.0
            for r in range(j + 1):
                seen = user.looks[j, r]
                total += reading[r] * seen * like
                reading[r] *= seen * (1.0 - like) * user.none[j] + 1.0 - seen
            reading[j + 1] = total * after
            alone[s, j] = total


# The likeliest attraction of each item given the examinations, or the other way round, from counts by group of cells.
#
# A cell is clicked with probability x w, where x belongs to its group and w to the cell. The best x is the root of a
# rising convex function, found by Newton's method within bounds that close in on it. Every group stops when its own
# root has settled, so that a million easy groups do not wait for the hardest one.


_STEPS = 100
_SETTLED = 1e-9  # the last step, relative: the next would be its square


@hot
def _excess(x: float, first: int, last: int, other: Any, weights: Any, missed: Any, disliked: float) -> Any:
    """Expected clicks for the misses there were, and the slope; each rises from 0 to infinity."""
    value, slope = 0.0, 0.0
    for cell in range(first, last):
        weight = weights[other[cell]]
        risk = missed[cell] * weight
        if risk > 0.0:
            rest = 1.0 / (1.0 - x * weight)
            lost = risk * rest
            value += lost
            slope += lost * rest
    value *= x
    if disliked > 0.0:
        miss = disliked / (1.0 - x)
        value += x * miss
        slope += miss / (1.0 - x)
    return value, slope


@apart
def likeliest(
    starts: Any,
    other: Any,
    weights: Any,
    clicked: Any,
    missed: Any,
    liked: float,
    disliked: float,
    x: Any,
) -> None:
    """Replace each `x`, the start, by the likeliest one from 0 to 1.

    The cells of group g are those from ``starts[g]`` on; the weight of a cell is ``weights[other[cell]]``. Each group
    has so many more impressions of weight 1, `liked` with a click and `disliked` without. A group without a click gets
    0.
    """
    for g in range(len(x)):
        first, last = starts[g], starts[g + 1]
        hits = 0.0
        for cell in range(first, last):
            hits += clicked[cell]
        hits += liked
        if hits <= 0.0:
            x[g] = 0.0
            continue
        value, _ = _excess(1.0, first, last, other, weights, missed, disliked)
        if value <= hits:
            x[g] = 1.0
            continue
        low, high = 0.0, 1.0
        at = x[g] if 0.0 < x[g] < 1.0 else 0.5
        for _ in range(_STEPS):
            value, slope = _excess(at, first, last, other, weights, missed, disliked)
            if value > hits:
                high = at
            else:
                low = at
            after = at - (value - hits) / slope if slope > 0.0 else at
            if not low < after < high:
                after = 0.5 * (low + high)
            moved = abs(after - at)
            still = moved > _SETTLED * min(at, 1.0 - at) + 1e-15
            at = after
            if not still:
                break
        x[g] = at
