"""PDGD: learn to rank documents by their features from clicks (Oosterhuis and de Rijke 2018)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankloop.arguments import number, one_of, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.feedback import TopClicks
from rankloop.kernels.descent import AdaptiveState, widen
from rankloop.kernels.elementary import exp
from rankloop.kernels.jit import hot
from rankloop.kernels.plackett_luce import draw_list, suffix_sums, swap_odds, weights_length
from rankloop.kernels.rows import score
from rankloop.rankers.linear import (
    LinearRanker,
    WarmStart,
    check_scaled_weights,
    finite_limits,
    is_adaptive,
    read_start,
)

RATE = 0.3  # of AdaGrad's steps
FIRST = (
    0.3  # squares that each feature is taken to have seen beforehand: without them the first clicks decide
)


class PDGDParams(NamedTuple):
    """How many documents are shown, and the step."""

    n_positions: int
    eta: float
    start: Floats  # the weights before anything was learnt


class PDGDState(NamedTuple):
    """The linear ranker."""

    w: Floats  # weights, by feature
    t: Ints  # rounds learnt


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, line 4: a list from the Plackett-Luce distribution of the scores."""
    scores, weights = scratch[0], scratch[1]
    header, shown, rows = memo
    n, d = context.shape
    m = min(params.n_positions, n)
    score(context, state.w, scores)
    shift, rest = draw_list(scores, n, m, key, 0, weights, items)
    header[0] = m
    header[1] = shift
    header[2] = rest
    for position in range(m):
        item = items[position]
        shown[position] = scores[item]
        for j in range(d):
            rows[position, j] = context[item, j]
    return False


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 1, lines 5-12."""
    header, shown, rows = memo
    step = scratch[2]
    m = int(header[0])
    if gradient_in_scores(shown, m, header[1], header[2], clicks, scratch[3], step):
        for position in range(m):
            size = params.eta * step[position]
            if size != 0.0:
                for j in range(len(state.w)):
                    state.w[j] += size * rows[position, j]
    state.t[0] += 1


@hot
def learn_adaptively(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 1, lines 5-12, with AdaGrad's steps; the scale of a feature is the largest difference within a list."""
    header, shown, rows = memo
    step, gradient, spread = scratch[2], scratch[4], scratch[5]
    m, d = int(header[0]), len(state.w)
    if gradient_in_scores(shown, m, header[1], header[2], clicks, scratch[3], step):
        for j in range(d):
            least = most = total = 0.0
            for position in range(1, m):
                difference = rows[position, j] - rows[0, j]
                least, most = min(least, difference), max(most, difference)
                total += step[position] * difference  # the steps sum to 0
            gradient[j] = total
            spread[j] = most - least
        widen(state.w, params.start, state.scale, spread)
        for j in range(d):
            scale = state.scale[j]
            if scale > 0.0:
                state.squares[j] += gradient[j] * gradient[j]
                length = np.sqrt(state.squares[j] + FIRST * scale * scale)
                state.w[j] += params.eta * gradient[j] / length / scale
    state.t[0] += 1


@hot
def gradient_in_scores(
    shown: Any, m: int, rest_shift: float, rest: float, clicks: Any, scratch: Any, step: Any
) -> bool:
    """The sum over preferences of weight times the gradient of P(preferred before the other), by shown document.

    Returns whether there is any preference. `scratch` has three rows of m + 1 numbers.
    """
    shifts, sums, weights = scratch[0], scratch[1], scratch[2]
    last = m - 1
    while last >= 0 and clicks[last] == 0.0:
        last -= 1
    if last < 0:
        return False
    close = suffix_sums(shown, m, rest_shift, rest, shifts, sums)
    for position in range(m):
        step[position] = 0.0
        weights[position] = exp(shown[position] - shifts[position]) if close else 0.0
    # A user who clicked at `last` saw everything above it, and the next document (section 4.1).
    for better in range(last + 1):
        if clicks[better] == 0.0:
            continue
        for worse in range(min(last + 2, m)):
            if clicks[worse] != 0.0:
                continue
            a, b = min(better, worse), max(better, worse)
            odds = swap_odds(shown, shifts, sums, weights, close, a, b)
            apart = exp(-abs(shown[better] - shown[worse]))
            slope = apart / ((1.0 + apart) * (1.0 + apart))  # of the sigmoid, eq. (5)
            size = slope / (1.0 + odds)  # eq. (8): rho = P(R*) / (P(R) + P(R*))
            step[better] += size
            step[worse] -= size
    return True


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
    learning_rate : str or float, optional
        "adagrad" for steps that follow the gradients and the scale of each feature, or a number, such as the paper's
        0.1, for features of rows no longer than about 1.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    theta: state.w, eta: learning_rate, R: the shown list, R*: the list with two documents exchanged,
    rho: P(R*) / (P(R) + P(R*)).

    Departures
    ----------
    The steps are AdaGrad's by default, with a first sum; units of features have no influence. rho is computed from
    ratios of sums over what is left at each position, so that scores of any size are safe. Both rho and the gradient
    are taken at the scores that the list was drawn by, also where clicks come late.

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
    kernels = RankerKernels(rank, learn)
    params: PDGDParams
    state: Any
    defaults_before: ClassVar[Mapping[int, Mapping[str, Any]]] = {3: {"learning_rate": 0.1}}

    def __init__(
        self,
        *,
        n_features: int,
        n_positions: int = 10,
        learning_rate: str | float = "adagrad",
        warm_start: WarmStart | None = None,
    ) -> None:
        d = self.n_features = whole("n_features", n_features, at_least=1)
        self.feedback = TopClicks(whole("n_positions", n_positions, at_least=1))
        if isinstance(learning_rate, str):
            one_of("learning_rate", learning_rate, ("adagrad",))
        self.adaptive = is_adaptive(learning_rate)
        eta = RATE if isinstance(learning_rate, str) else number("learning_rate", learning_rate, above=0)
        start = read_start(warm_start, d)
        self.params = PDGDParams(n_positions, eta, start)
        self.state = PDGDState(start.copy(), np.zeros(1, np.int64))
        if self.adaptive:
            self.kernels = RankerKernels(rank, learn_adaptively)
            self.state = AdaptiveState(start.copy(), np.zeros(1, np.int64), np.zeros(d), np.zeros(d))

    def order_rest(self, items: Ints, scratch: tuple[Any, ...]) -> None:
        rest = np.sort(items[self.params.n_positions :])
        items[self.params.n_positions :] = rest[np.argsort(-scratch[0][rest], kind="stable")]

    def short_memo(self, memo: Memo) -> Memo:
        return memo[:2]

    def whole_memo(self, memo: Memo, items: Ints, context: Callable[[], Any]) -> Memo:
        if len(memo) != 2:
            return memo
        return (*memo, self.dense_context(context())[items[: len(memo[1])]].astype(np.float64))

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return finite_limits(*memo)

    def check_ticket(self, ranking: Ranking) -> None:
        header = ranking.memo[0]
        if not (header[0] == len(ranking.memo[1]) and header[2] >= 0):
            raise ValueError(f"ranking.memo must be of {len(ranking.memo[1])} items, got {header}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if self.adaptive:
            check_scaled_weights(saved, np.inf, self.params.start)
        elif saved["t"][0] < 0:
            raise ValueError(f"saved state 't' must not be negative, got {saved['t'][0]}")

    def scratch(self, n: int) -> tuple[Any, ...]:
        m = self.feedback.length(n)
        by_feature = (np.empty(self.n_features), np.empty(self.n_features)) if self.adaptive else ()
        return np.empty(n), np.empty(weights_length(n)), np.empty(m), np.empty((3, m + 1)), *by_feature

    def blank_memo(self, n: int) -> Memo:
        m = self.feedback.length(n)
        return np.zeros(3), np.zeros(m), np.zeros((m, self.n_features))

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = 10, n_features: int = 0, **parameters: Any
    ) -> int:
        shown = n_positions or 10
        return 8 * (5 * n_features + 2 * n_items + weights_length(n_items) + shown * (n_features + 6))
