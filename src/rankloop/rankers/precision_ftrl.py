"""PrecisionFTRL: the best set of n items from the relevance of the top few, with regret of order sqrt(T)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop import measures
from rankloop.arguments import whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels.rankers import precision_ftrl
from rankloop.measures import Measure
from rankloop.rankers.some_items import SumsByItem, with_newcomers
from rankloop.servable import carried_sums


class PrecisionFTRL(SumsByItem):
    """Learns which n items to show first, in any order, from the relevance of the first k of them.

    Precision@n does not depend on the order within the first n, so the set is shown in random order: the top item is
    then a uniform draw from the set. Follow the regularised leader with importance weights does the rest. Regret
    O(n sqrt(m T / k)) against any users, about log T when users are drawn from one distribution, and no horizon needed.
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
    m: n_items, L_hat: state.L_hat, x: state.x, eta_t: 1 / (2 sqrt(n t / k)).

    Departures
    ----------
    The algorithm is ours: the 2015 paper leaves Precision@k open, Zhang and Tewari (2023) settle the rate with another,
    more general algorithm. The regulariser is Tsallis-INF's (Zimmert and Seldin 2021).

    References
    ----------
    S. Chaudhuri and A. Tewari, Online ranking with top-1 feedback, AISTATS 2015, Result 2.
    J. Zimmert and Y. Seldin, Tsallis-INF: an optimal algorithm for stochastic and adversarial bandits, JMLR 2021.

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
    kernels = RankerKernels(precision_ftrl.rank, precision_ftrl.learn)

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
        self.params = precision_ftrl.PrecisionParams(n, k, float(self.max_grade))
        self.state = precision_ftrl.PrecisionState(
            np.zeros(m), np.full(m, n / m), np.zeros(1), np.zeros(1, np.int64)
        )
        precision_ftrl.solve(self.state.L_hat, n, precision_ftrl.rate(self.params, 1), 0.0, self.state.x)

    def scratch(self, n: int) -> tuple[Any, ...]:
        return (np.empty(n, np.int64),)

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(self.params.k),)

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def check_ticket(self, ranking: Ranking) -> None:
        chances = ranking.memo[0]
        if not ((chances > 0) & (chances <= 1)).all():
            raise ValueError(f"ranking.memo must hold chances in (0, 1], got {chances}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if saved["t"][0] < 0 or (saved["L_hat"] < 0).any():
            raise ValueError("saved state 't' and 'L_hat' must not be negative")
        x = np.empty(len(saved["x"]))
        eta = precision_ftrl.rate(self.params, int(saved["t"][0]) + 1)
        precision_ftrl.solve(np.asarray(saved["L_hat"]), self.params.n, eta, float(saved["level"][0]), x)
        if not np.allclose(x, saved["x"], rtol=1e-6, atol=1e-9):
            raise ValueError(f"saved state 'x' does not follow from 'L_hat', got {saved['x']}")

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        """A new item begins level with the best: with the least loss."""
        self.state.L_hat[:] = -carried_sums(-old.state.L_hat, origin)
        self.state.t[:] = old.state.t
        self.carry_missed(old, origin)
        self._follow()

    def _follow(self) -> None:
        state = self.state
        eta = precision_ftrl.rate(self.params, int(state.t[0]) + 1)
        state.level[0] = precision_ftrl.solve(state.L_hat, self.params.n, eta, state.level[0], state.x)

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
        self._follow()

    def translate(self, ranking: Ranking, before: NDArray[np.int64]) -> Ranking | None:
        """With the items that are new at its end, as long as those that reveal their relevance are still there."""
        return with_newcomers(ranking, before, n_items=self.n_items, n_top=self.params.k)

    def current(self, context: Any = None) -> NDArray[np.int64]:
        return np.argsort(self.state.L_hat, kind="stable")

    def regret_bound(self, horizon: int) -> float:
        """4 n sqrt(m T / k), times the highest grade; the page of this ranker derives it.

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
        >>> round(PrecisionFTRL(n_items=10, measure="precision@3").regret_bound(10_000))
        3795
        """
        T = whole("horizon", horizon, at_least=1)
        n, k, max_grade = self.params
        return float(4 * n * np.sqrt(self.n_items * T / k) * max_grade)

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return 40 * n_items

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=4, measure="precision@2")
        yield cls(n_items=5, measure="precision@3", k=2)
        yield cls(n_items=3, measure="precision@1", max_grade=4)
        yield cls(n_items=3, measure="precision@3", k=3)
        yield cls(n_items=1)
