"""SemiBanditFTRL: an order by DCG@n from the labels of the first n, with regret of order sqrt(T).

One number an item is learnt, because its relevance does not depend on where it stands; the leader is still a chance
for each item at each position, found by the solver of FTRL-PBM from losses of rank one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import whole
from rankloop.base import Array, Feedback, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels import list_network, lists, tsallis
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import sample
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.random import below
from rankloop.measures import Measure
from rankloop.rankers.candidates import SumsByItem, with_newcomers
from rankloop.rankers.click_ranker import are_chances
from rankloop.rankers.constants import learnable
from rankloop.servable import carried_sums


class SemiBanditParams(NamedTuple):
    """What the positions are worth, and the scale of relevance."""

    worth: Floats  # by position, beyond what the last one is worth; not zero
    squared: float  # of the learning rate: eta_t = 1 / (2 sqrt(squared t))
    exponential: bool  # whether a gain is 2^r - 1
    largest_gain: float


class SemiBanditState(NamedTuple):
    """Summed losses, and the leader that follows from them."""

    t: Ints  # the round that is to come, counted from 1
    L_hat: Floats  # by item: summed estimates of its loss
    u: Floats  # multipliers of the items' sums, warm for the next solve
    v: Floats  # ... and of the positions' sums
    x: Floats  # the chance of item i at position j
    rows: Floats  # its sum over positions: the chance that item i is observed
    fallbacks: Ints  # solves that needed the slow way; and those of them that ended inexact


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """A list for the positions that count, with chances x, and the other items behind it in random order."""
    _, sampling, _, top, taken = scratch
    n, m = state.x.shape
    sample(state.x, state.rows, key, sampling, top)
    for i in range(m):
        taken[i] = 0
    likely = 0.0
    for j in range(n):
        i = top[j]
        items[j] = i
        taken[i] = 1
        propensities[j] = min(1.0, state.x[j, i])
        memo[0][j] = min(1.0, state.rows[i])
        likely += propensities[j]
    place = n
    for i in range(m):
        if taken[i] == 0:
            other = n + below(key, 1 + n + i, place - n + 1)  # inside-out shuffle of those behind
            items[place] = items[other] if other < place else i
            items[other] = i
            place += 1
    for position in range(n, m):
        propensities[position] = max((1.0 - state.rows[items[position]]) / (m - n), 1e-300)
    return bool(likely < 0.5 * n)


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, labels: Any
) -> None:
    """An item is observed with chance memo[0]: its loss counts that much more. Then the next leader."""
    for j in range(len(params.worth)):
        relevance = labels[j]
        gain = exp2_gain(relevance) if params.exponential else relevance
        state.L_hat[items[j]] += (1.0 - gain / params.largest_gain) / memo[0][j]
    state.t[0] += 1
    lead(params, state, scratch)


@hot
def lead(params: Any, state: Any, scratch: Any) -> None:
    """x, the argmin of <x, L> - sum of sqrt(x) / eta_t, with L_ij = worth_j L_hat_i."""
    solver_scratch, L = scratch[0], scratch[2]
    for j in range(L.shape[0]):
        for i in range(L.shape[1]):
            L[j, i] = params.worth[j] * state.L_hat[i]
    t = params.squared * float(state.t[0])
    if tsallis.newton(t, L, state.u, state.v, state.x, state.rows, solver_scratch) < 0:
        failure = tsallis.recover(t, L, state.u, state.v, state.x, state.rows, solver_scratch)
        state.fallbacks[0] += 1
        state.fallbacks[1] += failure == 2


_LEAST_CHANCE = 1e-100  # a ticket with less was not issued by this ranker, and the estimate would overflow


class SemiBanditFTRL(SumsByItem):
    """Learns the order of the first n items from their relevance, where no position behind them counts.

    Each round draws a list whose chances of having item i at position j are x_ij, the minimiser of the losses estimated
    so far plus a Tsallis entropy. Every item at a position that counts reveals its relevance, so that exploration
    costs nothing extra: regret O(sqrt(m T)) against any users, and no horizon needed. RTop1F has T^(2/3) here.

    Parameters
    ----------
    n_items : int
        How many items there are, m.
    measure : str or Measure, optional
        "dcg@n", of which the first n labels are observed; "dcg", "sum_loss" or "pairwise_loss" of binary relevance, of
        which all but the last are; or "precision@n".
    max_grade : int, optional
        The largest relevance that can come back.

    Notation
    --------
    m: n_items, n: n_positions that count, w_j: params.worth, L_hat: state.L_hat, x: state.x (position by item),
    q_i: state.rows, eta_t: 1 / (2 c sqrt t) with c^2 = params.squared, the mean of w_j^2.

    Departures
    ----------
    The algorithm is ours, put together from known parts: the regulariser and the solver of FTRL-PBM, and one loss
    estimate an item instead of one for each item at each position, because relevance does not depend on the position.

    References
    ----------
    J. Zimmert and Y. Seldin, Tsallis-INF: an optimal algorithm for stochastic and adversarial bandits, JMLR 2021.
    C. Chen, C. Zhao and S. Li, Simultaneously learning stochastic and adversarial bandits under the position-based
    model, AAAI 2022.

    Examples
    --------
    >>> ranker = SemiBanditFTRL(n_items=10, measure="dcg@3")
    >>> shown = ranker.rank(rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [1.0, 0.0, 1.0])  # the relevance of shown.items[:3]
    >>> float(ranker.state.x.sum().round(9))
    3.0
    """

    n_items: int
    max_grade: int
    summary = "Observes the relevance of the items at positions that count, and draws the list."
    kernels = RankerKernels(rank, learn)

    def __init__(self, *, n_items: int, measure: str | Measure = "dcg", max_grade: int = 1) -> None:
        m = whole("n_items", n_items, at_least=1)
        self.n_items = self.n_positions = m
        self.learnable = learnable(measure, max_grade=max_grade, n_items=m)
        self.measure = self.learnable.measure
        self.max_grade = max_grade
        discount = self.measure.discount(m)
        worth = np.abs(discount - discount[-1])
        worth = worth[worth > 0] if (worth > 0).any() else np.ones(1)  # all orders alike: nothing to learn
        n = len(worth)
        self.feedback = TopK(n)
        squares = 0.0
        for each in worth.tolist():
            squares += each * each
        self.params = SemiBanditParams(
            np.ascontiguousarray(worth), squares / n, self.learnable.exponential, self.learnable.largest_gain
        )
        self.state = SemiBanditState(
            t=np.ones(1, np.int64),
            L_hat=np.zeros(m),
            u=np.zeros(m),
            v=np.full(n, np.sqrt(m * self.params.squared)),
            x=np.full((n, m), 1 / m),
            rows=np.full(m, n / m),
            fallbacks=np.zeros(2, np.int64),
        )

    def scratch(self, n: int) -> tuple[Any, ...]:
        shown = len(self.params.worth)
        return (
            list_network.new_scratch(self.n_items, shown),
            lists.sampling_scratch(shown),
            np.empty((shown, self.n_items)),
            np.empty(shown, np.int64),
            np.empty(self.n_items, np.int64),
        )

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(len(self.params.worth)),)

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return [("memo must hold chances in (0, 1]", memo[0], _LEAST_CHANCE, 1.0)]

    def check_state(self, saved: Mapping[str, Array]) -> None:
        x, worth = np.asarray(saved["x"]), self.params.worth
        if saved["t"][0] < 1 or (saved["L_hat"] < 0).any():
            raise ValueError("saved state 't' must be at least 1, and 'L_hat' must not be negative")
        if not are_chances(x, saved["rows"]):
            raise ValueError(
                "saved state 'x' must be the chances of items at positions, with sums as in 'rows'"
            )
        D = worth[:, None] * np.asarray(saved["L_hat"]) + saved["u"] + np.asarray(saved["v"])[:, None]
        if not (D > 0).all():
            raise ValueError("saved state 'u' and 'v' must be multipliers for 'L_hat', with positive sums")

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """A new item begins level with the best: with the least loss."""
        self.state.L_hat[:] = -carried_sums(-old.state.L_hat, origin)
        self.state.t[:] = old.state.t
        self.carry_missed(old, origin)
        lead(self.params, self.state, self.scratch(self.n_items))

    def feedback_among(self, n_items: int) -> Feedback:
        return type(self)(**self.part_arguments(n_items, np.arange(n_items))).feedback

    def rounds_learnt(self) -> int:
        return int(self.state.t[0]) - 1

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        self.put_back(self.state.L_hat, part.state.L_hat - self.state.L_hat[items], items)
        self.state.t[0] += 1
        lead(self.params, self.state, self.scratch(self.n_items))

    def translate(self, ranking: Ranking, before: Ints) -> Ranking | None:
        """With the items that are new at its end, as long as those that reveal their relevance are still there."""
        return with_newcomers(ranking, before, n_items=self.n_items, n_top=len(self.params.worth))

    def counters(self) -> dict[str, int]:
        slow, inexact = self.state.fallbacks.tolist()
        return {"solver_fallbacks": slow, "solver_inexact": inexact}

    def current(self, context: Any = None) -> Ints:
        return np.argsort(self.state.L_hat, kind="stable")

    def regret_bound(self, horizon: int) -> float:
        """4 G sqrt(n W m T) for T = `horizon`, W the sum of w_j^2 and G the largest gain, as its page derives.

        Examples
        --------
        >>> round(SemiBanditFTRL(n_items=10, measure="dcg@3").regret_bound(10_000))
        2813
        """
        T = whole("horizon", horizon, at_least=1)
        n = len(self.params.worth)
        return float(4 * self.params.largest_gain * n * np.sqrt(self.params.squared * self.n_items * T))

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, measure: Any = "dcg", **parameters: Any) -> int:
        tail = str(getattr(measure, "name", measure)).partition("@")[2]
        n = min(int(tail), n_items) if tail.isdigit() else n_items
        return (
            16 * n * n_items
            + 48 * n_items
            + list_network.scratch_bytes(n_items, n)
            + lists.sampling_scratch_bytes(n)
        )
