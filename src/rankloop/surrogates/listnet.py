"""ListNet's cross-entropy between two ways to choose the top item (Cao and others 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankloop.surrogates.surrogate import Floats, Surrogate, softmax


@dataclass(frozen=True)
class ListNet(Surrogate):
    """-sum of P_i(R) log P_i(s) with P = softmax. Listwise and convex; needs the labels of the whole list.

    P takes the labels R as they are, not the gains 2^R - 1 (erratum B19).

    >>> ListNet().gradient([0.0, 0.0], [0, 0])
    array([0., 0.])
    """

    name: ClassVar[str] = "listnet"
    level: ClassVar[int | None] = None
    reason: ClassVar[str] = (
        "each entry divides by the sum of e^R over the whole list, which is not a sum of terms with fewer labels "
        "(Lemma 3); kl is its form without that sum, and needs the label of the top item only"
    )
    convex: ClassVar[bool] = True

    def _value(self, s: Floats, R: Floats) -> Floats:
        shifted = s - s.max(axis=-1, keepdims=True)
        log_P = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        total: Floats = -(softmax(R) * log_P).sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        return softmax(s) - softmax(R)
