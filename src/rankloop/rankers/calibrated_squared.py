"""The squared loss that is calibrated for NDCG, online with full information (2016, section 5)."""

from __future__ import annotations

from typing import ClassVar

from rankloop.kernels.rankers import gradient
from rankloop.rankers.listnet import ListNet


class CalibratedSquared(ListNet):
    """Online gradient descent on ||s - G(R) / Z(R)||^2, with the label of every document revealed.

    Its minimiser sorts documents by their expected share of the ideal DCG, which is optimal for NDCG. No learner that
    sees fewer than all but one of the labels can do the same (2016, Theorem 5.2; erratum B17).

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector.
    learning_rate : str, float or tuple of float, optional
        As of `ListNet`: "adagrad", a number, or a pair (scale, power) for scale * t**-power.
    radius : float, optional
        As of `ListNet`: how large weights may become.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Departures
    ----------
    The steps are AdaGrad's by default, the radius is ours (erratum B11), and ties are broken at random.

    References
    ----------
    P. Ravikumar, A. Tewari and E. Yang, On NDCG consistency of listwise ranking methods, AISTATS 2011.

    Examples
    --------
    >>> import numpy as np
    >>> ranker = CalibratedSquared(n_features=2, learning_rate=0.1)
    >>> shown = ranker.rank(np.eye(2), rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [1.0, 0.0])
    >>> round(float(ranker.state.w[shown.items[0]]), 3)
    0.2
    """

    max_grade = 1000  # 2^1000, even summed over the longest list, is still a finite float64
    surrogate: ClassVar[int] = gradient.CALIBRATED_SQUARED
