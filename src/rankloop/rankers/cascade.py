"""Learners for users who read from the top to the first click: KL-UCB, and one that bears click fraud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import whole
from rankloop.base import Array, Floats, Ints, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels import sorting
from rankloop.kernels.click_counts import log_level, upper_bound
from rankloop.kernels.jit import hot
from rankloop.kernels.sorting import by_falling_score_from
from rankloop.ranges import Range, Whole
from rankloop.rankers.click_ranker import ClickRanker

_NEVER_SEEN = 2.0  # above every index


class CascadeParams(NamedTuple):
    """How many items there are."""

    n_items: int


class CascadeState(NamedTuple):
    """How often each item was examined, and how often it was then clicked."""

    t: Ints  # rounds with feedback
    N: Floats  # by item: looks
    W: Floats  # by item: clicks


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, lines 6-8. Exploring: an item that is not shown has been clicked more often than one that is."""
    return show_largest(params.n_items, 0.0, state, scratch, items)


@hot
def show_largest(n: int, budget: float, state: Any, scratch: Any, items: Any) -> bool:
    """The items with the largest indices, if `budget` clicks of each may have been taken away."""
    index, turned, order, sort_scratch = scratch
    level = log_level(float(state.t[0] + 1))
    for i in range(n):
        N = state.N[i]
        # The clicks without fraud are at most W + budget, and the bound rises with the mean.
        index[i] = upper_bound(min(1.0, (state.W[i] + budget) / N), N, level) if N > 0.0 else _NEVER_SEEN
    by_falling_score_from(state.t[0] % n, index, n, turned, order, sort_scratch)
    least, most = 1.0, 0.0
    for place in range(n):
        i = order[place]
        mean = state.W[i] / max(state.N[i], 1.0)
        if place < len(items):
            items[place] = i
            least = min(least, mean)
        else:
            most = max(most, mean)
    return most > least


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 1, lines 9-13: all down to the first click were examined, and nothing is known of the rest."""
    for j in range(len(items)):
        state.N[items[j]] += 1.0
        if clicks[j] > 0.0:
            state.W[items[j]] += 1.0
            break
    state.t[0] += 1


class RobustParams(NamedTuple):
    """How many items there are, and how many observations of each of them may be false."""

    n_items: int
    budget: float


@hot
def rank_robust(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """The largest indices. Exploring: an item that is not shown has been clicked more often than one that is."""
    return show_largest(params.n_items, params.budget, state, scratch, items)


class CascadeKLUCB(ClickRanker):
    """Shows the items with the largest upper confidence bounds on how attractive they are.

    For users who read from the top, click the first item that attracts them and leave: everything above a click was
    examined and not clicked, and nothing is observed below it. The goal is that users find
    at least one attractive item. Of several clicks only the first counts.

    Parameters
    ----------
    n_items : int
        How many items there are, L.
    n_positions : int, optional
        How many of them are shown, K; None shows all.

    Notation
    --------
    T_t(e): state.N, w_hat(e): state.W / state.N, U_t(e): the indices with n d(w_hat, U) = log t + 3 log log t.

    Departures
    ----------
    Items never observed come before all others, instead of a separate initial phase. Equal indices take turns. t counts
    the rounds with feedback.

    References
    ----------
    B. Kveton, Cs. Szepesvári, Z. Wen and A. Ashkan, Cascading bandits: learning to rank in the cascade model,
    ICML 2015.

    Examples
    --------
    >>> ranker = CascadeKLUCB(n_items=5, n_positions=3)
    >>> shown = ranker.rank(rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [0, 1, 0])  # the first was passed over, the second clicked, the third not reached
    >>> ranker.state.N
    array([1., 1., 0., 0., 0.])
    """

    stops_at_click = True
    summary = "Observes clicks of users who read down to the first good item, and keeps confidence bounds."
    kernels = RankerKernels(rank, learn)

    def __init__(self, *, n_items: int, n_positions: int | None = None) -> None:
        n, _ = self.read_size(n_items, n_positions)
        self.params = CascadeParams(n)
        self.state = CascadeState(np.zeros(1, np.int64), np.zeros(n), np.zeros(n))

    def scratch(self, n: int) -> tuple[Any, ...]:
        k = self.n_items
        return np.empty(k), np.empty(k), np.empty(k, np.int64), sorting.scratch(k)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if (saved["W"] < 0).any() or (saved["W"] > saved["N"]).any():
            raise ValueError("saved state 'W' must be click counts, from 0 to the observations in 'N'")

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """A new item was never examined: it comes before all others."""
        known = origin >= 0
        for name in ("N", "W"):
            getattr(self.state, name)[known] = getattr(old.state, name)[origin[known]]
        self.state.t[:] = old.state.t

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        self.state.N[items], self.state.W[items] = part.state.N, part.state.W
        self.state.t[0] += 1

    def learn_shown(self, items: Ints, feedback: Any) -> bool:
        """Learns: its counts are of whatever was shown."""
        self.learn(Ranking(items, None, ()), feedback)
        return True

    def current(self, context: Any = None) -> Ints:
        """The items with the highest click rate where they were observed."""
        self.read_context(context)
        means = self.state.W / np.maximum(self.state.N, 1)
        return np.argsort(-means, kind="stable")[: self.n_positions].astype(np.int64)

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 40 * n + sorting.scratch_bytes(n)


class CascadeRobustUCB(CascadeKLUCB):
    """Shows the items with the largest upper confidence bounds, allowing for `budget` users whose clicks are false.

    For users who read from the top, click the first item that attracts them and leave, while somebody who sees every
    list replaces the clicks of some of them. No item is given up before it was observed often enough to
    outweigh that many false observations.

    Parameters
    ----------
    n_items : int
        How many items there are, L.
    n_positions : int, optional
        How many of them are shown, K; None shows all.
    budget : int, optional
        How many users' clicks may be false, C. With 0 it is CascadeKLUCB.

    Notation
    --------
    T_t(e): state.N, U_t(e): the largest q with n d((W + C) / n, q) = log t + 3 log log t, n: state.N, W: state.W.

    Departures
    ----------
    There is no paper with this ranker: the radius that is wider by C / n, of bandits whose attacker has a known budget,
    is applied to the indices of CascadeKLUCB. Departures of CascadeKLUCB are those of this ranker.

    References
    ----------
    B. Kveton, Cs. Szepesvári, Z. Wen and A. Ashkan, Cascading bandits: learning to rank in the cascade model,
    ICML 2015. X. Wang, M. Liu, J. Zuo, X. Liu, J. Lui and M. Hajiesmaili, Stochastic bandits robust to adversarial
    attacks, ICLR 2025, for known budgets. J. Xie, C. Chen, Z. Wang and S. Li, Cascading bandits robust to adversarial
    corruptions, 2025, for the problem.

    Examples
    --------
    >>> import numpy as np
    >>> ranker = CascadeRobustUCB(n_items=2, n_positions=1, budget=10)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(40):  # the first ten clicks on item 0 are hidden, then item 0 is clicked and 1 never
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, (shown.items == 0) & (ranker.state.N[0] >= 10))
    >>> ranker.current()
    array([0])
    """

    summary = "As CascadeKLUCB, with bounds wide enough for a number of false clicks."
    kernels = RankerKernels(rank_robust, learn)

    def __init__(self, *, n_items: int, n_positions: int | None = None, budget: int = 200) -> None:
        super().__init__(n_items=n_items, n_positions=n_positions)
        self.params = RobustParams(self.n_items, float(whole("budget", budget, at_least=0)))

    def tunable(self) -> Mapping[str, Range]:
        return {"budget": Whole(1, 10_000)}
