"""PDGD: learn to rank documents by their features from clicks (Oosterhuis and de Rijke 2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import number, whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopClicks
from rankloop.kernels.plackett_luce import room_for_weights
from rankloop.kernels.rankers import pdgd
from rankloop.rankers.linear import LinearRanker, WarmStart, all_finite, read_start


class PDGD(LinearRanker):
    """A linear ranker that draws its lists, and takes a click for a preference over what was seen and not clicked.

    Each list is drawn from the Plackett-Luce distribution of the scores. A user who clicks at some position has seen
    all documents above it and the next one; every clicked document is preferred to every one of those without a click.
    A preference is weighted by how likely the same list with both documents exchanged was, beside the list itself. With
    that weight the positions of the two cancel: documents that are equally relevant are preferred equally often.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector.
    n_positions : int, optional
        How many documents are shown, and may be clicked. A ranking orders all documents; those after the first
        `n_positions` follow by falling score.
    learning_rate : float, optional
        The step, the paper's 0.1 by default.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    theta: state.w, eta: learning_rate, R: the shown list, R*: the list with two documents exchanged,
    rho: P(R*) / (P(R) + P(R*)).

    Departures
    ----------
    rho is computed from ratios of sums over what is left at each position, so that scores of any size are safe. Both
    rho and the gradient are taken at the scores that the list was drawn by, also where clicks come late.

    References
    ----------
    H. Oosterhuis and M. de Rijke, Differentiable unbiased online learning to rank, CIKM 2018, Algorithm 1.

    Examples
    --------
    >>> ranker = PDGD(n_features=3)
    >>> shown = ranker.rank(np.eye(3), rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [0, 1, 0])  # a click on the second document
    >>> bool(ranker.state.w[shown.items[1]] > 0)
    True
    """

    summary = "Observes clicks on the first documents of each list, and learns weights for features."
    kernels = RankerKernels(pdgd.rank, pdgd.learn)
    params: pdgd.PDGDParams
    state: pdgd.PDGDState

    def __init__(
        self,
        *,
        n_features: int,
        n_positions: int = 10,
        learning_rate: float = 0.1,
        warm_start: WarmStart | None = None,
    ) -> None:
        self.n_features = whole("n_features", n_features, at_least=1)
        self.feedback = TopClicks(whole("n_positions", n_positions, at_least=1))
        self.params = pdgd.PDGDParams(n_positions, number("learning_rate", learning_rate, above=0))
        self.state = pdgd.PDGDState(read_start(warm_start, self.n_features), np.zeros(1, np.int64))

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        shown = super().rank(context, rng=rng)
        # Nobody clicks on the others, so the kernel leaves them as they are; whoever asks gets them in order.
        rest = np.sort(shown.items[self.params.n_positions :])
        shown.items[self.params.n_positions :] = rest[np.argsort(-self.scores(context)[rest], kind="stable")]
        return shown

    def short_memo(self, memo: Memo) -> Memo:
        return memo[:2]

    def whole_memo(self, memo: Memo, items: NDArray[np.int64], context: Callable[[], Any]) -> Memo:
        if len(memo) != 2:
            return memo
        return (*memo, self.dense_context(context())[items[: len(memo[1])]].astype(np.float64))

    def check_ticket(self, ranking: Ranking) -> None:
        header = ranking.memo[0]
        good = header[0] == len(ranking.memo[1]) and header[2] >= 0
        if not (good and all_finite(*ranking.memo)):
            raise ValueError(
                f"ranking.memo must be finite, and of {len(ranking.memo[1])} items, got {header}"
            )

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if saved["t"][0] < 0:
            raise ValueError(f"saved state 't' must not be negative, got {saved['t'][0]}")

    def scratch(self, n: int) -> tuple[Any, ...]:
        m = self.feedback.length(n)
        return np.empty(n), np.empty(room_for_weights(n)), np.empty(m), np.empty((3, m + 1))

    def blank_memo(self, n: int) -> Memo:
        m = self.feedback.length(n)
        return np.zeros(3), np.zeros(m), np.zeros((m, self.n_features))

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = 10, n_features: int = 0, **parameters: Any
    ) -> int:
        shown = n_positions or 10
        return 8 * (n_features + 2 * n_items + room_for_weights(n_items) + shown * (n_features + 6))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_features=3)
        yield cls(n_features=9, n_positions=3, learning_rate=1.0)
        yield cls(n_features=1, n_positions=1)
