"""MW: multiplicative weights over ordered slates (Kale, Reyzin and Schapire 2010).

Arrays are position-major: W[j, i] belongs to item i at position j. Columns of the paper are rows here: each
position's weights sum to one, and each item's over the positions to at most one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import number, share, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.kernels import entropy_projection, lists
from rankloop.kernels.elementary import exp, log
from rankloop.kernels.entropy_projection import project
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import in_order, show
from rankloop.ranges import Between, Range
from rankloop.rankers.click_ranker import ClickRanker, in_turn, same_positions, shared_weights

_LEAST = 1e-280  # a weight that small is drawn by exploring only; zero could never grow again


class MWParams(NamedTuple):
    """How fast weights move, and how much is explored."""

    eta: float  # the step
    gamma: float  # the share of rounds that explore


class MWState(NamedTuple):
    """Weights, the chances that follow from them, and how the last projections went."""

    t: Ints  # rounds with feedback
    W: Floats  # by position and item: weights, which sum to 1 over the items
    x: Floats  # X' = (1 - gamma) W + gamma / n
    rows: Floats  # its sum over positions
    steps: Ints  # of all projections; and how many projections ended before they were exact


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 2, lines 2-3."""
    return show(state.x, state.rows, key, scratch[0], items, propensities)


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 2, lines 4-6: the losses of the shown pairs, weighted by how likely they were shown; then the projection."""
    W = state.W
    lost = False
    for j in range(len(items)):
        if clicks[j] == 0.0:
            weight = W[j, items[j]] * exp(-params.eta / propensities[j])
            W[j, items[j]] = max(weight, _LEAST)
            lost = True
    state.t[0] += 1
    if not lost:
        return
    steps = project(W, scratch[1])
    state.steps[0] += abs(steps)
    state.steps[1] += steps < 0
    m, n = W.shape
    for i in range(n):
        state.rows[i] = 0.0
    for j in range(m):
        for i in range(n):
            state.x[j, i] = (1.0 - params.gamma) * W[j, i] + params.gamma / n
            state.rows[i] += state.x[j, i]


_LEAST_CHANCE = 1e-100  # a ticket with less was not issued by this ranker
_LEAST_WEIGHT = 1e-280


class MW(ClickRanker):
    """Exponential weights over items at positions, kept a mixture of lists by projection.

    Each round draws a list whose chances of having item i at position j are a mixture of the weights W_ij and of
    even chances. A position without a click shrinks the weight of the item that stood there; then the weights are
    projected, in relative entropy, onto what lists can be drawn from. Regret O(m sqrt(n T log n)) whatever users do.

    Parameters
    ----------
    n_items : int
        How many items there are, n.
    n_positions : int, optional
        How many of them are shown, m; None shows all.
    horizon : int, optional
        How many rounds will be played, T; needed unless both `eta` and `gamma` are given.
    eta : float, optional
        The step; None is sqrt((1 - gamma) log n / (n T)).
    gamma : float, optional
        The share of even chances; None is min(1/2, sqrt(n log n / T)).

    Notation
    --------
    W: state.W (position by item, each position sums to 1 and not to 1/m), X': state.x.

    Departures
    ----------
    Constants are derived for lists scaled as here. Lists are drawn as FTRLPBM draws them. t counts the rounds with
    feedback.

    References
    ----------
    S. Kale, L. Reyzin and R. E. Schapire, Non-stochastic bandit slate problems, NeurIPS 2010.

    Examples
    --------
    >>> ranker = MW(n_items=10, n_positions=5, horizon=100_000)
    >>> shown = ranker.rank(rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [1, 0, 0, 1, 0])
    >>> bool(ranker.x[0, shown.items[0]] > ranker.x[1, shown.items[1]])
    True
    """

    summary = "Observes clicks, and keeps a weight for each item at each position."
    kernels = RankerKernels(rank, learn)

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        horizon: int | None = None,
        eta: float | None = None,
        gamma: float | None = None,
    ) -> None:
        n, m = self.read_size(n_items, n_positions)
        T = self.read_horizon(horizon, eta=eta, gamma=gamma) or 1
        self._own_constants = eta is None and gamma is None
        self.gamma = min(0.5, math.sqrt(n * log(n) / T)) if gamma is None else share("gamma", gamma)
        if eta is None:
            eta = math.sqrt((1 - self.gamma) * log(n) / (n * T))
        self.eta = number("eta", eta, at_least=0, at_most=1e6)
        self.params = MWParams(self.eta, self.gamma)
        self.state = MWState(
            t=np.zeros(1, np.int64),
            W=np.full((m, n), 1 / n),
            x=np.full((m, n), 1 / n),
            rows=np.full(n, m / n),
            steps=np.zeros(2, np.int64),
        )

    @property
    def x(self) -> Floats:
        """The chance of item i at position j in the next list, as a positions x items matrix."""
        chances: Floats = self.state.x.copy()
        return chances

    def tunable(self) -> Mapping[str, Range]:
        return {"eta": Between(1e-5, 1.0), "gamma": Between(0.001, 1.0)}

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """A new item gets an even share of every position, the others keep their proportions."""
        there = same_positions(positions, self.n_positions, old.n_positions)
        self.state.W[:] = shared_weights(old.state.W, origin, there, least=_LEAST_WEIGHT)
        self.state.t[:] = old.state.t
        self._follow()

    def _follow(self) -> None:
        state, n = self.state, self.n_items
        steps = entropy_projection.project(state.W, self.scratch(self.n_positions)[1])
        state.steps[:] += (abs(steps), steps < 0)
        state.x[:] = (1.0 - self.gamma) * state.W + self.gamma / n
        state.rows[:] = 0.0
        for row in state.x:
            state.rows[:] += row

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        # The candidates' weight of a position stays theirs, together: what was no candidate is as it was beside them.
        assert ranking.propensities is not None
        for j, i, chance, click in zip(
            positions, items[ranking.items], ranking.propensities, feedback, strict=True
        ):
            if click > 0.0:
                continue
            row = self.state.W[j]
            before = in_turn(row[items])
            row[i] = max(row[i] * exp(-self.eta / chance), _LEAST_WEIGHT)
            row[items] = np.maximum(row[items] * (before / in_turn(row[items])), _LEAST_WEIGHT)
        self.state.t[0] += 1
        self._follow()

    def scratch(self, n: int) -> tuple[Any, ...]:
        return lists.sampling_scratch(self.n_positions), entropy_projection.new_scratch(
            self.n_items, self.n_positions
        )

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return [("propensities must be probabilities", propensities, _LEAST_CHANCE, 1.0)]

    def check_state(self, saved: Mapping[str, Array]) -> None:
        W = np.asarray(saved["W"])
        x = (1 - self.gamma) * W + self.gamma / self.n_items
        if not (
            (W > 0).all()
            and np.allclose(W.sum(axis=1), 1, rtol=0, atol=1e-8)
            and W.sum(axis=0).max() <= 1 + 1e-8
            and np.allclose(x, saved["x"], rtol=0, atol=1e-8)
            and np.allclose(x.sum(axis=0), saved["rows"], rtol=0, atol=1e-8)
        ):
            raise ValueError(
                "saved state 'W' must sum to 1 per position and at most 1 per item, and 'x' must follow from it"
            )

    def counters(self) -> dict[str, int]:
        steps, inexact = self.state.steps.tolist()
        return {"projection_steps": steps, "projection_inexact": inexact}

    def learn_logged(
        self, items: Ints, feedback: Any, *, propensities: Floats | None = None, features: Any = None
    ) -> None:
        """Learns where the log has propensities: its estimates are weighed by those of whoever drew the list."""
        if propensities is None:
            raise ValueError("MW needs the propensity of each shown item to learn from a log")
        self.learn(Ranking(items, propensities, ()), feedback)

    def current(self, context: Any = None) -> Ints:
        """The likeliest list: the assignment of items to positions with the largest sum of weights."""
        self.read_context(context)
        W = self.state.W
        items = np.empty(len(W), np.int64)
        lists.best_list(W, items)
        return in_order(W, items)

    def regret_bound(self, rounds: int) -> float:
        """Our derivation: m (2 sqrt(n T log n / (1 - gamma)) + sqrt(n T log n)), for `horizon` = T = `rounds`.

        Raises
        ------
        ValueError
            Where eta or gamma were chosen, or the rounds are not the horizon: nothing is proved then.

        Examples
        --------
        >>> round(MW(n_items=10, n_positions=5, horizon=1_000_000).regret_bound(1_000_000))
        72093
        """
        T = whole("rounds", rounds, at_least=1)
        if self.horizon != T or not self._own_constants:
            raise ValueError(
                "regret_bound is proved for rounds=horizon with eta=None and gamma=None, "
                f"got rounds={rounds} and {self!r}"
            )
        m, n = self.n_positions, self.n_items
        root = math.sqrt(n * T * math.log(n))
        return m * (2 * root / math.sqrt(1 - self.gamma) + root) if self.gamma < 1 else math.inf

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        most = min(n, 2 * m)
        return 16 * m * n + 24 * n + 8 * most * (most + 3) + lists.sampling_scratch_bytes(m)
