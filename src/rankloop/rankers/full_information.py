"""Rankers that see every label, the yardstick of those that see few: ListNet, and CalibratedSquared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from rankloop.arguments import number, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.feedback import FullRelevance
from rankloop.kernels import descent, sorting
from rankloop.ranges import Between, Falling, OneOf, Range
from rankloop.rankers.linear import (
    LinearRanker,
    Schedule,
    WarmStart,
    check_scaled_weights,
    check_weights,
    finite_limits,
    is_adaptive,
    read_start,
    read_steps,
)


class ListNet(LinearRanker):
    """Online gradient descent on ListNet's cross-entropy, with the label of every document revealed.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector.
    learning_rate : str, float or tuple of float, optional
        "adagrad" for steps that follow the gradients and the scale of each feature; a number; or a pair
        (scale, power) for scale * t**-power, such as the paper's (0.01, 0.5).
    radius : float, optional
        With "adagrad" no weight is farther from its start, times the scale of its feature, 100 by default; otherwise
        the weights w stay in the ball of this radius, 10 by default.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    The gradient in the scores is softmax(s) - softmax(R), of R itself (erratum B19).

    Departures
    ----------
    The steps are AdaGrad's by default, the radius is ours (erratum B11), and ties are broken at random.

    References
    ----------
    Z. Cao et al., Learning to rank: from pairwise approach to listwise approach, ICML 2007; online, as in
    S. Chaudhuri and A. Tewari, AISTATS 2016, section 6.

    Examples
    --------
    >>> ranker = ListNet(n_features=2)
    >>> shown = ranker.rank(np.eye(2), rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [0.0, 3.0])
    >>> bool(ranker.state.w[shown.items[1]] > 0)
    True
    """

    summary = "Observes the relevance of every document, and learns weights for features."
    kernels = RankerKernels(descent.rank, descent.learn)
    keeps_context = True
    takes_sparse = True
    defaults_before: ClassVar[Mapping[int, Mapping[str, Any]]] = {1: {"learning_rate": (0.01, 0.5)}}
    surrogate: ClassVar[int] = descent.LISTNET

    def __init__(
        self,
        *,
        n_features: int,
        learning_rate: str | float | tuple[float, float] = "adagrad",
        radius: float | None = None,
        warm_start: WarmStart | None = None,
    ) -> None:
        d = self.n_features = whole("n_features", n_features, at_least=1)
        self.adaptive = is_adaptive(learning_rate)
        self.learning_rate = read_steps(learning_rate)
        self.feedback = FullRelevance()
        reach = (100.0 if self.adaptive else 10.0) if radius is None else number("radius", radius, above=0)
        start = read_start(warm_start, d, radius=np.inf if self.adaptive else reach)
        self.params = descent.FullInformationParams(
            self.surrogate, reach, *(self.learning_rate or Schedule(0.0)), start
        )
        self.state: Any = descent.FullInformationState(start.copy(), np.zeros(1, np.int64))
        if self.adaptive:
            self.kernels = RankerKernels(descent.rank, descent.learn_adaptively)
            self.state = descent.AdaptiveState(*self.state, np.zeros(d), np.zeros(d))

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if self.adaptive:
            check_scaled_weights(saved, self.params.radius, self.params.start)
        else:
            check_weights(saved, self.params.radius)

    def tunable(self) -> Mapping[str, Range]:
        return {
            "learning_rate": OneOf("adagrad", Falling(0.01, 100.0, power=1 / 2)),
            "radius": Between(1.0, 1_000.0),
        }

    def scratch(self, n: int) -> tuple[Any, ...]:
        by_feature = tuple(np.empty(self.n_features) for _ in range(3 if self.adaptive else 1))
        return np.empty(n), sorting.scratch(n), np.empty(n), np.empty(n), *by_feature

    def blank_memo(self, n: int) -> Memo:
        return np.empty(n), np.empty(1, np.int64)  # the scores, and how many rounds the weights had learnt

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return finite_limits(memo[0])

    def learn_logged(
        self, items: Ints, feedback: Any, *, propensities: Floats | None = None, features: Any = None
    ) -> None:
        """Learns: every label is revealed, whoever chose the order."""
        drawn = self.rank(features, rng=np.random.default_rng(int(self.state.t[0])))
        self.learn(Ranking(items, None, drawn.memo), feedback)

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, n_features: int = 0, **parameters: Any) -> int:
        return 56 * n_features + 24 * n_items + sorting.scratch_bytes(n_items)


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
    surrogate: ClassVar[int] = descent.CALIBRATED_SQUARED
