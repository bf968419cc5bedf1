"""FeedExp3: the general forecaster for learnable games, over all m! orders (2015, Corollary 6).

With L = K H, where H holds what each action may reveal of each outcome, the feedback on action I, divided by the
chance of playing it, is an unbiased estimate of every action's loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop import measures
from rankloop.arguments import whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import CompiledRanker, RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels.elementary import exp, log, power
from rankloop.kernels.jit import hot
from rankloop.kernels.random import below, uniform
from rankloop.measures import Measure


class FeedExp3Params(NamedTuple):
    """The actions, which of them count as one when looking (pooled), and K with one column for each (pool, pattern)."""

    orders: Ints
    pool: Ints
    n_pools: int
    K: Floats
    k: int
    n_grades: int
    n_patterns: int  # that can be seen of an action, without the one of zeros only
    eta: float  # times t^(-2/3)
    gamma: float  # times t^(-1/3)


class FeedExp3State(NamedTuple):
    """Summed estimates of the losses, and the rounds."""

    L_tilde: Floats
    t: Ints


@hot
def _weigh(params: Any, state: Any, weights: Any) -> Any:
    n = len(weights)
    eta = params.eta * power(float(state.t[0] + 1), -2.0 / 3.0)
    least = state.L_tilde[0]
    for i in range(1, n):
        least = min(least, state.L_tilde[i])
    total = 0.0
    for i in range(n):
        weights[i] = exp(-eta * (state.L_tilde[i] - least))
        total += weights[i]
    return total


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """Draw an action; the memo keeps its number and the chance that its pool was played."""
    (weights,) = scratch
    n = len(weights)
    gamma = min(1.0, params.gamma * power(float(state.t[0] + 1), -1.0 / 3.0))
    total = _weigh(params, state, weights)
    explored = uniform(key, 0) < gamma
    chosen = n - 1
    if explored:
        chosen = below(key, 1, n)
    else:
        mark = uniform(key, 1) * total
        for i in range(n):
            mark -= weights[i]
            if mark < 0.0:
                chosen = i
                break
    chance = 0.0
    for i in range(n):
        if params.pool[i] == params.pool[chosen]:
            chance += (1.0 - gamma) * weights[i] / total + gamma / n
    for position in range(len(items)):
        items[position] = params.orders[chosen, position]
    memo[0][0] = chosen
    memo[1][0] = min(chance, 1.0)
    return explored


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, signal: Any
) -> None:
    """The estimates of all actions gain k(i, I) h / p(I)."""
    pattern = 0
    for place in range(params.k - 1, -1, -1):
        pattern = pattern * params.n_grades + int(signal[place])
    state.t[0] += 1
    if pattern == 0:
        return  # H is zero there
    column = params.pool[memo[0][0]] * params.n_patterns + pattern - 1
    for i in range(len(state.L_tilde)):
        state.L_tilde[i] += params.K[i, column] / memo[1][0]


Whole = NDArray[Any]  # of Python's whole numbers, which have any size


def pseudoinverse(H: Ints) -> Floats:
    """The Moore-Penrose inverse of `H`, computed in whole numbers, so that it is the same on every machine.

    >>> pseudoinverse(np.array([[1, 1], [1, 1], [0, 0]]))
    array([[0.25, 0.25, 0.  ],
           [0.25, 0.25, 0.  ]])
    """
    distinct, copy, count = np.unique(H, axis=0, return_inverse=True, return_counts=True)
    rows = distinct.astype(object)
    R = rows[_independent(rows)]
    if not len(R):
        return np.zeros(H.shape[::-1])
    # H = B R, so H^+ = R^T (R R^T)^-1 (B^T B)^-1 B^T, each distinct row counted as often as it stands in H. With the
    # numerators of (R R^T)^-1, of B and of (B^T B)^-1, all denominators but the last determinant cancel.
    adjugate, _ = _inverse(R @ R.T)
    B = rows @ R.T @ adjugate
    shared = math.gcd(*B.ravel().tolist())
    B //= shared
    inner, determinant = _inverse((B.T * count.astype(object)) @ B)
    exact = R.T @ adjugate @ inner @ B.T
    rounded = np.array([[entry / (determinant * shared) for entry in row] for row in exact.tolist()])
    return np.ascontiguousarray(rounded[:, copy.ravel()])


def _independent(matrix: Whole) -> list[int]:
    """The first rows that are independent of those before them."""
    chosen: list[int] = []
    reduced: list[tuple[int, Whole]] = []  # a column, and a row that is not 0 there
    for i, row in enumerate(matrix):
        for pivot, known in reduced:
            if row[pivot]:
                row = row * known[pivot] - known * row[pivot]
        found = np.flatnonzero(row)
        if len(found):
            row = row // math.gcd(*row.tolist())
            reduced.append((int(found[0]), row))
            chosen.append(i)
    return chosen


def _inverse(matrix: Whole) -> tuple[Whole, int]:
    """(numerators, denominator) of the inverse of a positive definite matrix, without fractions (Bareiss 1968)."""
    n = len(matrix)
    work = np.concatenate([matrix, np.eye(n, dtype=np.int64).astype(object)], axis=1)
    before = 1
    for i in range(n):
        pivot = work[i, i]  # a leading minor, so it is positive
        others = np.arange(n) != i
        work[others] = (work[others] * pivot - np.outer(work[others, i], work[i])) // before
        before = pivot
    return work[:, n:], int(before)


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
    kernels = RankerKernels(rank, learn)

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
        self.params = FeedExp3Params(
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
        self.state = FeedExp3State(np.zeros(n_orders), np.zeros(1, np.int64))

    def _solve(self, orders: Ints, pool: Ints, n_pools: int) -> tuple[Floats, float]:
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

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
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

    def current(self, context: Any = None) -> Ints:
        best: Ints = self.params.orders[int(np.argmin(self.state.L_tilde))]
        return best.copy()

    def regret_bound(self, horizon: int) -> float:
        """4 (k_star N)^(2/3) (ln N)^(1/3) T^(2/3) for T = `horizon`, in units of the measure; pooled, pools for one N.

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


def _times(left: Floats, right: Floats) -> Floats:
    """The product, summed term by term: a matrix library chooses the order by the machine."""
    total = np.zeros((len(left), right.shape[1]))
    for i in range(len(right)):
        total += left[:, i : i + 1] * right[i]
    return total
