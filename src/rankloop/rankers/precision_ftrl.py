"""PrecisionFTRL: the best set of n items from the relevance of the top few, with regret of order sqrt(T).

The value ignores the order within the set, so the set is shown in random order: the first item is then a uniform
draw from it, and the relevance of the first k is an unbiased sample of the set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop import measures
from rankloop.arguments import numbers, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels.elementary import log
from rankloop.kernels.hybrid import entry
from rankloop.kernels.jit import hot
from rankloop.kernels.random import below, shuffle, uniform
from rankloop.measures import Measure
from rankloop.rankers.candidates import SumsByItem, with_newcomers
from rankloop.servable import carried_sums

_ITERATIONS = 200
_CLOSE = 1e-12


class PrecisionParams(NamedTuple):
    """The measure and what is revealed of it."""

    n: int  # items that the measure counts
    k: int  # of them, how many are revealed
    max_grade: float  # the highest grade


class PrecisionState(NamedTuple):
    """The regularised leader."""

    L_hat: Floats  # by item: summed estimates of its loss
    x: Floats  # by item: the chance of being in the set
    level: Floats  # the multiplier of the sum of x
    t: Ints  # rounds learnt


@hot
def solve(L_hat: Any, n: int, c: float, level: float, x: Any) -> float:
    """Write x, the argmin of x . L_hat + c sum(-sqrt(x) + (1 - x) log(1 - x)) with sum n; return the multiplier.

    Newton's steps from `level`, halving where they leave the bracket. The multiplier may be negative: items far ahead
    have L_i + level below zero, and are nearly sure to be in the set.
    """
    m = len(L_hat)
    if n >= m:
        for i in range(m):
            x[i] = 1.0
        return level
    least, most = L_hat[0], L_hat[0]
    for i in range(1, m):
        least, most = min(least, L_hat[i]), max(most, L_hat[i])
    share = n / m
    even = c * (0.5 / np.sqrt(share) + log(1.0 - share))  # where every item has that share
    low, high = even - most, even - least
    level = min(max(level, low), high)
    for _ in range(_ITERATIONS):
        gap, slope = -float(n), 0.0
        for i in range(m):
            own, fall = entry((L_hat[i] + level) / c)
            x[i] = own
            gap += own
            slope += fall / c
        if abs(gap) <= _CLOSE * n:
            break
        if gap > 0.0:
            low = level
        else:
            high = level
        following = level + gap / slope if slope > 0.0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == level:
            break
        level = following
    return level


@hot
def weight(params: Any, t: int) -> Any:
    """The weight c of the regulariser in round t, counted from 1."""
    return np.sqrt(params.n * float(t) / params.k)


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """A set with chances x, by systematic sampling in random order, then both parts of the list shuffled."""
    (order,) = scratch
    m, n = len(items), params.n
    shuffle(key, 1, m, order)
    total = 0.0
    for i in range(m):
        total += state.x[i]
    step = total / n
    mark = uniform(key, 0) * step
    passed, picked, left = 0.0, 0, 0
    least_in, most_out = 1.0, 0.0
    for at in range(m):
        i = order[at]
        passed += state.x[i]
        if picked < n and passed > mark:
            items[picked] = i
            picked += 1
            mark += step
            least_in = min(least_in, state.x[i])
        else:
            left += 1
            items[m - left] = i  # should rounding lose a mark, the last of these completes the set
            most_out = max(most_out, state.x[i])
    _shuffle_part(key, 1 + m, 0, n, items)
    _shuffle_part(key, 1 + 2 * m, n, m, items)
    for position in range(n):
        propensities[position] = state.x[items[position]] / n
    for position in range(n, m):
        propensities[position] = max((1.0 - state.x[items[position]]) / (m - n), 1e-300)
    for place in range(params.k):
        memo[0][place] = state.x[items[place]]
    return least_in < most_out


@hot
def _shuffle_part(key: Any, first: int, start: int, stop: int, items: Any) -> None:
    for i in range(stop - 1, start, -1):
        j = start + below(key, first + i, i - start + 1)
        kept = items[i]
        items[i] = items[j]
        items[j] = kept


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, labels: Any
) -> None:
    """An item of the set is among the first k with chance x_j k / n: its loss counts that much more."""
    for place in range(params.k):
        loss = 1.0 - labels[place] / params.max_grade
        state.L_hat[items[place]] += loss * params.n / (params.k * memo[0][place])
    state.t[0] += 1
    state.level[0] = solve(state.L_hat, params.n, weight(params, state.t[0] + 1), state.level[0], state.x)


class PrecisionFTRL(SumsByItem):
    """Learns which n items to show first, in any order, from the relevance of the first k of them.

    Precision@n does not depend on the order within the first n, so the set is shown in random order: the top item is
    then a uniform draw from the set. Follow the regularised leader with importance weights does the rest. Regret
    O(n sqrt(m T / k)) against any users, O(log T) when users are drawn from one distribution, and no horizon needed.
    RTop1F has T^(2/3) here.

    Parameters
    ----------
    n_items : int
        How many items there are, m.
    measure : str or Measure, optional
        "precision@n".
    k : int, optional
        How many top items reveal their relevance; more than n tell nothing more about the set, and are not
        asked for.
    max_grade : int, optional
        The largest relevance that can come back.

    Notation
    --------
    m: n_items, L_hat: state.L_hat, x: state.x, c_t: sqrt(n t / k).

    Departures
    ----------
    The algorithm is ours: the 2015 paper leaves Precision@k open, Zhang and Tewari (2023) settle the rate with another,
    more general algorithm. The regulariser is the hybrid of Zimmert, Luo and Wei (2019), for sets of n items.

    References
    ----------
    S. Chaudhuri and A. Tewari, Online ranking with top-1 feedback, AISTATS 2015, Result 2.
    J. Zimmert, H. Luo and C.-Y. Wei, Beating stochastic and adversarial semi-bandits optimally and simultaneously,
    ICML 2019.

    Examples
    --------
    >>> ranker = PrecisionFTRL(n_items=10, measure="precision@3")
    >>> shown = ranker.rank(rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [1.0])  # the relevance of shown.items[0]
    >>> float(ranker.state.x.sum().round(9))
    3.0
    """

    n_items: int
    summary = "Observes the relevance of the top items, and draws the set to show first."
    kernels = RankerKernels(rank, learn)
    algorithm_version = 2

    def __init__(
        self, *, n_items: int, measure: str | Measure = "precision@1", k: int = 1, max_grade: int = 1
    ) -> None:
        m = whole("n_items", n_items, at_least=1)
        scored = measures.get(measure).within(m)
        if scored.family != "precision" or scored.cutoff is None:
            raise ValueError(f"measure must be precision@n, whose order does not matter, got {scored.name!r}")
        n = scored.cutoff
        self.n_items = self.n_positions = m
        self.measure = scored
        self.max_grade = whole("max_grade", max_grade, at_least=1)
        k = min(whole("k", k, at_least=1, at_most=m), n)
        self.feedback = TopK(k)
        self.params = PrecisionParams(n, k, float(self.max_grade))
        self.state = PrecisionState(np.zeros(m), np.full(m, n / m), np.zeros(1), np.zeros(1, np.int64))
        solve(self.state.L_hat, n, weight(self.params, 1), 0.0, self.state.x)

    def scratch(self, n: int) -> tuple[Any, ...]:
        return (np.empty(n, np.int64),)

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(self.params.k),)

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def check_ticket(self, ranking: Ranking) -> None:
        chances = ranking.memo[0]
        if not ((chances > 0) & (chances <= 1)).all():
            raise ValueError(f"ranking.memo must hold chances in (0, 1], got {chances}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if saved["t"][0] < 0 or (saved["L_hat"] < 0).any():
            raise ValueError("saved state 't' and 'L_hat' must not be negative")
        x = np.empty(len(saved["x"]))
        c = weight(self.params, int(saved["t"][0]) + 1)
        solve(np.asarray(saved["L_hat"]), self.params.n, c, float(saved["level"][0]), x)
        if not np.allclose(x, saved["x"], rtol=1e-6, atol=1e-9):
            raise ValueError(f"saved state 'x' does not follow from 'L_hat', got {saved['x']}")

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """A new item begins level with the best: with the least loss."""
        self.state.L_hat[:] = -carried_sums(-old.state.L_hat, origin)
        self.state.t[:] = old.state.t
        self.carry_missed(old, origin)
        self._follow()

    def _follow(self) -> None:
        state = self.state
        c = weight(self.params, int(state.t[0]) + 1)
        state.level[0] = solve(state.L_hat, self.params.n, c, state.level[0], state.x)

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        self.put_back(self.state.L_hat, part.state.L_hat - self.state.L_hat[items], items)
        self.state.t[0] += 1
        self._follow()

    def translate(self, ranking: Ranking, before: Ints) -> Ranking | None:
        """With the items that are new at its end, as long as those that reveal their relevance are still there."""
        return with_newcomers(ranking, before, n_items=self.n_items, n_top=self.params.k)

    def current(self, context: Any = None) -> Ints:
        return np.argsort(self.state.L_hat, kind="stable")

    def regret_bound(self, horizon: int, *, gaps: ArrayLike | None = None) -> float:
        """5 n sqrt(m T / k) for T = `horizon`, and of order log T where users stay, times the highest grade.

        Parameters
        ----------
        horizon : int
            The number of rounds, T. No feedback may be late.
        gaps : array_like, optional
            Where each user is drawn from one distribution: by how much the mean label of each of the other m - n items
            is below the least of the n best, divided by the highest grade.

        Returns
        -------
        float
            The bound on the expected regret against the best set, the smaller one of the two with `gaps`.

        Examples
        --------
        >>> ranker = PrecisionFTRL(n_items=10, measure="precision@3")
        >>> round(ranker.regret_bound(10_000)), round(ranker.regret_bound(10**9, gaps=[0.3] * 7))
        (4743, 70938)
        """
        T = whole("horizon", horizon, at_least=1)
        n, k, max_grade = self.params
        bound = float(5 * n * np.sqrt(self.n_items * T / k) * max_grade)
        if gaps is None:
            return bound
        differences = numbers("gaps", gaps)
        if differences.shape != (self.n_items - n,) or not ((differences > 0) & (differences <= 1)).all():
            raise ValueError(f"gaps must be {self.n_items - n} numbers above 0 and at most 1, got {gaps!r}")
        steep = 6.24 + 0.52 * np.log(n)  # B on the page of this ranker, and its first rounds
        early = 10 * n * np.sqrt(self.n_items * max(17.0, 4 * n / k) / k)
        where_users_stay = early + steep**2 * n / k * (1 + np.log(T)) * sum((1 / differences).tolist())
        return min(bound, float(where_users_stay * max_grade))

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, **parameters: Any) -> int:
        return 40 * n_items
