"""Ranking measures by their swaps: what changes when two items in a row change places.

Let x stand just above y, and all else be as it is. For relevance 0 and 1 every measure of the package then differs
by  c * (r_x - r_y) * h(t, u),  where t and u count the relevant items above and below the two. As a polynomial in the
relevance of the others, h has the same coefficient for all sets of a items above and b items below: the mixed
difference of h at (0, 0), a times in t and b times in u (Moebius inversion).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import groupby, pairwise
from math import comb

from rankloop.games.exact_measures import discounts
from rankloop.games.rationals import log_discount
from rankloop.games.verdict import Worlds
from rankloop.measures import Measure

_FIXED_POINT = 256  # binary digits of 1 / Z, and 4 more for each item


class Undecided(ValueError):
    """More digits would be needed to distinguish a number from zero."""


@dataclass(frozen=True)
class Boundary:
    """Ranks `rank` and `rank + 1` count differently: by `scale`, which is c."""

    rank: int
    scale: Fraction


@dataclass(frozen=True)
class Terms:
    """The coefficients of h by sizes (a, b), or by a + b where h depends on t + u alone. Zeros are left out."""

    by_total: dict[int, Fraction] | None = None
    by_sizes: dict[tuple[int, int], Fraction] = field(default_factory=dict)

    def within(self, above: int, below: int) -> Iterator[tuple[int, int, Fraction]]:
        """(a, b, coefficient) of all terms with a <= above, b <= below; of a total, the split that reaches lowest."""
        if self.by_total is not None:
            for total, coefficient in self.by_total.items():
                if total <= above + below:
                    yield total - min(total, below), min(total, below), coefficient
        for (a, b), coefficient in self.by_sizes.items():
            if a <= above and b <= below:
                yield a, b, coefficient

    def table(self, others: int) -> list[list[Fraction]]:
        """H from its coefficients, for t + u up to `others`."""
        sizes = range(others + 1)
        if self.by_total is not None:
            of_total = [
                sum((value * comb(s, d) for d, value in self.by_total.items() if d <= s), Fraction(0))
                for s in sizes
            ]
            return [[of_total[t + u] for u in range(others - t + 1)] for t in sizes]
        by_a: list[dict[int, Fraction]] = [{} for _ in sizes]
        for (a, b), value in self.by_sizes.items():
            by_a[a][b] = value
        half = [
            [sum((value * comb(u, b) for b, value in row.items() if b <= u), Fraction(0)) for u in sizes]
            for row in by_a
        ]
        return [
            [sum((comb(t, a) * half[a][u] for a in range(t + 1)), Fraction(0)) for u in range(others - t + 1)]
            for t in sizes
        ]


@dataclass(frozen=True)
class SwapWitness:
    """A proof by swaps.

    Parameters
    ----------
    blocks : tuple of int
        How many ranks in a row count alike, from the top.
    boundaries : tuple of Boundary
        Between which ranks swapping changes anything.
    terms : Terms
        The coefficients of h; empty where k = m, and everything is seen.
    unseen : tuple of int, optional
        Where something cannot be seen: a boundary's rank and the sizes (a, b) of a term that no top k holds,
        neither of any order (hopeless) nor of the orders that differ by the swap (hard).
    worlds : Worlds, optional
        Two worlds made from that term, where they are few enough to list.
    reason : str, optional
        In a line, what the proof rests on.
    """

    blocks: tuple[int, ...]
    boundaries: tuple[Boundary, ...]
    terms: Terms
    unseen: tuple[int, int, int] | None = None
    worlds: Worlds | None = None
    reason: str = ""


class Swaps:
    """All swaps of a measure on m items with relevance 0 and 1, of grades up to `max_grade` (which matters to err)."""

    def __init__(self, measure: Measure, n_items: int, max_grade: int = 1) -> None:
        self.measure, self.m = measure, n_items
        self.stop = Fraction(1, 2**max_grade)  # where an item of grade 1 ends a reader's search (err)

    @cached_property
    def cutoff(self) -> int:
        return min(self.measure.cutoff or self.m, self.m)

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Sizes of the runs of ranks that count alike."""
        if self.measure.kind >= 0:
            return tuple(len(list(run)) for _, run in groupby(discounts(self.measure, self.m)))
        n = self.cutoff
        return (1,) * n + ((self.m - n,) if n < self.m else ())

    @cached_property
    def boundaries(self) -> tuple[Boundary, ...]:
        ends = [sum(self.blocks[:i]) for i in range(1, len(self.blocks))]
        return tuple(Boundary(rank, self._scale(rank)) for rank in ends)

    def _scale(self, rank: int) -> Fraction:
        if self.measure.kind >= 0:
            f = discounts(self.measure, self.m)
            return f[rank - 1] - f[rank]
        below = Fraction(0) if rank >= self.cutoff else Fraction(1, rank + 1)
        step = Fraction(1, rank) - below
        return step * self.stop if self.measure.family == "err" else step

    @cached_property
    def terms(self) -> Terms:
        """The coefficients of h."""
        others = max(0, self.m - 2)
        family = self.measure.family
        if family == "ndcg":
            return Terms(by_total=self._of_inverse_ideal(others))
        if family == "auc":
            return Terms(by_total=_differences([Fraction(1, s * (self.m - s)) for s in range(1, others + 2)]))
        if family == "average_precision":
            return Terms(by_sizes=_mixed_differences(others))
        if family == "err":
            return Terms(by_sizes={(a, 0): (-self.stop) ** a for a in range(others + 1)})
        return Terms(by_total={0: Fraction(1)})

    def _of_inverse_ideal(self, others: int) -> dict[int, Fraction]:
        # 1/Z(s) rounded to a fixed number of digits; d differences blow the rounding up to 2^d.
        bits = _FIXED_POINT + 4 * self.m
        ideal, values = Fraction(0), []
        for s in range(1, others + 2):
            ideal += log_discount(s) if s <= self.cutoff else 0
            values.append(Fraction((2**bits * ideal.denominator) // ideal.numerator, 2**bits))
        found = _differences(values)
        for d, value in found.items():
            if abs(value) <= Fraction((self.m + 2) * 2 ** (d + 4), 2**_FIXED_POINT):
                raise Undecided(
                    f"difference {d} of 1/Z for {self.m} items is {float(value):.3g}: too near to zero"
                )
        return found

    def needed(self, boundary: Boundary, a: int, b: int) -> int:
        """The k from which the orders that differ by this swap show x and any a others above and b below together."""
        starts = [sum(self.blocks[:i]) for i in range(len(self.blocks))]
        at = starts.index(boundary.rank) - 1  # x ends this block, y begins the next
        # Items may be shuffled within their blocks: what counts is how many of the lowest block are wanted, at worst.
        for lowest in range(len(self.blocks) - 1, at, -1):
            room = self.blocks[lowest] - (lowest == at + 1)
            if b and room:
                return starts[lowest] + min(b, room)
        return starts[at] + min(a, self.blocks[at] - 1) + 1

    def thresholds(self) -> tuple[int, int]:
        """The smallest k for global, and for local observability."""
        globally = locally = 1
        for boundary in self.boundaries:
            for a, b, _ in self.terms.within(boundary.rank - 1, self.m - boundary.rank - 1):
                globally = max(globally, 1 + a + b)
                locally = max(locally, self.needed(boundary, a, b))
        return globally, max(globally, locally)


def _differences(values: list[Fraction]) -> dict[int, Fraction]:
    row, found = list(values), {}
    for d in range(len(values)):
        if row[0]:
            found[d] = row[0]
        row = [after - before for before, after in pairwise(row)]
    return found


def _mixed_differences(others: int) -> dict[tuple[int, int], Fraction]:
    # h(t, u) = (1 + t) / (1 + t + u): the share of relevant items down to x among all of them, without 1 / rank.
    grid = [[Fraction(1 + t, 1 + t + u) for u in range(others - t + 1)] for t in range(others + 1)]
    found = {}
    for a in range(others + 1):
        for b, value in _differences(grid[0]).items():
            if a + b <= others:
                found[a, b] = value
        grid = [
            [after - before for before, after in zip(row, following, strict=False)]
            for row, following in pairwise(grid)
        ]
    return found
