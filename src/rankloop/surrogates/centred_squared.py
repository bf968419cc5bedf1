"""The squared loss of differences from the mean of the list: the level of scores and labels does not matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankloop.surrogates.surrogate import Floats, Ints, Surrogate, unit


@dataclass(frozen=True)
class CentredSquared(Surrogate):
    """||(s - mean of s) - (R - mean of R)||^2. Listwise and convex; one label at a time is enough.

    The squared loss asks scores to equal labels, which costs a linear ranker its weights where labels are high or low
    in a whole list. An order depends on differences alone, and so does this loss: it is half of the mean over j of
    the sum over i of ((s_i - s_j) - (R_i - R_j))^2.

    >>> CentredSquared().value([5.0, 4.0], [1, 0]), CentredSquared().gradient([0.0, 0.0], [1, 0])
    (0.0, array([-1.,  1.]))
    """

    name: ClassVar[str] = "centred_squared"
    level: ClassVar[int | None] = 1
    reason: ClassVar[str] = (
        "its gradient is the sum over items of 2(s_i - R_i)(e_i - 1/m), terms with one label each"
    )
    convex: ClassVar[bool] = True

    def _value(self, s: Floats, R: Floats) -> Floats:
        gap = s - R
        total: Floats = ((gap - gap.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        gap = s - R
        gradient: Floats = 2.0 * (gap - gap.mean(axis=-1, keepdims=True))
        return gradient

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i,), (R_i,), m = items, labels, len(s)
        h: Floats = 2.0 * (s[i] - R_i) * (unit(m, i) - 1.0 / m)
        return h
