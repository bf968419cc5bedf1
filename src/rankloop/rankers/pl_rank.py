"""PL-Rank: the gradient of a Plackett-Luce policy's expected NDCG, online with full information (Oosterhuis 2022)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from rankloop.arguments import whole
from rankloop.base import Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels import sorting
from rankloop.kernels.plackett_luce import room_for_weights
from rankloop.kernels.rankers import gradient, pl_rank
from rankloop.rankers.linear import WarmStart
from rankloop.rankers.listnet import ListNet


class PLRank(ListNet):
    """Online gradient ascent on the expected NDCG@k of a Plackett-Luce policy, with every label revealed.

    The policy draws lists, its expected NDCG is smooth in the scores, and PL-Rank-3 estimates the gradient from a few
    drawn lists in time that grows with the number of documents alone. The shown list is by falling score: with full
    information nothing needs to be explored.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector.
    cutoff : int, optional
        The k of NDCG@k.
    n_samples : int, optional
        How many lists are drawn for one step.
    learning_rate : str, float or tuple of float, optional
        As of `ListNet`: "adagrad", a number, or a pair (scale, power) for scale * t**-power.
    radius : float, optional
        As of `ListNet`: how large weights may become.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    m(d): the score of document d, theta_k: 1 / log2(k + 1), rho_d: its gain over the ideal DCG@k, N: n_samples.

    Departures
    ----------
    Steps are AdaGrad's by default and follow one list at a time. A score that is lower than the highest by more than
    600 counts as 600 lower.

    References
    ----------
    H. Oosterhuis, Learning-to-rank at the speed of sampling: Plackett-Luce gradient estimation with minimal
    computational complexity, SIGIR 2022.

    Examples
    --------
    >>> ranker = PLRank(n_features=2)
    >>> shown = ranker.rank(np.eye(2), rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [0.0, 3.0])
    >>> bool(ranker.state.w[shown.items[1]] > 0)
    True
    """

    kernels = RankerKernels(pl_rank.rank, pl_rank.learn)
    max_grade = 1000  # 2^1000, even summed over the longest list, is still a finite float64
    params: Any

    def __init__(
        self,
        *,
        n_features: int,
        cutoff: int = 10,
        n_samples: int = 10,
        learning_rate: str | float | tuple[float, float] = "adagrad",
        radius: float | None = None,
        warm_start: WarmStart | None = None,
    ) -> None:
        k, samples = whole("cutoff", cutoff, at_least=1), whole("n_samples", n_samples, at_least=1)
        super().__init__(
            n_features=n_features, learning_rate=learning_rate, radius=radius, warm_start=warm_start
        )
        self.kernels = RankerKernels(pl_rank.rank, pl_rank.learn)
        reach, steps = self.params.radius, (self.params.eta, self.params.eta_power)
        start = self.params.start
        self.params = pl_rank.PLRankParams(samples, k, reach, *steps, start)
        d = self.n_features
        self.state = gradient.AdaptiveState(start.copy(), np.zeros(1, np.int64), np.zeros(d), np.zeros(d))

    def scratch(self, n: int) -> tuple[Any, ...]:
        by_feature = tuple(np.empty(self.n_features) for _ in range(3))
        room = np.empty((5, room_for_weights(n)))
        return (
            *(np.empty(n), sorting.scratch(n), np.empty(n), np.empty(n)),
            *by_feature,
            np.empty(n, np.int64),
            room,
        )

    def blank_memo(self, n: int) -> Memo:
        return (np.zeros(1, np.uint64),)  # the key of the lists that are drawn

    def check_ticket(self, ranking: Ranking) -> None:
        return

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return (
            64 * n_features + 40 * n_items + 40 * room_for_weights(n_items) + sorting.scratch_bytes(n_items)
        )

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_features=3)
        yield cls(n_features=2, cutoff=2, n_samples=1, learning_rate=(0.5, 0.5))
