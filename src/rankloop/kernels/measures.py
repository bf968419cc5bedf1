"""Ranking measures, one ranking at a time and many at once (Chaudhuri and Tewari 2015, section 3).

A separable measure is f(order) . g(relevance) + offset(relevance). Here `discount` is f by position (zero
beyond a cut-off), `gain` writes g and returns the offset, and `total` puts the first two together. Nothing above
the batched functions allocates.
"""

from __future__ import annotations

import numpy as np

from rankloop.kernels.discounts import AUC, EXP2, NDCG, PAIRS
from rankloop.kernels.elementary import exp2, exp2m1, log2
from rankloop.kernels.jit import Floats, Ints, apart, hot, kernel


@hot
def exp2_gain(r: float) -> float:
    """2^r - 1."""
    if r == 0.0 or r == 1.0:  # binary relevance is the hot case, and a power is slow
        return r
    return float(exp2m1(r))


@kernel
def logarithms(n: int) -> Floats:
    """log2(2), log2(3), ..., log2(n + 1)."""
    out = np.empty(n)
    for i in range(n):
        out[i] = log2(i + 2.0)
    return out


@hot
def is_binary(relevance: Floats) -> bool:
    """Whether all are 0 or 1, which then are their own gain; without a branch on any one of them."""
    others = 0
    for i in range(relevance.shape[0]):
        others += (relevance[i] != 0.0) & (relevance[i] != 1.0)
    return others == 0


@apart
def ideal(relevance: Floats, discount: Floats) -> float:
    """Z(r): the largest DCG that any order reaches, for a discount that never increases."""
    m = relevance.shape[0]
    z = 0.0
    position = 0
    above = np.inf
    # Two passes per grade, from the highest down: for a few grades this is faster than sorting, and it
    # needs no memory; with every relevance different it is quadratic in the length of the list.
    while True:
        grade = 0.0
        for i in range(m):
            r = relevance[i]
            grade = r if (r < above) & (r > grade) else grade  # no branch: relevance is hard to predict
        if grade == 0.0:
            return z
        count = 0
        for i in range(m):
            count += relevance[i] == grade
        g = exp2_gain(grade)
        for _ in range(count):
            z += discount[position] * g
            position += 1
        if position == m or discount[position] == 0.0:
            return z
        above = grade


@hot
def parts(kind: int, relevance: Floats, discount: Floats, out: Floats) -> tuple[float, float]:
    """Write h(r) to `out`; return c, z so that the value is (f . h + c) / z. Dividing last keeps 1 exactly 1."""
    m = relevance.shape[0]
    if kind in (EXP2, NDCG):
        if is_binary(relevance):
            for i in range(m):
                out[i] = relevance[i]
        else:
            for i in range(m):
                out[i] = exp2_gain(relevance[i])
        if kind == EXP2:
            return 0.0, 1.0
        z = ideal(relevance, discount)
        if z == 0.0:
            return 1.0, 1.0  # erratum A16: NDCG is 1 when nothing is relevant
        return 0.0, z
    s = 0.0
    for i in range(m):
        out[i] = relevance[i]
        s += relevance[i]
    if kind == PAIRS:
        return -0.5 * s * (s + 1.0), 1.0
    if kind == AUC:
        if s == 0.0 or s == m:
            out[:] = 0.0  # erratum A16: no pair to put right or wrong
            return 0.0, 1.0
        return -0.5 * s * (s + 1.0), s * (m - s)
    return 0.0, 1.0


@hot
def gain(kind: int, relevance: Floats, discount: Floats, out: Floats) -> float:
    """Write g(r) to `out` and return the offset."""
    c, z = parts(kind, relevance, discount, out)
    if z != 1.0:
        for i in range(out.shape[0]):
            out[i] /= z
    return c / z


@kernel
def total(items: Ints, gains: Floats, discount: Floats) -> float:
    """f(order) . g: the gain at each position times the discount of that position."""
    value = 0.0
    for position in range(items.shape[0]):
        value += discount[position] * gains[items[position]]
    return value


@hot
def average_precision(items: Ints, relevance: Floats, cutoff: int) -> float:
    """Mean over all relevant items of the precision at their rank; those below the cut-off count as 0."""
    m = items.shape[0]
    relevant = 0
    for i in range(m):
        if relevance[i] > 0.0:
            relevant += 1
    if relevant == 0:
        return 1.0  # erratum A16
    hits = 0
    precisions = 0.0
    for position in range(min(cutoff, m)):
        if relevance[items[position]] > 0.0:
            hits += 1
            precisions += hits / (position + 1)
    return precisions / relevant


@hot
def err(items: Ints, relevance: Floats, cutoff: int, max_grade: int) -> float:
    """Expected 1/rank of the item at which a reader who goes down the list stops (Chapelle et al. 2009)."""
    scale = exp2(max_grade)
    still_reading = 1.0
    value = 0.0
    for position in range(min(cutoff, items.shape[0])):
        stop = exp2_gain(relevance[items[position]]) / scale
        value += still_reading * stop / (position + 1)
        still_reading *= 1.0 - stop
    return value


@hot
def pairwise_loss(items: Ints, relevance: Floats) -> float:
    """Pairs in which the item of lower relevance stands higher; one pass per different grade."""
    m = items.shape[0]
    pairs = 0
    grade = -np.inf
    while True:
        lower = 0
        following = np.inf
        for position in range(m):
            r = relevance[items[position]]
            if r < grade:
                lower += 1
            elif r == grade:
                pairs += lower
            elif r < following:
                following = r
        if following == np.inf:
            return float(pairs)
        grade = following


# Many rankings at once: result i scores row order_row[i] of `orders` against row relevance_row[i] of `relevances`.


@kernel
def separable_rows(
    kind: int, orders: Ints, relevances: Floats, order_row: Ints, relevance_row: Ints, discount: Floats
) -> Floats:
    """f(order) . g(relevance) + offset(relevance) for every result."""
    values = np.empty(order_row.shape[0])
    h = np.empty(relevances.shape[1])
    c, z = 0.0, 1.0
    known = -1
    for i in range(values.shape[0]):
        if relevance_row[i] != known:  # many orders against one relevance: its gains are worked out once
            known = relevance_row[i]
            c, z = parts(kind, relevances[known], discount, h)
        values[i] = (total(orders[order_row[i]], h, discount) + c) / z
    return values


@kernel
def average_precision_rows(
    orders: Ints, relevances: Floats, order_row: Ints, relevance_row: Ints, cutoff: int
) -> Floats:
    """`average_precision` for every result."""
    values = np.empty(order_row.shape[0])
    for i in range(values.shape[0]):
        values[i] = average_precision(orders[order_row[i]], relevances[relevance_row[i]], cutoff)
    return values


@kernel
def err_rows(
    orders: Ints, relevances: Floats, order_row: Ints, relevance_row: Ints, cutoff: int, max_grade: int
) -> Floats:
    """`err` for every result."""
    values = np.empty(order_row.shape[0])
    for i in range(values.shape[0]):
        values[i] = err(orders[order_row[i]], relevances[relevance_row[i]], cutoff, max_grade)
    return values


@kernel
def pairwise_loss_rows(orders: Ints, relevances: Floats, order_row: Ints, relevance_row: Ints) -> Floats:
    """`pairwise_loss` for every result."""
    values = np.empty(order_row.shape[0])
    for i in range(values.shape[0]):
        values[i] = pairwise_loss(orders[order_row[i]], relevances[relevance_row[i]])
    return values


@kernel
def gain_rows(kind: int, relevances: Floats, discount: Floats) -> tuple[Floats, Floats]:
    """g(r) and the offset of every row."""
    gains = np.empty_like(relevances)
    offsets = np.empty(relevances.shape[0])
    for i in range(relevances.shape[0]):
        offsets[i] = gain(kind, relevances[i], discount, gains[i])
    return gains, offsets


@kernel
def first_fault(orders: Ints) -> int:
    """Flat index of the first entry out of range or repeated in its row; -1 if all rows are permutations."""
    rows, m = orders.shape
    seen_in = np.full(m, -1)
    for row in range(rows):
        for position in range(m):
            item = orders[row, position]
            if item < 0 or item >= m or seen_in[item] == row:
                return int(row * m + position)
            seen_in[item] = row
    return -1
