"""Differences of 1 / DCG with a cut-off: whether they are zero, decided with bounds on every rounding."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from math import ceil

_FEWEST_BITS = 256
_MOST_WORK = 1 << 21  # cut-off times binary digits: more takes more than a second or so


@cache
def _ideals(n: int, bits: int) -> tuple[int, ...]:
    # S_j = sum of 1 / log2(1 + i) for i <= j, in units of 2^-bits; each is off by less than 2 j units.
    with localcontext() as context:
        context.prec = ceil(bits * 0.30103) + 20
        scale = Decimal(2).ln() * Decimal(2**bits)
        sums = [0]
        for i in range(1, n + 1):
            sums.append(sums[-1] + int(scale / Decimal(i + 1).ln()))
    return tuple(sums)


def difference_is_nonzero(order: int, *, start: int, cutoff: int, base: bool = False) -> bool | None:
    """Whether the difference of this order of s -> 1 / Z(min(s, cutoff)) at `start` is not zero; None if undecided.

    Z(s) = S_s, the largest DCG of s relevant items, or S_cutoff + 2 S_s with `base`: all items have grade 1 or 2,
    and s have 2. True is a proof: the sum is further from zero than its rounding can be.

    >>> difference_is_nonzero(5, start=1, cutoff=3)
    True
    """
    terms = (
        cutoff - start
    )  # from the cut-off on the sequence is constant: only these differ from its last value
    if terms <= 0:
        return order == 0
    bits = _FEWEST_BITS
    while bits * cutoff <= _MOST_WORK:
        one = 1 << bits
        sums = _ideals(cutoff, bits)
        bounds = [sums[cutoff] + 2 * s if base else s for s in sums]
        # Z >= 1 is off by at most 6 * cutoff units, so 1 / Z by that and one unit more.
        inverse = [one * one // Z if Z else 0 for Z in bounds]
        off = 2 * (6 * cutoff + 2)
        total, size, binomial = 0, 0, 1
        for j in range(min(terms, order + 1)):
            total += (-1) ** j * binomial * (inverse[start + j] - inverse[cutoff])
            size += binomial
            binomial = binomial * (order - j) // (j + 1)
        if abs(total) > off * size:
            return True
        bits *= 2
    return None
