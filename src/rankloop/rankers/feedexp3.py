"""FeedExp3: the general forecaster for learnable games, over all m! orders (2015, Corollary 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import permutations, product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop import measures
from rankloop.arguments import whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import CompiledRanker, RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels.elementary import log, power
from rankloop.kernels.rankers import feedexp3
from rankloop.measures import Measure
from rankloop.rankers.exact_pseudoinverse import pseudoinverse

_MOST_ORDERS = 5_040
_MOST_ENTRIES = 1 << 23


class FeedExp3(CompiledRanker):
    """Exponential weights over all orders, with losses estimated from the labels of the top.

    Works for every measure that can be learnt from the feedback, at the optimal rate for those that are hard,
    T^(2/3). It keeps a number for each of m! orders, so it is for small m and for comparison: RTop1F does the same for
    sums over items in m log m.

    Parameters
    ----------
    n_items : int
        How many items there are, m; at most 7.
    measure : str or Measure, optional
        Any measure whose differences can be seen k labels at a time; others are refused.
    k : int, optional
        How many top items reveal their relevance.
    max_grade : int, optional
        The largest relevance that can come back; whole grades.
    pooled : bool, optional
        Take orders that show the same items together when estimating: less variance, the same idea.

    Notation
    --------
    N: m!, L, H, K: losses, feedback and coefficients with L = K H, k_star: max(1, largest absolute entry of K), eta_t
    and gamma_t as in Cesa-Bianchi et al., L_tilde: state.L_tilde.

    Departures
    ----------
    H has one row for each pattern of labels that an order can show, other than all zeros; for binary relevance and
    k = 1 that is the paper's H. Where the losses themselves are not K H, those less their mean over all orders are
    used: regret is the same. The leading constant is ours.

    References
    ----------
    N. Cesa-Bianchi, G. Lugosi and G. Stoltz, Regret minimization under partial monitoring, Math. Oper. Res. 2006.
    S. Chaudhuri and A. Tewari, Online ranking with top-1 feedback, AISTATS 2015, Corollary 6.

    Examples
    --------
    >>> ranker = FeedExp3(n_items=3, measure="sum_loss")
    >>> len(ranker.state.L_tilde)
    6
    >>> FeedExp3(n_items=3, measure="ndcg")
    Traceback (most recent call last):
    ...
    ValueError: measure 'ndcg' cannot be learnt from the top 1 of 3 items: its differences are not observable
    """

    n_items: int
    max_grade: int
    summary = "Observes the relevance of the top items, and keeps a weight for each possible order."
    no_candidates = "its weights are of orders of all items"
    kernels = RankerKernels(feedexp3.rank, feedexp3.learn)

    def __init__(
        self,
        *,
        n_items: int,
        measure: str | Measure = "sum_loss",
        k: int = 1,
        max_grade: int = 1,
        pooled: bool = False,
    ) -> None:
        m = whole("n_items", n_items, at_least=1)
        k = whole("k", k, at_least=1, at_most=m)
        self.max_grade = whole("max_grade", max_grade, at_least=1)
        self.n_items = self.n_positions = m
        self.feedback = TopK(k)
        n_orders, n_patterns = math.factorial(m), (self.max_grade + 1) ** k - 1
        n_pools = math.perm(m, k) if pooled else n_orders
        too_many = n_orders > _MOST_ORDERS or n_orders * n_pools * n_patterns > _MOST_ENTRIES
        if too_many or (self.max_grade + 1) ** m * n_orders > _MOST_ENTRIES:
            raise ValueError(
                f"n_items={m} makes {n_orders:,} orders, each with a weight for all {n_pools * n_patterns:,} patterns "
                f"of labels: too many; RTop1F keeps one number per item"
            )
        scored = measures.get(measure).within(m)
        self.measure = scored.graded(self.max_grade) if scored.family == "err" else scored
        orders = np.array(list(permutations(range(m))))
        seen = {tuple(order[:k]): i for i, order in reversed(list(enumerate(orders.tolist())))}
        first = np.array([seen[tuple(order[:k])] for order in orders.tolist()])
        pool = np.unique(first, return_inverse=True)[1] if pooled else np.arange(n_orders)
        K, self.scale = self._solve(orders, pool, n_pools)
        k_star = max(1.0, float(np.abs(K).max(initial=0.0)))
        log_n = log(n_orders) if n_orders > 1 else 1.0
        self.params = feedexp3.FeedExp3Params(
            orders,
            pool.astype(np.int64),
            n_pools,
            K,
            k,
            self.max_grade + 1,
            n_patterns,
            eta=float(power(log_n / (k_star * n_pools), 2 / 3)),
            gamma=float(power(k_star * n_pools, 2 / 3) * power(log_n, 1 / 3)),
        )
        self.k_star = k_star
        self.state = feedexp3.FeedExp3State(np.zeros(n_orders), np.zeros(1, np.int64))

    def _solve(
        self, orders: NDArray[np.int64], pool: NDArray[np.int64], n_pools: int
    ) -> tuple[NDArray[np.float64], float]:
        m, k, grades = self.n_items, self.feedback.length(self.n_items), self.max_grade + 1
        outcomes = np.array(list(product(range(grades), repeat=m)))
        L = np.asarray(self.measure(orders[:, None, :], outcomes[None, :, :]), dtype=np.float64)
        L = L if self.measure.is_loss else -L
        scale = float(np.ptp(L)) or 1.0
        shows = np.zeros((n_pools, k), dtype=np.int64)
        shows[pool] = orders[:, :k]
        patterns = outcomes[:, shows] @ grades ** np.arange(k)  # outcome, pool
        H = np.concatenate(
            [(patterns == pattern).T[:, None, :] for pattern in range(1, grades**k)], axis=1
        ).reshape(-1, len(outcomes))
        inverse = pseudoinverse(H.astype(np.int64))
        for target in (L / scale, (L - L.sum(axis=0) / len(L)) / scale):
            K = _times(target, inverse)  # of all solutions the smallest
            if np.abs(K @ H - target).max() < 1e-9:
                return np.ascontiguousarray(K), scale
        raise ValueError(
            f"measure {self.measure.name!r} cannot be learnt from the top {k} of {m} items: its differences are not "
            "observable"
        )

    def scratch(self, n: int) -> tuple[Any, ...]:
        return (np.empty(len(self.params.orders)),)

    def blank_memo(self, n: int) -> Memo:
        return np.empty(1, np.int64), np.empty(1)

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        given = self.feedback.check(feedback, len(ranking.items))
        if (given != np.floor(given)).any():
            raise ValueError(f"feedback must be whole grades, got {given}")
        super().learn(ranking, given)

    def check_ticket(self, ranking: Ranking) -> None:
        chosen, chance = int(ranking.memo[0][0]), float(ranking.memo[1][0])
        if not 0 <= chosen < len(self.params.orders) or (self.params.orders[chosen] != ranking.items).any():
            raise ValueError(f"ranking.memo must hold the number of the order that was shown, got {chosen}")
        if not 0 < chance <= 1:
            raise ValueError(f"ranking.memo must hold a chance in (0, 1], got {chance}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if saved["t"][0] < 0:
            raise ValueError(f"saved state 't' must not be negative, got {saved['t'][0]}")

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        """An order gets the mean loss of all orders so far that have the items of both in the same order.

        A new item thus makes no difference at first, wherever it stands.
        """
        kept = set(origin[origin >= 0].tolist())
        known: dict[tuple[int, ...], list[float]] = {}
        for order, loss in zip(old.params.orders.tolist(), old.state.L_tilde.tolist(), strict=True):
            known.setdefault(tuple(i for i in order if i in kept), []).append(loss)
        for place, order in enumerate(origin[self.params.orders].tolist()):
            losses = known[tuple(i for i in order if i >= 0)]
            self.state.L_tilde[place] = sum(losses) / len(losses) * (old.scale / self.scale)
        self.state.t[:] = old.state.t

    def current(self, context: Any = None) -> NDArray[np.int64]:
        best: NDArray[np.int64] = self.params.orders[int(np.argmin(self.state.L_tilde))]
        return best.copy()

    def regret_bound(self, horizon: int) -> float:
        """4 (k_star N)^(2/3) (ln N)^(1/3) T^(2/3) in units of the measure; with pools for one N where they are pooled.

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
        >>> round(FeedExp3(n_items=3, measure="sum_loss").regret_bound(10_000) / 6)
        7446
        """
        T = whole("horizon", horizon, at_least=1)
        return float(4 * self.params.gamma * T ** (2 / 3) * self.scale)

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, k: int = 1, max_grade: int = 1, pooled: bool = False, **parameters: Any
    ) -> int:
        m = min(n_items, 8)  # the constructor refuses more, and the factorial of thousands is useless
        k, grades = min(k, m), max_grade + 1
        orders = math.factorial(m)
        pools = math.perm(m, k) if pooled else orders
        return int(8 * orders * (m + 3 + pools * (grades**k - 1)))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=3, measure="sum_loss")
        yield cls(n_items=4, measure="dcg", pooled=True)
        yield cls(n_items=3, measure="ndcg", k=2)
        yield cls(n_items=3, measure="pairwise_loss", k=2, max_grade=2, pooled=True)
        yield cls(n_items=1)


def _times(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product, summed term by term: a matrix library chooses the order by the machine."""
    total = np.zeros((len(left), right.shape[1]))
    for i in range(len(right)):
        total += left[:, i : i + 1] * right[i]
    return total
