"""The squared loss: predict each label on its own (Cossock and Zhang 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankloop.surrogates.surrogate import Floats, Ints, Surrogate, unit


@dataclass(frozen=True)
class Squared(Surrogate):
    """||s - R||^2. Pointwise and convex; one label at a time is enough.

    >>> Squared().value([1.0, 0.0], [2, 0]), Squared().gradient([1.0, 0.0], [2, 0])
    (1.0, array([-2., 0.]))
    """

    name: ClassVar[str] = "squared"
    level: ClassVar[int | None] = 1
    reason: ClassVar[str] = (
        "its gradient 2(s - R) is a sum over items of terms with one label each (section 4.1)"
    )
    convex: ClassVar[bool] = True
    # Section 4.1 keeps 2s and estimates R alone, which is the control variate R_hat = 0 (erratum B6).
    printed_baseline: ClassVar[float | None] = 0.0

    def _value(self, s: Floats, R: Floats) -> Floats:
        total: Floats = ((s - R) ** 2).sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        return 2.0 * (s - R)

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i,), (R_i,) = items, labels
        h: Floats = 2.0 * (s[i] - R_i) * unit(len(s), i)
        return h
