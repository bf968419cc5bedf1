"""RankedExp3: one bandit for each position (Radlinski, Kleinberg and Joachims 2008).

Where a position's learner wants an item that stands above already, a random one of those not yet shown takes its
place, and the learner counts that as no click. What each wanted, and with which probability, travels in the ticket.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import share
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import hot
from rankloop.kernels.random import below, uniform
from rankloop.ranges import Between, Range
from rankloop.rankers.click_ranker import ClickRanker, in_turn, same_positions, shared_weights

_LEAST = 1e-280  # a weight that small is drawn by exploring only; zero could never grow again


class RankedExp3Params(NamedTuple):
    """How much is explored."""

    gamma: float  # the share of even chances, which is the step too


class RankedExp3State(NamedTuple):
    """The learner of each position."""

    t: Ints  # rounds with feedback
    w: Floats  # by position and item: weights, scaled to sum to one over the items


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 2, lines 4-10. Exploring: learners wanted, on average, what had less than an even chance."""
    wanted, chances = memo
    n, total = state.w.shape[1], 0.0
    for j in range(len(items)):
        left, drawn, p = uniform(key, 2 * j), 0, 0.0
        for i in range(n):
            p = (1.0 - params.gamma) * state.w[j, i] + params.gamma / n
            drawn = i
            left -= p
            if left < 0.0:
                break
        wanted[j] = drawn
        chances[j] = min(p, 1.0)
        total += p
        items[j] = replaced(items, j, drawn, n, below(key, 2 * j + 1, n - j))
    return total < 0.5 * len(items)


@hot
def replaced(items: Any, j: int, wanted: int, n: int, draw: int) -> int:
    """`wanted`, or if that is among the first j `items`, the `draw`-th of those that are not (Alg. 2, lines 6-9)."""
    free = True
    for above in range(j):
        free &= items[above] != wanted
    if free:
        return wanted
    found = 0
    for i in range(n):
        free = True
        for above in range(j):
            free &= items[above] != i
        if free:
            found = i
            if draw == 0:
                break
            draw -= 1
    return found


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 2, lines 12-18: a click rewards the learner of its position, if what it wanted was shown."""
    wanted, chances = memo
    n = state.w.shape[1]
    for j in range(len(items)):
        if clicks[j] == 0.0 or items[j] != wanted[j]:
            continue
        state.w[j, wanted[j]] *= exp(params.gamma / (n * chances[j]))
        total = 0.0
        for i in range(n):
            total += state.w[j, i]
        for i in range(n):
            state.w[j, i] = max(state.w[j, i] / total, _LEAST)
    state.t[0] += 1


_LEAST_CHANCE = 1e-100  # a ticket with less was not issued by this ranker
_LEAST_WEIGHT = 1e-280


class RankedExp3(ClickRanker):
    """An Exp3 learner for each position, which chooses among all items and is rewarded by clicks on its own.

    Positions choose from the top. Where one wants an item that is shown above already, a random unused one takes its
    place, and the learner counts that as no click. Meant for users who click once, on the first attractive item: there
    it reaches (1 - 1/e) of the best share of users who click. With position-based clicks every position learns for
    itself.

    Parameters
    ----------
    n_items : int
        How many items there are, n.
    n_positions : int, optional
        How many of them are shown, k; None shows all.
    horizon : int, optional
        How many rounds will be played, T; needed unless `gamma` is given.
    gamma : float, optional
        Exp3's share of even chances; None is min(1, sqrt(n log n / ((e - 1) T))).

    Notation
    --------
    w: state.w (position by item, scaled to sum to one).

    Departures
    ----------
    Every clicked position is rewarded, not only the first. An unused item is drawn evenly. t counts the rounds that
    had feedback.

    References
    ----------
    F. Radlinski, R. Kleinberg and T. Joachims, Learning diverse rankings with multi-armed bandits, ICML 2008.
    P. Auer, N. Cesa-Bianchi, Y. Freund and R. E. Schapire, The nonstochastic multiarmed bandit problem, SIAM Journal on
    Computing 2002.

    Examples
    --------
    >>> ranker = RankedExp3(n_items=10, n_positions=5, horizon=100_000)
    >>> shown = ranker.rank(rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [1, 0, 0, 1, 0])
    >>> bool(ranker.state.w[0, shown.items[0]] > 1 / 10)
    True
    """

    summary = "Observes clicks, and runs one learner at each position."
    kernels = RankerKernels(rank, learn)

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        horizon: int | None = None,
        gamma: float | None = None,
    ) -> None:
        n, m = self.read_size(n_items, n_positions)
        T = self.read_horizon(horizon, gamma=gamma) or 1
        if gamma is None:
            # Exp3's own choice; with one item there is nothing to explore, and any share will do
            gamma = min(1.0, math.sqrt(max(n * log(n), 1e-12) / ((math.e - 1) * T)))
        self.gamma = share("gamma", gamma)
        self.params = RankedExp3Params(self.gamma)
        self.state = RankedExp3State(t=np.zeros(1, np.int64), w=np.full((m, n), 1 / n))

    def tunable(self) -> Mapping[str, Range]:
        return {"gamma": Between(0.001, 1.0)}

    def blank_memo(self, n: int) -> Memo:
        return np.empty(n, np.int64), np.empty(n)

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return [
            (f"memo must name items below {self.n_items}", memo[0], 0, self.n_items - 1),
            ("memo must hold probabilities", memo[1], _LEAST_CHANCE, 1.0),
        ]

    def check_state(self, saved: Mapping[str, Array]) -> None:
        w = np.asarray(saved["w"])
        if not ((w > 0).all() and np.allclose(w.sum(axis=1), 1, rtol=0, atol=1e-8)):
            raise ValueError("saved state 'w' must be weights that sum to one at every position")

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """A new item gets an even share of every position, the others keep their proportions."""
        there = same_positions(positions, self.n_positions, old.n_positions)
        self.state.w[:] = shared_weights(old.state.w, origin, there, least=_LEAST_WEIGHT)
        self.state.t[:] = old.state.t

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        # The candidates' weight of a position stays theirs, together: what was no candidate is as it was beside them.
        for j, learnt in zip(positions, part.state.w, strict=True):
            theirs = in_turn(self.state.w[j, items])
            self.state.w[j, items] = np.maximum(learnt * theirs, _LEAST_WEIGHT)
        self.state.t[0] += 1

    def translate(self, ranking: Ranking, before: Ints) -> Ranking | None:
        """None: what the learners wanted were other items."""
        return None

    def current(self, context: Any = None) -> Ints:
        """Position by position the item with most weight among those not yet used."""
        self.read_context(context)
        shown: list[int] = []
        for weights in self.state.w:
            best = np.argsort(-weights, kind="stable")
            shown.append(next(int(i) for i in best if int(i) not in shown))
        return np.array(shown, np.int64)

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 8 * n * m
