"""TopFTRL: rank fixed items from the relevance of the top, without a horizon, among friends and adversaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels.elementary import power
from rankloop.kernels.rankers import top_ftrl
from rankloop.kernels.solvers import nested_shuffles, permutahedron
from rankloop.measures import Measure
from rankloop.rankers.constants import learnable
from rankloop.rankers.some_items import SumsByItem, with_newcomers
from rankloop.servable import carried_sums

_LEAST_CHANCE = 1e-100  # a ticket with less was not issued by this ranker


class TopFTRL(SumsByItem):
    """Follow the regularised leader over lists, exploring only what is not clear yet.

    Each round draws a list whose mean discounts maximise the gains estimated so far minus a regulariser. Items whose
    place is clear stand there for sure, the others are shuffled with their neighbours. Now and then an item that would
    be seen too seldom is moved to the top: the less clear its place, the more often. Regret of order T^(2/3) whatever
    users do, far less where they come from one population, and no horizon, rate or share of exploration to choose.

    Parameters
    ----------
    n_items : int
        How many items there are, m.
    measure : str or Measure, optional
        "sum_loss", "pairwise_loss", "dcg" or "precision@k" (also "dcg@k"): the measure of the ranking.
    k : int, optional
        How many top items reveal their relevance. An item to explore then moves to position k, not to the top.
    max_grade : int, optional
        The largest relevance that can come back, n; 1 for binary relevance.

    Notation
    --------
    m: n_items, G_hat: state.G_hat, beta_t: state.beta, f: params.f, G: params.largest_gain, gamma: state.explore,
    P: state.observed, s_t: state.cost, kappa, delta and c: `KAPPA`,
    `NEAREST` and `CAUTION` of `rankloop.kernels.rankers.top_ftrl`.

    Departures
    ----------
    Stability-penalty matching of Tsuchiya and Ito (2024) for lists is ours: Euclidean regulariser on the permutahedron,
    exploration by item, and an implicit step of beta, so that no condition on the growth of the regulariser is needed.
    t counts the rounds with feedback.

    References
    ----------
    T. Tsuchiya and S. Ito, A simple and adaptive learning rate for FTRL in online learning with minimax regret of
    Theta(T^(2/3)) and its application to best-of-both-worlds, NeurIPS 2024.
    S. Chaudhuri and A. Tewari, Online ranking with top-1 feedback, AISTATS 2015.

    Examples
    --------
    >>> ranker = TopFTRL(n_items=4, measure="dcg")
    >>> rng = np.random.default_rng(1)
    >>> shown = ranker.rank(rng=rng)
    >>> shown.propensities
    array([0.25, 0.25, 0.25, 0.25])
    >>> ranker.learn(shown, [1.0])  # the relevance of shown.items[0]
    >>> bool(ranker.current()[0] == shown.items[0])
    True
    """

    summary = "Observes the relevance of the top items, and explores what is not clear yet."
    estimate_from = "weights"
    kernels = RankerKernels(top_ftrl.rank, top_ftrl.learn)
    n_items: int

    def __init__(
        self, *, n_items: int, measure: str | Measure = "dcg", k: int = 1, max_grade: int = 1
    ) -> None:
        m = whole("n_items", n_items, at_least=1)
        k = whole("k", k, at_least=1, at_most=m)
        self.learnable = learnable(measure, max_grade=max_grade, n_items=m)
        self.n_items = self.n_positions = m
        self.max_grade = max_grade
        self.feedback = TopK(k)
        weights = np.asarray(self.learnable.measure.discount(m), np.float64)
        f = weights.max() - weights if self.learnable.measure.is_loss else weights - weights.min()
        farthest = 0.5 * sum((f - sum(f.tolist()) / m) ** 2)
        gain = self.learnable.largest_gain
        self.params = top_ftrl.TopFTRLParams(f, k, self.learnable.exponential, gain, float(farthest))
        self.state = top_ftrl.TopFTRLState(
            t=np.zeros(1, np.int64),
            G_hat=np.zeros(m),
            beta=np.array([self._first_beta()]),
            order=np.arange(m, dtype=np.int64),
            breaks=np.ones(m),
            explore=np.zeros(m),
            observed=np.ones(m),
            cost=np.zeros(1),
        )
        top_ftrl.prepare(self.params, self.state, self.scratch(m))

    def _first_beta(self) -> float:
        # The least for which the chances that exploration asks for never sum to more than 1.
        spread = float(self.params.f[0])
        m, G = self.n_items, self.params.largest_gain
        return self._times() * m * m * G / (8.0 * top_ftrl.CAUTION * spread) if spread > 0.0 else 1.0

    def _times(self) -> int:
        return 1 if self.params.k == 1 else 2

    def scratch(self, n: int) -> tuple[Any, ...]:
        places = np.empty(n, np.int64)
        return permutahedron.room(n), nested_shuffles.room(n), places, (np.empty(n), np.empty(n))

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(self.params.k),)

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def check_ticket(self, ranking: Ranking) -> None:
        chances = ranking.memo[0]
        if not (((chances >= _LEAST_CHANCE) & (chances <= 1.0)) | (chances == 0.0)).all():
            raise ValueError(f"ranking.memo must hold chances in (0, 1], or 0, got {chances}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if saved["t"][0] < 0 or saved["beta"][0] < self._first_beta():
            raise ValueError(
                f"saved state 't' must not be negative and 'beta' at least {self._first_beta()}, "
                f"got {saved['t'][0]} and {saved['beta'][0]}"
            )
        if sorted(saved["order"].tolist()) != list(range(self.n_items)):
            raise ValueError(f"saved state 'order' must be all items, none twice, got {saved['order']}")
        state = top_ftrl.TopFTRLState(**{name: np.array(saved[name]) for name in self.state._fields})
        permutahedron.sort_again(state.G_hat, state.order)
        top_ftrl.prepare(self.params, state, self.scratch(self.n_items))
        for name in ("order", "breaks", "explore", "observed", "cost"):
            if not np.allclose(getattr(state, name), saved[name], rtol=1e-6, atol=1e-9):
                raise ValueError(
                    f"saved state {name!r} does not follow from 'G_hat' and 'beta', got {saved[name]}"
                )

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        state = self.state
        state.G_hat[:] = carried_sums(old.state.G_hat, origin)
        state.t[:] = old.state.t
        state.beta[0] = max(float(old.state.beta[0]), self._first_beta())
        permutahedron.sort_again(state.G_hat, state.order)
        top_ftrl.prepare(self.params, state, self.scratch(self.n_items))
        self.carry_missed(old, origin)

    def absorb(
        self,
        part: Any,
        items: NDArray[np.int64],
        positions: NDArray[np.int64],
        ranking: Ranking,
        feedback: NDArray[np.float64],
    ) -> None:
        state = self.state
        self.put_back(state.G_hat, part.state.G_hat - state.G_hat[items], items)
        state.t[0] += 1
        state.beta[0] = max(float(part.state.beta[0]), float(state.beta[0]))
        permutahedron.sort_again(state.G_hat, state.order)
        top_ftrl.prepare(self.params, state, self.scratch(self.n_items))

    def translate(self, ranking: Ranking, before: NDArray[np.int64]) -> Ranking | None:
        """With the items that are new at its end, as long as those that reveal their relevance are still there."""
        return with_newcomers(ranking, before, n_items=self.n_items, n_top=self.params.k)

    def chances(self) -> NDArray[np.float64]:
        """The chance of item i at position j in the next list.

        Returns
        -------
        ndarray of float
            Positions x items; exploration counts.

        Examples
        --------
        >>> TopFTRL(n_items=3).chances().round(3)
        array([[0.333, 0.333, 0.333],
               [0.333, 0.333, 0.333],
               [0.333, 0.333, 0.333]])
        """
        m = self.n_items
        found = np.empty((m, m))
        for place, item in enumerate(self.state.order):
            found[:, item] = self._chances_of(place)
        return found

    def _chances_of(self, place: int) -> NDArray[np.float64]:
        row = np.empty(self.n_items)
        top_ftrl.chances_of(self.params, self.state, self.scratch(self.n_items), place, row)
        return row

    def mean_by_position(
        self, context: Any, ranking: Ranking, by_position: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Exact, from the chances of the next list."""
        place_of = np.argsort(self.state.order)
        shown = ranking.items[: self.params.k]
        chances = np.stack([self._chances_of(int(place_of[item])) for item in shown])
        means = [[sum((row * one).tolist()) for one in chances] for row in by_position]
        return np.array(means)

    def current(self, context: Any = None) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.state.order.copy()
        return found

    def regret_bound(self, rounds: int) -> float:
        """Of order h^(1/3) (a T)^(2/3), with lower terms; docs/rankers/TopFTRL.md derives it.

        Parameters
        ----------
        rounds : int
            The number of rounds, T.

        Returns
        -------
        float
            The bound on the expected regret.

        Examples
        --------
        >>> round(TopFTRL(n_items=10, measure="dcg").regret_bound(10_000))
        2815
        """
        T = whole("rounds", rounds, at_least=1)
        h, G, spread = self.params.farthest, self.params.largest_gain, float(self.params.f[0])
        if spread == 0.0:
            return 0.0
        kappa, first = top_ftrl.KAPPA, self._first_beta()
        a = self.n_items * G * (0.5 * self._times() * top_ftrl.CAUTION * G * spread) ** 0.5
        last = float(power(float(power(first, 1.5)) + 1.5 * kappa * a * T / h, 2 / 3))
        return float(first * h + (1 + kappa) * (a / first**0.5 + h / kappa * (last - first)))

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return 8 * 20 * n_items + nested_shuffles.room_bytes(n_items)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=4)
        yield cls(n_items=5, measure="sum_loss")
        yield cls(n_items=7, measure="precision@3", k=3)
        yield cls(n_items=3, measure="dcg", max_grade=4, k=2)
        yield cls(n_items=6, measure="dcg@3")
        yield cls(n_items=2, measure="pairwise_loss")
        yield cls(n_items=1)
