"""P2LinRank: documents from clicks, by several linear models that saw perturbed clicks (Jia and Wang 2022)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import number, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.feedback import TopClicks
from rankloop.kernels import sorting
from rankloop.kernels.elementary import exp
from rankloop.kernels.jit import hot
from rankloop.kernels.random import below
from rankloop.kernels.rows import score
from rankloop.kernels.sorting import by_falling_score
from rankloop.kernels.vectors import dot
from rankloop.rankers.linear import LinearRanker, WarmStart, check_scaled_weights, finite_limits, read_start
from rankloop.rankers.linear_bandits import normal
from rankloop.rankers.pdgd import FIRST, RATE


class P2LinRankParams(NamedTuple):
    """How many documents are shown, and the perturbations."""

    n_positions: int
    noise: float  # nu, the standard deviation of a perturbation
    start: Floats  # the weights before anything was learnt


class P2LinRankState(NamedTuple):
    """The linear models."""

    w: Floats  # their mean, by feature
    t: Ints  # rounds learnt
    models: Floats  # weights by model and feature
    squares: Floats  # summed squares of each model's gradient, by feature
    scale: Floats  # the largest spread within a list, by feature


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """At each position one, drawn evenly, of those that no document left is above for certain."""
    scores, beaten, order, sort_scratch = scratch[0], scratch[1], scratch[2], scratch[3]
    header, rows = memo
    n, d = context.shape
    m = min(params.n_positions, n)
    for model in range(len(state.models)):
        score(context, state.models[model], scores[model])
    for i in range(n):
        beaten[i] = 0
    for i in range(n):
        for j in range(i):
            beaten[j] += certain(scores, i, j)
            beaten[i] += certain(scores, j, i)
    explored = False
    for position in range(m):
        n_free = 0
        for i in range(n):
            n_free += beaten[i] == 0
        explored |= n_free > 1
        place = below(key, position, n_free)
        chosen = 0
        for i in range(n):
            if beaten[i] == 0:
                if place == 0:
                    chosen = i
                place -= 1
        beaten[chosen] = -1  # shown
        items[position] = chosen
        for i in range(n):
            if beaten[i] > 0:
                beaten[i] -= certain(scores, chosen, i)
        for j in range(d):
            rows[position, j] = context[chosen, j]
    header[0], header[1] = key, np.uint64(m)
    # Nobody clicks on the others: by the mean of the models.
    score(context, state.w, scores[0])
    by_falling_score(scores[0], n, order, sort_scratch)
    position = m
    for place in range(n):
        if beaten[order[place]] >= 0:
            items[position] = order[place]
            position += 1
    return explored


@hot
def certain(scores: Any, i: int, j: int) -> int:
    """1 if every model has document i above document j, else 0."""
    for model in range(len(scores)):
        if not scores[model, i] > scores[model, j]:
            return 0
    return 1


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Each model takes one step on all preferences, with perturbations of its own."""
    header, rows = memo
    shown, step, gradient, spread = scratch[4], scratch[5], scratch[6], scratch[7]
    m, d, n_models = int(header[1]), len(state.w), len(state.models)
    last = m - 1
    while last >= 0 and clicks[last] == 0.0:
        last -= 1
    # A user who clicked at `last` saw everything above it, and the next document.
    seen = min(last + 2, m) if last >= 0 else 0
    n_clicked = 0
    for position in range(seen):
        n_clicked += clicks[position] != 0.0
    if 0 < n_clicked < seen:
        measure_spread(rows, m, spread)
        rescale(state, params.start, spread)
        drawn = m  # numbers of the key, by `rank`
        for model in range(n_models):
            w = state.models[model]
            for position in range(seen):
                shown[position] = dot(rows[position], w)
                step[position] = 0.0
            for better in range(last + 1):
                if clicks[better] == 0.0:
                    continue
                for worse in range(seen):
                    if clicks[worse] != 0.0:
                        continue
                    size = doubt(shown[better] - shown[worse]) + params.noise * normal(header[0], drawn)
                    drawn += 2
                    step[better] += size
                    step[worse] -= size
            for j in range(d):
                gradient[j] = 0.0
            for position in range(seen):
                for j in range(d):
                    gradient[j] += step[position] * (rows[position, j] - rows[0, j])  # the steps sum to 0
            climb(w, gradient, state.squares[model], state.scale)
        for j in range(d):
            total = 0.0
            for model in range(n_models):
                total += state.models[model, j]
            state.w[j] = total / n_models
    state.t[0] += 1


@hot
def doubt(lead: float) -> Any:
    """1 - sigma(lead), without overflow."""
    apart = exp(-abs(lead))
    return apart / (1.0 + apart) if lead > 0.0 else 1.0 / (1.0 + apart)


@hot
def measure_spread(rows: Any, m: int, spread: Any) -> None:
    """The largest difference of each feature within the shown list."""
    for j in range(len(spread)):
        least = most = rows[0, j]
        for position in range(1, m):
            least, most = min(least, rows[position, j]), max(most, rows[position, j])
        spread[j] = most - least


@hot
def rescale(state: Any, start: Any, spread: Any) -> None:
    """Where a feature is spread wider than ever, what was learnt of it shrinks as its scale grows."""
    for j in range(len(spread)):
        if spread[j] > state.scale[j]:
            shrink = state.scale[j] / spread[j]
            for model in range(len(state.models)):
                state.models[model, j] = start[j] + (state.models[model, j] - start[j]) * shrink
            state.scale[j] = spread[j]


@hot
def climb(w: Any, gradient: Any, squares: Any, scale: Any) -> None:
    """One step of AdaGrad along the gradient."""
    for j in range(len(w)):
        if scale[j] > 0.0:
            squares[j] += gradient[j] * gradient[j]
            length = np.sqrt(squares[j] + FIRST * scale[j] * scale[j])
            w[j] += RATE * gradient[j] / length / scale[j]


class P2LinRank(LinearRanker):
    """Several linear models learn from perturbed clicks; where they all agree the list follows them, else it is drawn.

    Each model learns from the same preferences, clicked over seen and not clicked, but to every preference it adds
    normal noise of its own. A document is above another for certain if every model says so. A list is drawn from the
    top: one of those documents, each equally likely, that no document left is above for certain. So it explores pairs
    whose order is open and no others, and neither confidence sets nor an inverse matrix are needed.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector, d.
    n_positions : int, optional
        How many documents are shown, and may be clicked. A ranking orders all documents; those after the first
        `n_positions` follow by the mean score.
    n_models : int, optional
        How many models, N. More of them explore more.
    noise : float, optional
        The standard deviation nu of a perturbation; a preference is 1.
    warm_start : array_like or FittedRanker, optional
        The weights that all models begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    f^(n): state.models[n], N: n_models, nu: noise.

    Departures
    ----------
    The paper trains every model anew on all clicks in each round; here each takes one step of AdaGrad a round, on the
    preferences of that round, and there is no regularisation. So the paper's bound on the regret is not proved for it.

    References
    ----------
    Y. Jia and H. Wang, Scalable exploration for neural online learning to rank with perturbed feedback, SIGIR 2022.

    Examples
    --------
    >>> ranker = P2LinRank(n_features=3)
    >>> shown = ranker.rank(np.eye(3), rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [0, 1, 0])  # a click on the second document
    >>> bool(ranker.state.w[shown.items[1]] > ranker.state.w[shown.items[0]])
    True
    """

    summary = "Observes clicks on the first documents of each list, and explores where its models disagree."
    kernels = RankerKernels(rank, learn)
    params: P2LinRankParams
    state: P2LinRankState

    def __init__(
        self,
        *,
        n_features: int,
        n_positions: int = 10,
        n_models: int = 5,
        noise: float = 0.1,
        warm_start: WarmStart | None = None,
    ) -> None:
        d = self.n_features = whole("n_features", n_features, at_least=1)
        self.feedback = TopClicks(whole("n_positions", n_positions, at_least=1))
        self.n_models = whole("n_models", n_models, at_least=1)
        start = read_start(warm_start, d)
        self.params = P2LinRankParams(self.feedback.k, number("noise", noise, at_least=0), start)
        models = np.tile(start, (self.n_models, 1))
        self.state = P2LinRankState(
            start.copy(), np.zeros(1, np.int64), models, np.zeros_like(models), np.zeros(d)
        )

    def short_memo(self, memo: Memo) -> Memo:
        return memo[:1]

    def whole_memo(self, memo: Memo, items: Ints, context: Callable[[], Any]) -> Memo:
        if len(memo) != 1:
            return memo
        shown = items[: self.feedback.length(len(items))]
        return (*memo, self.dense_context(context())[shown].astype(np.float64))

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return finite_limits(*memo[1:])

    def check_ticket(self, ranking: Ranking) -> None:
        shown = self.feedback.length(len(ranking.items))
        if ranking.memo[0][1] != shown:
            raise ValueError(f"ranking.memo must be of {shown} items, got {ranking.memo[0]}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        for model, squares in zip(saved["models"], saved["squares"], strict=True):
            one = {"t": saved["t"], "w": model, "squares": squares, "scale": saved["scale"]}
            check_scaled_weights(one, np.inf, self.params.start)

    def scratch(self, n: int) -> tuple[Any, ...]:
        m, d = self.feedback.length(n), self.n_features
        by_document = np.empty((self.n_models, n)), np.empty(n, np.int64), np.empty(n, np.int64)
        return *by_document, sorting.scratch(n), np.empty(m), np.empty(m), np.empty(d), np.empty(d)

    def blank_memo(self, n: int) -> Memo:
        return np.empty(2, np.uint64), np.zeros((self.feedback.length(n), self.n_features))

    @classmethod
    def bytes_for(
        cls,
        *,
        n_items: int = 0,
        n_positions: int | None = 10,
        n_features: int = 0,
        n_models: int = 5,
        **parameters: Any,
    ) -> int:
        by_list = 8 * (n_models + 2) * n_items + sorting.scratch_bytes(n_items)
        return 8 * ((2 * n_models + 5) * n_features + (n_positions or 10) * (n_features + 2)) + by_list
