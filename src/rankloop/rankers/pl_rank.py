"""PL-Rank: the gradient of a Plackett-Luce policy's expected NDCG, online with full information (Oosterhuis 2022)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import whole
from rankloop.base import Floats, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels import descent, sorting
from rankloop.kernels.descent import RATE, ideal, project, widen_scales
from rankloop.kernels.elementary import exp, log2, power
from rankloop.kernels.jit import apart, hot
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.plackett_luce import draw_list, weights_length
from rankloop.kernels.rows import combine, score
from rankloop.kernels.sorting import greedy_order
from rankloop.rankers.full_information import ListNet
from rankloop.rankers.linear import WarmStart

_DEEPEST = -600.0  # scores further below the highest count as this far below


class PLRankParams(NamedTuple):
    """How many lists are drawn, how deep they are judged, and the step; a step of 0 is AdaGrad's."""

    n_samples: int
    cutoff: int
    radius: float
    eta: float
    eta_power: float
    start: Floats  # the weights before anything was learnt


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """By falling score; and the key of the lists that will be drawn to learn from."""
    score(context, state.w, scratch[0])
    greedy_order(scratch[0], context.shape[0], key, 0, items, scratch[1])
    memo[0][0] = key
    return False


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, labels: Any
) -> None:
    """A step along the estimated gradient of the expected NDCG."""
    scores, _, gains, slope, gradient, least, most, order, draw_scratch = scratch
    n = context.shape[0]
    score(context, state.w, scores)
    for position in range(n):
        gains[items[position]] = labels[position]
    best = ideal(gains, n, params.cutoff)
    for i in range(n):
        gains[i] = exp2_gain(gains[i]) / best if best > 0.0 else 0.0
    pl_rank_3(scores, gains, n, params.cutoff, params.n_samples, memo[0][0], order, draw_scratch, slope)
    for i in range(n):
        slope[i] = -slope[i]
    combine(context, slope, gradient)
    if params.eta > 0.0:
        eta = params.eta * power(float(state.t[0] + 1), -params.eta_power)
        for j in range(len(gradient)):
            state.w[j] -= eta * gradient[j]
        project(state.w, params.radius)
    else:
        widen_scales(context, state.w, params.start, state.scale, least, most)
        descent.descend(state.w, params.start, gradient, state.squares, state.scale, RATE, params.radius)
    state.t[0] += 1


@apart
def pl_rank_3(
    scores: Any,
    gains: Any,
    n: int,
    cutoff: int,
    n_samples: int,
    key: Any,
    order: Any,
    scratch: Any,
    slope: Any,
) -> None:
    """Into `slope`: the mean over drawn lists of eq. (13), one number a document; DCG is cut off after `cutoff`.

    `scratch` has five rows of `weights_length(n)` numbers.
    """
    flat, weights, exps, left, reward = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    highest = scores[0]
    for i in range(1, n):
        highest = max(highest, scores[i])
    for i in range(n):
        flat[i] = max(scores[i] - highest, _DEEPEST)
        exps[i] = exp(flat[i])
        slope[i] = 0.0
    m = min(cutoff, n)
    for sample in range(n_samples):
        shift, rest = draw_list(flat, n, m, key, n + sample * m, weights, order)
        _suffixes(gains, exps, order, m, rest * exp(shift), left, reward)
        # Summed over positions so far: the discount, and the reward from there on, over what is left.
        direct, risk = 0.0, 0.0
        for position in range(m):
            item = order[position]
            direct += 1.0 / (log2(position + 2.0) * left[position])
            risk += reward[position] / left[position]
            slope[item] += reward[position + 1] + exps[item] * (gains[item] * direct - risk)
        for position in range(m, n):
            item = order[position]
            slope[item] += exps[item] * (gains[item] * direct - risk)
    for i in range(n):
        slope[i] /= n_samples


@hot
def _suffixes(gains: Any, exps: Any, order: Any, m: int, rest: float, left: Any, reward: Any) -> None:
    # From each position on: the exponentials of what is not placed yet, and the discounted gains.
    left[m] = rest
    reward[m] = 0.0
    for position in range(m - 1, -1, -1):
        item = order[position]
        left[position] = left[position + 1] + exps[item]
        reward[position] = reward[position + 1] + gains[item] / log2(position + 2.0)


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

    kernels = RankerKernels(rank, learn)
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
        self.kernels = RankerKernels(rank, learn)
        reach, steps = self.params.radius, (self.params.eta, self.params.eta_power)
        start = self.params.start
        self.params = PLRankParams(samples, k, reach, *steps, start)
        d = self.n_features
        self.state = descent.AdaptiveState(start.copy(), np.zeros(1, np.int64), np.zeros(d), np.zeros(d))

    def scratch(self, n: int) -> tuple[Any, ...]:
        by_feature = tuple(np.empty(self.n_features) for _ in range(3))
        scratch = np.empty((5, weights_length(n)))
        return (
            *(np.empty(n), sorting.scratch(n), np.empty(n), np.empty(n)),
            *by_feature,
            np.empty(n, np.int64),
            scratch,
        )

    def blank_memo(self, n: int) -> Memo:
        return (np.zeros(1, np.uint64),)  # the key of the lists that are drawn

    def check_ticket(self, ranking: Ranking) -> None:
        return

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, n_features: int = 0, **parameters: Any) -> int:
        return 64 * n_features + 40 * n_items + 40 * weights_length(n_items) + sorting.scratch_bytes(n_items)
