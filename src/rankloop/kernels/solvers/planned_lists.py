"""Lists drawn by a plan: its matchings first, one after another, each with the weight that it has in x now.

Any order of matchings gives the same marginals, so an old list of them is as good as a new one, only less of x is
covered by it; what is left is taken apart by search, as in `list_sampling`. An item of a bin in bulk is drawn with the
chances of the round in which the plan was made, and kept with the ratio of its chance now to that one.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import apart, hot
from rankloop.kernels.random import uniform
from rankloop.kernels.solvers.list_plan import (
    ANCHOR,
    BINS,
    EXACT,
    LEAST_D,
    MATCHINGS,
    SLOT_BINS,
    copy_weights,
    sum_before,
)
from rankloop.kernels.solvers.list_sampling import go_on

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
