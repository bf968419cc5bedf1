"""RankSVM's hinge loss: of two items with different labels, score the better one higher by 1 (Joachims 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankloop.surrogates.surrogate import Floats, Ints, Surrogate, unit


@dataclass(frozen=True)
class RankSVM(Surrogate):
    """Sum over pairs with R_i > R_j of max(0, 1 + s_j - s_i). Pairwise and convex; needs two labels at a time.

    At a kink, 1 + s_j = s_i, the gradient is the paper's subgradient: the pair counts as settled.

    >>> RankSVM().value([0.0, 0.5], [1, 0]), RankSVM().gradient([0.0, 0.5], [1, 0])
    (1.5, array([-1., 1.]))
    """

    name: ClassVar[str] = "ranksvm"
    level: ClassVar[int | None] = 2
    reason: ClassVar[str] = (
        "whether a pair counts depends on both of its labels, so the gradient cannot be written as a sum of terms "
        "with one label each (Lemma 2)"
    )
    convex: ClassVar[bool] = True

    def _value(self, s: Floats, R: Floats) -> Floats:
        hinge = np.maximum(0.0, 1.0 + s[..., None, :] - s[..., :, None])
        total: Floats = np.where(R[..., :, None] > R[..., None, :], hinge, 0.0).sum(axis=(-2, -1))
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        # counts[i, j]: i ought to stand above j, and its score is not yet 1 higher.
        counts = (R[..., :, None] > R[..., None, :]) & (1.0 + s[..., None, :] > s[..., :, None])
        gradient: Floats = counts.sum(axis=-2).astype(np.float64) - counts.sum(axis=-1)
        return gradient

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i, j), (R_i, R_j), m = items, labels, len(s)
        if R_i > R_j and 1.0 + s[j] > s[i]:
            return unit(m, j) - unit(m, i)
        return np.zeros(m)
