"""MGD: multileave gradient descent (Schuth, Oosterhuis, Whiteson and de Rijke 2016)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import number, whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopClicks
from rankloop.feedback.interleaving.probabilistic import MOST_TAU, TAU
from rankloop.kernels import sorting
from rankloop.kernels.elementary import power
from rankloop.kernels.rankers import mgd
from rankloop.rankers.linear import LinearRanker, WarmStart, read_start
from rankloop.rankers.schedules import check_weights, read_schedule

Steps = float | tuple[float, float]


class MGD(LinearRanker):
    """A linear ranker that tries many directions at once, and goes where users click.

    For each list, candidates w + delta u are drawn around the present weights w, u in random directions. The list is a
    probabilistic multileaving of the present ranker and all candidates. Those that get more credit from the clicks than
    the present ranker win, and w takes a step towards their mean.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector, d.
    n_positions : int, optional
        How many documents of a list users see.
    n_candidates : int, optional
        How many directions each list tries.
    learning_rate : float or tuple of float, optional
        The length of a step, alpha: a number, or a pair (scale, power) for scale * t**-power.
    delta : float, optional
        How far from w a candidate is.
    tau : float, optional
        In a list, a ranker draws a document in proportion to 1 / rank^tau.
    radius : float, optional
        W stays in the ball of this radius; by default it may go anywhere.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    w_t: state.w, alpha (Yue and Joachims: gamma): learning_rate, delta: delta, n: n_candidates, tau: tau.

    Departures
    ----------
    Probabilistic multileaving with credit averaged over assignments, where the paper has team draft: it tells all
    candidates apart. Of the paper's two updates this is mean winner, the better one there. Ties in score are broken at
    random. Credits that differ by less than 1e-9 are equal.

    References
    ----------
    A. Schuth, H. Oosterhuis, S. Whiteson and M. de Rijke, Multileave gradient descent for fast online learning to rank,
    WSDM 2016.

    Examples
    --------
    >>> ranker = MGD(n_features=3, n_candidates=30)
    >>> shown = ranker.rank(np.eye(3), rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [1.0, 0.0, 0.0])  # a click on shown.items[0]
    >>> bool(ranker.state.w[shown.items[0]] > 0)
    True
    """

    no_baselines = "it compares its candidates by clicks on lists that it made of their lists"
    summary = "Observes clicks on documents, and moves its weights towards candidates that win more of them."
    kernels = RankerKernels(mgd.rank, mgd.learn)

    def __init__(
        self,
        *,
        n_features: int,
        n_positions: int = 10,
        n_candidates: int = 9,
        learning_rate: Steps = 0.01,
        delta: float = 1.0,
        tau: float = TAU,
        radius: float | None = None,
        warm_start: WarmStart | None = None,
    ) -> None:
        self.n_features = whole("n_features", n_features, at_least=1)
        self.feedback = TopClicks(whole("n_positions", n_positions, at_least=1))
        self.n_candidates = whole("n_candidates", n_candidates, at_least=1)
        self.learning_rate = read_schedule("learning_rate", learning_rate)
        self.tau = number("tau", tau, above=0, at_most=MOST_TAU)
        self.params = mgd.MGDParams(
            self.n_candidates,
            self.feedback.k,
            number("delta", delta, above=0),
            *self.learning_rate,
            np.inf if radius is None else number("radius", radius, above=0),
        )
        start = read_start(warm_start, self.n_features, radius=self.params.radius)
        self.state = mgd.MGDState(start, np.zeros(1, np.int64))

    def scratch(self, n: int) -> tuple[Any, ...]:
        rankers = self.n_candidates + 1
        weights, by_item = np.empty((rankers, self.n_features)), np.empty((rankers, n))
        by_rank = _weights(self.tau, 1 << max(7, (n - 1).bit_length()))
        return weights, by_item, np.empty(n, np.int64), by_item.copy(), by_rank, sorting.scratch(n)

    def blank_memo(self, n: int) -> Memo:
        shown = self.feedback.length(n)
        return np.empty((self.n_candidates + 1, shown)), np.empty(2, np.uint64)

    def check_ticket(self, ranking: Ranking) -> None:
        worth, header = ranking.memo
        shown = self.feedback.length(len(ranking.items))
        if header[1] != shown or not ((worth >= 0) & (worth <= 1)).all():
            raise ValueError(f"ranking.memo must be shares of credit for {shown} positions, got {worth}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_weights(saved, self.params.radius)

    @classmethod
    def bytes_for(
        cls,
        *,
        n_items: int = 0,
        n_positions: int | None = None,
        n_features: int = 0,
        n_candidates: int = 9,
        **parameters: Any,
    ) -> int:
        rankers = n_candidates + 1 if isinstance(n_candidates, int) else 10
        by_list = 16 * rankers * n_items + 24 * n_items + sorting.scratch_bytes(n_items)
        return 8 * (rankers + 1) * n_features + by_list

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_features=3, n_positions=3, learning_rate=0.5)
        yield cls(
            n_features=4, n_positions=2, n_candidates=2, learning_rate=(0.5, 0.5), delta=0.5, radius=1.0
        )
        yield cls(n_features=1, n_positions=3, n_candidates=1, tau=1.0)


@functools.lru_cache(maxsize=64)
def _weights(tau: float, n: int) -> NDArray[np.float64]:
    # 1 / rank^tau, the same for every list.
    by_rank = np.array([power(rank + 1.0, -tau) for rank in range(n)])
    by_rank.setflags(write=False)
    return by_rank
