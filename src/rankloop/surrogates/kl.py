"""The unnormalised Kullback-Leibler divergence: ListNet, changed so that one label at a time is enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankloop.arguments import number
from rankloop.surrogates.surrogate import Floats, Ints, Surrogate, unit


@dataclass(frozen=True)
class KL(Surrogate):
    """Sum of e^R_i (R_i - s_i) - e^R_i + e^s_i. Listwise in origin and convex; one label at a time is enough.

    Parameters
    ----------
    max_exponent : float, optional
        No exponential is taken of more than this, of a score or of a label (erratum B12: a step of size m /
        gamma can carry a score anywhere). Labels above it count as equal to it. Above it e^s goes on as its
        tangent, so the value stays convex and the gradient, then constant, stays its gradient.

    Examples
    --------
    >>> KL().value([1.0, 0.0], [1, 0]), KL().gradient([0.0, 0.0], [0, 1])
    (0.0, array([ 0. , -1.71828183]))
    >>> bool(np.isfinite(KL().gradient([1e5, 0.0], [4, 0])).all())
    True
    """

    max_exponent: float = 20.0

    name: ClassVar[str] = "kl"
    level: ClassVar[int | None] = 1
    reason: ClassVar[str] = (
        "its gradient e^s - e^R is a sum over items of terms with one label each (section 4.1)"
    )
    convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number("max_exponent", self.max_exponent, above=0, at_most=300)

    def _exp(self, v: Floats) -> Floats:
        return np.exp(np.minimum(v, self.max_exponent))

    def _value(self, s: Floats, R: Floats) -> Floats:
        labels = np.minimum(R, self.max_exponent)
        tangent = math.exp(self.max_exponent) * np.maximum(s - self.max_exponent, 0.0)
        terms = self._exp(R) * (labels - s - 1.0) + self._exp(s) + tangent
        total: Floats = terms.sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        return self._exp(s) - self._exp(R)

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i,) = items
        h: Floats = (self._exp(s[items]) - self._exp(labels)) * unit(len(s), i)
        return h
