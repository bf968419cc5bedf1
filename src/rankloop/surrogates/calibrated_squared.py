"""The squared loss that is calibrated with NDCG: predict normalised gains (Ravikumar and others 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankloop.kernels.discounts import by_logarithm
from rankloop.surrogates.surrogate import Floats, Surrogate, exp2_gain, read


@dataclass(frozen=True)
class CalibratedSquared(Surrogate):
    """||s - G(R) / Z(R)||^2, with G(R) = 2^R - 1 and Z(R) the largest DCG that any order reaches. Convex.

    Its minimiser in expectation ranks optimally for NDCG. It needs the labels of the whole list, and no learner can
    do with much less: see `reason`. Where nothing is relevant, Z(R) = 0 and the target is 0.

    >>> CalibratedSquared().gradient([0.0, 0.0, 0.0], [1, 0, 0])
    array([-2., 0., 0.])
    """

    name: ClassVar[str] = "calibrated_squared"
    level: ClassVar[int | None] = None
    reason: ClassVar[str] = (
        "Z(R) depends on every label. Under top-1 feedback the regret of every learner can grow in proportion to time "
        "(Theorem 5.2), and the same holds for the top k of m items while k <= m - 2, and with three grades for every "
        "k < m (erratum B17)"
    )
    convex: ClassVar[bool] = True

    def target(self, R: ArrayLike) -> Floats:
        """G(R) / Z(R), the scores that fit R exactly.

        Parameters
        ----------
        R : array_like
            The relevance of each item.

        Returns
        -------
        ndarray of float
            One score for each item.
        """
        return self._target(read(R, R)[1])

    def _target(self, R: Floats) -> Floats:
        if (R < 0.0).any():
            raise ValueError(f"relevance must not be negative for {self.name}, got {R.min():g}")
        G = exp2_gain(R)
        Z = (-np.sort(-G, axis=-1) * by_logarithm(R.shape[-1])).sum(axis=-1, keepdims=True)
        target: Floats = np.divide(G, Z, out=np.zeros_like(G), where=Z > 0.0)
        return target

    def _value(self, s: Floats, R: Floats) -> Floats:
        total: Floats = ((s - self._target(R)) ** 2).sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        return 2.0 * (s - self._target(R))
