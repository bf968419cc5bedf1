"""Rankers that compare themselves with their neighbours by interleaving: MGD, and DBGD with one neighbour."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import number, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopClicks
from rankloop.feedback.interleaving import MOST_TAU, TAU
from rankloop.kernels import sorting
from rankloop.kernels.descent import project
from rankloop.kernels.elementary import cos_turns, log, power
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import multileave
from rankloop.kernels.random import uniform
from rankloop.kernels.sorting import greedy_order
from rankloop.kernels.vectors import dot
from rankloop.rankers.linear import LinearRanker, WarmStart, check_weights, read_schedule, read_start


@hot
def words(d: int) -> int:
    """How many numbers of a key one direction in d dimensions takes."""
    return d + d % 2


@hot
def direction(key: Any, number: int, out: Any) -> None:
    """Write direction `number` of `key`: normal numbers in pairs (Box and Muller 1958), scaled to length 1."""
    d = len(out)
    first = number * words(d)
    for j in range(0, d, 2):
        radius = np.sqrt(-2.0 * log(1.0 - uniform(key, first + j)))
        angle = uniform(key, first + j + 1)
        out[j] = radius * cos_turns(angle)
        if j + 1 < d:
            out[j + 1] = radius * cos_turns(angle + 0.75)  # the sine
    length = np.sqrt(dot(out, out))
    if length > 0.0:
        for j in range(d):
            out[j] /= length
    else:
        out[0] = 1.0


# Rankers that agree on what was clicked get credits that differ by rounding only; nobody wins by that.
_TIE = 1e-9


class MGDParams(NamedTuple):
    """How many candidates, how far from the weights, and the steps towards those that win."""

    n_candidates: int
    k: int  # documents that users see
    delta: float  # the distance of a candidate
    alpha: float  # the step, times t**-alpha_power
    alpha_power: float
    radius: float  # of the ball that the weights stay in


class MGDState(NamedTuple):
    """The linear ranker."""

    w: Floats  # weights, by feature
    t: Ints  # rounds learnt


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """Multileave the present ranker, number 0, with the candidates."""
    weights, scores, order, left, by_rank, sort_scratch = scratch
    worth, header = memo
    n, d = context.shape
    m = min(params.k, n)
    n_rankers = params.n_candidates + 1
    for ranker in range(1, n_rankers):
        direction(key, ranker - 1, weights[ranker])
    for j in range(d):
        weights[0, j] = state.w[j]
        for ranker in range(1, n_rankers):
            weights[ranker, j] = state.w[j] + params.delta * weights[ranker, j]
    for i in range(n):  # one pass over the features
        for ranker in range(n_rankers):
            scores[ranker, i] = dot(context[i], weights[ranker])
    first = params.n_candidates * words(d)
    for ranker in range(n_rankers - 1, -1, -1):  # the present one last: its order is used below
        greedy_order(scores[ranker], n, key, first + ranker * n, order, sort_scratch)
        for place in range(n):
            left[ranker, order[place]] = by_rank[place]
    multileave(left, n, m, key, first + n_rankers * n, items, worth)
    header[0], header[1] = key, np.uint64(m)
    explored = False
    for position in range(m):
        explored |= items[position] != order[position]
    position = m
    for place in range(n):
        if left[0, order[place]] > 0.0:
            items[position] = order[place]
            position += 1
    return explored


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """One step towards the mean of the candidates that got more credit than the present ranker."""
    weights = scratch[0]
    worth, header = memo
    n_won = 0
    for j in range(len(state.w)):
        weights[0, j] = 0.0
    for ranker in range(1, params.n_candidates + 1):
        lead = 0.0
        for position in range(int(header[1])):
            lead += clicks[position] * (worth[ranker, position] - worth[0, position])
        if lead > _TIE:
            n_won += 1
            direction(header[0], ranker - 1, weights[ranker])
            for j in range(len(state.w)):
                weights[0, j] += weights[ranker, j]
    if n_won > 0:
        step = params.alpha * power(float(state.t[0] + 1), -params.alpha_power) / n_won
        for j in range(len(state.w)):
            state.w[j] += step * weights[0, j]
        project(state.w, params.radius)
    state.t[0] += 1


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
    kernels = RankerKernels(rank, learn)

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
        self.params = MGDParams(
            self.n_candidates,
            self.feedback.k,
            number("delta", delta, above=0),
            *self.learning_rate,
            np.inf if radius is None else number("radius", radius, above=0),
        )
        start = read_start(warm_start, self.n_features, radius=self.params.radius)
        self.state = MGDState(start, np.zeros(1, np.int64))

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
        cls, *, n_items: int = 0, n_features: int = 0, n_candidates: int = 9, **parameters: Any
    ) -> int:
        rankers = n_candidates + 1 if isinstance(n_candidates, int) else 10
        by_list = 16 * rankers * n_items + 24 * n_items + sorting.scratch_bytes(n_items)
        return 8 * (rankers + 1) * n_features + by_list


@functools.lru_cache(maxsize=64)
def _weights(tau: float, n: int) -> Floats:
    # 1 / rank^tau, the same for every list.
    by_rank = np.array([power(rank + 1.0, -tau) for rank in range(n)])
    by_rank.setflags(write=False)
    return by_rank


class DBGD(MGD):
    """A linear ranker that tries one direction at a time, and takes a step where users prefer it.

    For each list, a candidate w + delta u is drawn around the present weights w, u in a random direction. The list is a
    probabilistic interleaving of both. Where the candidate gets more credit from the clicks, w takes a step along u.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector, d.
    n_positions : int, optional
        How many documents of a list users see.
    learning_rate : float or tuple of float, optional
        The length of a step: a number, or a pair (scale, power) for scale * t**-power.
    delta : float, optional
        How far from w the candidate is.
    tau : float, optional
        In a list, a ranker draws a document in proportion to 1 / rank^tau.
    radius : float, optional
        W stays in the ball of this radius; by default it may go anywhere.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    w_t: state.w, gamma: learning_rate, delta: delta, W: the ball of `radius`.

    Departures
    ----------
    The comparison is probabilistic interleaving with credit averaged over assignments; the paper leaves it open. Ties
    in score are broken at random. Credits that differ by less than 1e-9 are equal. By default there is no ball.

    References
    ----------
    Y. Yue and T. Joachims, Interactively optimizing information retrieval systems as a dueling bandits problem,
    ICML 2009, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> ranker = DBGD(n_features=3)
    >>> shown = ranker.rank(np.eye(3), rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [0.0, 0.0, 0.0])  # no click, no preference
    >>> ranker.state.w
    array([0., 0., 0.])
    """

    summary = (
        "Observes clicks on documents, and moves its weights along a random direction where users prefer it."
    )

    def __init__(
        self,
        *,
        n_features: int,
        n_positions: int = 10,
        learning_rate: Steps = 0.01,
        delta: float = 1.0,
        tau: float = TAU,
        radius: float | None = None,
        warm_start: WarmStart | None = None,
    ) -> None:
        super().__init__(
            n_features=n_features,
            n_positions=n_positions,
            n_candidates=1,
            learning_rate=learning_rate,
            delta=delta,
            tau=tau,
            radius=radius,
            warm_start=warm_start,
        )

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, n_features: int = 0, **parameters: Any) -> int:
        return super().bytes_for(n_items=n_items, n_features=n_features, n_candidates=1)
