"""FTPL: follow the perturbed leader with full information (Kalai and Vempala 2005)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import epsilon as read_epsilon
from rankloop.arguments import whole
from rankloop.base import Floats, Ints, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import FullRelevance
from rankloop.kernels import sorting
from rankloop.kernels.jit import hot
from rankloop.kernels.measures import exp2_gain, gain, is_binary
from rankloop.kernels.random import uniform
from rankloop.kernels.sorting import by_falling_score
from rankloop.measures import Measure
from rankloop.ranges import Between, Range
from rankloop.rankers.candidates import SumsByItem
from rankloop.rankers.constants import constants_of, with_all_labels
from rankloop.servable import carried_sums


class FTPLParams(NamedTuple):
    """The measure's gain, and how far the perturbations reach: 1/epsilon = reach * sqrt(rounds)."""

    reach: float  # in units of the square root of the rounds
    horizon: int  # the rounds, or 0 for those so far
    exponential: bool  # whether a gain is 2^r - 1
    kind: int  # which gain, where it is divided by a number that depends on all labels: of NDCG or of AUC
    discount: Floats  # by position, which NDCG's divisor needs


class FTPLState(NamedTuple):
    """What users wanted so far."""

    t: Ints  # rounds learnt
    r_sum: Floats  # by item: its summed (transformed) relevance


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """M(r_{1:t} + p_t), p_t uniform in [0, 1/epsilon]^m."""
    scores, sort_scratch = scratch
    reach = params.reach * np.sqrt(params.horizon if params.horizon > 0 else state.t[0] + 1)
    for i in range(len(items)):
        scores[i] = state.r_sum[i] + reach * uniform(key, i)
    by_falling_score(scores, len(items), items, sort_scratch)
    return False


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, labels: Any
) -> None:
    """r_{1:t} = r_{1:t-1} + r_t."""
    state.t[0] += 1
    exponential = params.exponential and not is_binary(labels)
    for position in range(len(items)):
        relevance = labels[position]
        state.r_sum[items[position]] += exp2_gain(relevance) if exponential else relevance


@hot
def learn_normalised(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, labels: Any
) -> None:
    """g_{1:t} = g_{1:t-1} + g(r_t), where g divides by what the best order is worth (NDCG), or by the pairs (AUC)."""
    gains = scratch[0]
    state.t[0] += 1
    gain(params.kind, labels, params.discount, gains)
    for position in range(len(items)):
        state.r_sum[items[position]] += gains[position]


class FTPL(SumsByItem):
    """Follow the perturbed leader with full information: what RTop-1F could do if every label were revealed.

    Each round shows the items by their summed relevance plus a fresh perturbation. Regret O(sqrt T). For NDCG and AUC
    it sums what each item adds to the measure: its gain divided by Z(r), or by the number of pairs.

    Parameters
    ----------
    n_items : int
        How many items there are, m.
    horizon : int, optional
        How many rounds will be played, T; None takes the rounds so far, so that the perturbation grows.
    measure : str or Measure, optional
        "sum_loss", "pairwise_loss", "dcg", "precision@k", "ndcg" or "auc".
    max_grade : int, optional
        The largest relevance that can come back.
    epsilon : float, optional
        The inverse of the perturbation's reach, instead of 1 / sqrt(m T) (for NDCG and AUC sqrt(D / (R A T))); needs a
        horizon.

    Notation
    --------
    r_{1:t}: state.r_sum, epsilon: epsilon, M(y): the items sorted by falling y.

    Departures
    ----------
    None with a horizon. Without one, 1/epsilon = sqrt(m t), the usual anytime choice. NDCG and AUC are
    not in the paper.

    References
    ----------
    A. Kalai and S. Vempala, Efficient algorithms for online decision problems, JCSS 2005; as used in S. Chaudhuri
    and A. Tewari, AISTATS 2015, section 10 and appendix 13.2.

    Examples
    --------
    >>> ranker = FTPL(n_items=3, horizon=1000)
    >>> shown = ranker.rank(rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [1.0, 0.0, 0.0])  # by position
    >>> int(ranker.state.r_sum[shown.items[0]])
    1
    """

    summary = "Observes the relevance of every item, and ranks by perturbed sums."
    kernels = RankerKernels(rank, learn)
    n_items: int
    max_grade: int

    def __init__(
        self,
        *,
        n_items: int,
        horizon: int | None = None,
        measure: str | Measure = "dcg",
        max_grade: int = 1,
        epsilon: float | None = None,
    ) -> None:
        self.n_items = self.n_positions = whole("n_items", n_items, at_least=1)
        self.learnable = with_all_labels(measure, max_grade=max_grade, n_items=self.n_items)
        self.max_grade = max_grade
        self.horizon = None if horizon is None else whole("horizon", horizon, at_least=1)
        if self.horizon is not None and self.horizon >= 1 << 62:
            raise ValueError(f"horizon must be below 2**62, got {horizon}")
        self.feedback = FullRelevance()
        D, R, A = constants_of(self.learnable, self.n_items)
        # sqrt(R A / D) for sums over items
        reach = self.learnable.largest_gain * float(np.sqrt(self.n_items))
        discount = np.empty(0)
        if self.learnable.normalised:
            self.kernels = RankerKernels(rank, learn_normalised)
            reach, discount = float(np.sqrt(R * A / D)), self.learnable.measure.discount(self.n_items)
        if epsilon is not None:
            if self.horizon is None:
                raise ValueError("epsilon needs a horizon, got horizon=None")
            reach = 1 / read_epsilon("epsilon", epsilon) / float(np.sqrt(self.horizon))
        self.params = FTPLParams(
            reach, self.horizon or 0, self.learnable.exponential, self.learnable.measure.kind, discount
        )
        self.state = FTPLState(np.zeros(1, np.int64), np.zeros(self.n_items))

    def tunable(self) -> Mapping[str, Range]:
        if self.horizon is None:
            return {}
        epsilon = 1.0 / (self.params.reach * float(np.sqrt(self.horizon)))
        return {"epsilon": Between(0.1 * epsilon, 30.0 * epsilon)}

    def scratch(self, n: int) -> tuple[Any, ...]:
        return np.empty(n), sorting.scratch(n)

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        if self.learnable.normalised:
            given = self.feedback.check(feedback, len(ranking.items))
            taken = given <= self.max_grade if self.learnable.exponential else np.isin(given, (0.0, 1.0))
            if not taken.all():  # the divisor would be of another scale, or negative
                raise ValueError(
                    f"feedback must be relevance up to {self.max_grade} for {self.learnable.measure.name}, got {given}"
                )
        super().learn(ranking, feedback)

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        self.state.r_sum[:] = carried_sums(old.state.r_sum, origin)
        self.state.t[:] = old.state.t
        self.carry_missed(old, origin)

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        self.put_back(self.state.r_sum, part.state.r_sum - self.state.r_sum[items], items)
        self.state.t[0] += 1

    def learn_shown(self, items: Ints, feedback: Any) -> bool:
        """Learns: every label is revealed, whoever chose the order."""
        self.learn(Ranking(items, None, ()), feedback)
        return True

    def current(self, context: Any = None) -> Ints:
        return np.argsort(-self.state.r_sum, kind="stable")

    def regret_bound(self) -> float:
        """D / epsilon + epsilon R A T, with the paper's epsilon 2 sqrt(D R A T) (2015, appendix 13.2, equation 11).

        >>> round(FTPL(n_items=10, horizon=10_000, measure="dcg").regret_bound())
        2874
        """
        if self.horizon is None:
            raise ValueError("regret_bound needs a horizon, got horizon=None")
        D, R, A = constants_of(self.learnable, self.n_items)
        reach = self.params.reach * np.sqrt(self.horizon)  # 1 / epsilon
        return float(D * reach + R * A * self.horizon / reach)

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, **parameters: Any) -> int:
        return 16 * n_items + sorting.scratch_bytes(n_items)
