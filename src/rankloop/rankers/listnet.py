"""ListNet, online with full information: the baseline for feedback at the top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from rankloop.arguments import number, whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import FullRelevance
from rankloop.kernels import sorting
from rankloop.kernels.rankers import gradient
from rankloop.rankers.linear import LinearRanker
from rankloop.rankers.schedules import check_weights, read_schedule


class ListNet(LinearRanker):
    """Online gradient descent on ListNet's cross-entropy, with the label of every document revealed.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector.
    learning_rate : float or tuple of float, optional
        A number, or a pair (scale, power) for scale * t**-power; the paper's 0.01 t^(-1/2) by default.
    radius : float, optional
        The weights w stay in the ball of this radius.

    Notation
    --------
    The gradient in the scores is softmax(s) - softmax(R), of R itself (erratum B19).

    Departures
    ----------
    None; ties are broken at random, and the radius is ours (erratum B11).

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
    kernels = RankerKernels(gradient.rank, gradient.learn)
    keeps_context = True
    surrogate: ClassVar[int] = gradient.LISTNET

    def __init__(
        self,
        *,
        n_features: int,
        learning_rate: float | tuple[float, float] = (0.01, 0.5),
        radius: float = 10.0,
    ) -> None:
        self.n_features = whole("n_features", n_features, at_least=1)
        self.learning_rate = read_schedule("learning_rate", learning_rate)
        self.feedback = FullRelevance()
        self.params = gradient.FullInformationParams(
            self.surrogate,
            number("radius", radius, above=0),
            self.learning_rate.scale,
            self.learning_rate.power,
        )
        self.state = gradient.FullInformationState(np.zeros(self.n_features), np.zeros(1, np.int64))

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_weights(saved, self.params.radius)

    def scratch(self, n: int) -> tuple[Any, ...]:
        return np.empty(n), sorting.scratch(n), np.empty(n), np.empty(n), np.empty(self.n_features)

    def blank_memo(self, n: int) -> Memo:
        return np.empty(n), np.empty(1, np.int64)  # the scores, and how many rounds the weights had learnt

    def check_ticket(self, ranking: Ranking) -> None:
        if not np.isfinite(ranking.memo[0]).all():
            raise ValueError(f"ranking.memo must be finite scores, got {ranking.memo[0]}")

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return 16 * n_features + 24 * n_items + sorting.scratch_bytes(n_items)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_features=3, learning_rate=1.0)
        yield cls(n_features=1)
