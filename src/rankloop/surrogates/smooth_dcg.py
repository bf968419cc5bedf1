"""SmoothDCG@1: the gain of the top item, with a soft choice of who is on top (Chapelle and Wu 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankloop.arguments import number
from rankloop.surrogates.surrogate import Floats, Ints, Surrogate, exp2_gain, softmax, unit


@dataclass(frozen=True)
class SmoothDCG(Surrogate):
    """Sum of q_i (2^R_i - 1) with q = softmax(s / epsilon). A gain, and not convex; one label at a time is enough.

    The paper lists it among losses; it is the expected gain of the top item, so climb it (erratum B3).

    Parameters
    ----------
    epsilon : float, optional
        How soft the choice is. As it falls to 0 the value becomes the DCG@1 of the scores, and the gradient
        vanishes wherever one score leads by a few epsilon. The paper fixes 0.01, which saturates at once for
        scores of ordinary size; the default here is 1 (erratum B4).

    Examples
    --------
    >>> SmoothDCG().value([0.0, 0.0], [1, 0]), SmoothDCG().gradient([0.0, 0.0], [1, 0])
    (0.5, array([ 0.25, -0.25]))
    >>> SmoothDCG(epsilon=1e-5).value([1.0, 0.0], [1, 0])
    1.0
    """

    epsilon: float = 1.0

    name: ClassVar[str] = "smooth_dcg"
    level: ClassVar[int | None] = 1
    reason: ClassVar[str] = (
        "its gradient is linear in the gains 2^R_i - 1 of the single items (section 4.1.1)"
    )
    convex: ClassVar[bool] = False
    is_gain: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number("epsilon", self.epsilon, above=0)

    def _softmax(self, s: Floats) -> Floats:
        # The lead over the best score is taken before dividing, so that even s / epsilon need not be finite.
        with np.errstate(over="ignore"):  # -inf stands for a weight of 0
            return softmax((s - s.max(axis=-1, keepdims=True)) / self.epsilon)

    def _value(self, s: Floats, R: Floats) -> Floats:
        total: Floats = (self._softmax(s) * exp2_gain(R)).sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        q, G = self._softmax(s), exp2_gain(R)
        gradient: Floats = q * (G - (q * G).sum(axis=-1, keepdims=True)) / self.epsilon
        return gradient

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i,), q = items, self._softmax(s)
        h: Floats = exp2_gain(labels) * q[i] * (unit(len(s), i) - q) / self.epsilon
        return h
