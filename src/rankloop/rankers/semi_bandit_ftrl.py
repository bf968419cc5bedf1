"""SemiBanditFTRL: an order by DCG@n from the labels of the first n, with regret of order sqrt(T)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.base import Array, Feedback, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels.call_checks import within
from rankloop.kernels.rankers import semi_bandit_ftrl as kernels
from rankloop.kernels.solvers import list_network, list_sampling
from rankloop.measures import Measure
from rankloop.rankers.click_ranker import are_chances
from rankloop.rankers.constants import learnable
from rankloop.rankers.some_items import SumsByItem, with_newcomers
from rankloop.servable import carried_sums

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
    kernels = RankerKernels(kernels.rank, kernels.learn)

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
        self.params = kernels.SemiBanditParams(
            np.ascontiguousarray(worth), squares / n, self.learnable.exponential, self.learnable.largest_gain
        )
        self.state = kernels.SemiBanditState(
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
            list_network.room(self.n_items, shown),
            list_sampling.room(shown),
            np.empty((shown, self.n_items)),
            np.empty(shown, np.int64),
            np.empty(self.n_items, np.int64),
        )

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(len(self.params.worth)),)

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def check_ticket(self, ranking: Ranking) -> None:
        chances = ranking.memo[0]
        if not within(chances, _LEAST_CHANCE, 1.0):
            raise ValueError(f"ranking.memo must hold chances in (0, 1], got {chances}")

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

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        """A new item begins level with the best: with the least loss."""
        self.state.L_hat[:] = -carried_sums(-old.state.L_hat, origin)
        self.state.t[:] = old.state.t
        self.carry_missed(old, origin)
        kernels.lead(self.params, self.state, self.scratch(self.n_items))

    def feedback_among(self, n_items: int) -> Feedback:
        return type(self)(**self.part_arguments(n_items, np.arange(n_items))).feedback

    def rounds_learnt(self) -> int:
        return int(self.state.t[0]) - 1

    def absorb(
        self,
        part: Any,
        items: NDArray[np.int64],
        positions: NDArray[np.int64],
        ranking: Ranking,
        feedback: NDArray[np.float64],
    ) -> None:
        self.put_back(self.state.L_hat, part.state.L_hat - self.state.L_hat[items], items)
        self.state.t[0] += 1
        kernels.lead(self.params, self.state, self.scratch(self.n_items))

    def translate(self, ranking: Ranking, before: NDArray[np.int64]) -> Ranking | None:
        """With the items that are new at its end, as long as those that reveal their relevance are still there."""
        return with_newcomers(ranking, before, n_items=self.n_items, n_top=len(self.params.worth))

    def counters(self) -> dict[str, int]:
        slow, inexact = self.state.fallbacks.tolist()
        return {"solver_fallbacks": slow, "solver_inexact": inexact}

    def current(self, context: Any = None) -> NDArray[np.int64]:
        return np.argsort(self.state.L_hat, kind="stable")

    def regret_bound(self, horizon: int) -> float:
        """4 G sqrt(n W m T), with W the sum of w_j^2 and G the largest gain; the page of this ranker derives it.

        Parameters
        ----------
        horizon : int
            The number of rounds, T.

        Returns
        -------
        float
            The bound on the expected regret.

        Examples
        --------
        >>> round(SemiBanditFTRL(n_items=10, measure="dcg@3").regret_bound(10_000))
        2813
        """
        T = whole("horizon", horizon, at_least=1)
        n = len(self.params.worth)
        return float(4 * self.params.largest_gain * n * np.sqrt(self.params.squared * self.n_items * T))

    @classmethod
    def bytes_for(
        cls,
        *,
        n_items: int = 0,
        n_positions: int | None = None,
        n_features: int = 0,
        measure: Any = "dcg",
        **parameters: Any,
    ) -> int:
        tail = str(getattr(measure, "name", measure)).partition("@")[2]
        n = min(int(tail), n_items) if tail.isdigit() else n_items
        return (
            16 * n * n_items
            + 48 * n_items
            + list_network.room_bytes(n_items, n)
            + list_sampling.room_bytes(n)
        )

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=5, measure="dcg@3")
        yield cls(n_items=4, measure="sum_loss")
        yield cls(n_items=4, measure="dcg@1", max_grade=2)
        yield cls(n_items=3, measure="precision@2")
        yield cls(n_items=1)
