"""The same items for all users, who arrive one by one, each with a relevance vector of their own (2015)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop import measures
from rankloop.base import Ranking
from rankloop.compiled import CompiledEnvironment, EnvironmentKernels
from rankloop.environments.users import (
    Independent,
    Listed,
    Users,
    bernoulli,
    graded,
    listed,
    noisy_halves,
    relevance_matrix,
    switching,
)
from rankloop.kernels.environments import fixed_items as kernels
from rankloop.kernels.gain_kinds import EXP2, IDENTITY
from rankloop.measures import Measure

_TABLED = {
    "average_precision": kernels.AVERAGE_PRECISION,
    "err": kernels.ERR,
    "pairwise_loss": kernels.PAIRWISE_LOSS,
}
_LARGEST_TABLE = 1 << 20


class FixedItems(CompiledEnvironment):
    """Users who arrive one by one and are shown the same items.

    Parameters
    ----------
    relevance : array_like or Users
        A users x items matrix, one round a row, or users from `rankloop.environments.users`.
    measure : str or Measure, optional
        What a ranking is worth: a name such as "dcg" or "precision@3", or a `Measure`.

    Notes
    -----
    The regret of measures that are not of the form f(order) . g(relevance) (average_precision, err, and pairwise_loss
    with grades) needs every ranking to be tried on every relevance vector. Up to six items or so that is done; beyond,
    `hindsight` is NaN and so is the regret.

    Examples
    --------
    >>> people = FixedItems([[1, 0, 0], [0, 1, 0], [1, 0, 1]], measure="dcg")
    >>> people.best().items
    array([0, 1, 2])
    """

    reveals: ClassVar[str] = "relevance"
    n_items: int

    def __init__(self, relevance: ArrayLike | Users, *, measure: str | Measure = "dcg") -> None:
        if isinstance(relevance, Independent | Listed):
            self.users: Users = relevance
        else:
            self.users = Listed(relevance_matrix("relevance", relevance), None)
        scored = measures.get(measure)
        if scored.family == "precision":
            scored.within(self.users.n_items)  # with fewer items it would be another measure
        grade = self.users.max_grade
        binary = self.users.is_binary
        if scored.binary and not binary:
            raise ValueError(
                f"measure {scored.name!r} takes relevance 0 or 1, the users give grades up to {grade}"
            )
        if scored.family == "err":
            scored = scored.graded(max(grade, scored.max_grade or 1))
        elif scored.max_grade is not None and grade > scored.max_grade:
            raise ValueError(
                f"measure {scored.name!r} takes relevance up to {scored.max_grade}, users give up to {grade}"
            )
        self.scored = scored
        self.measure = scored.name
        self.is_loss = scored.is_loss
        self.max_grade = grade
        self.n_items = self.n_positions = self.users.n_items
        separable = scored.separable and (binary or scored.family != "pairwise_loss")
        self._separable = separable
        users: Any
        if isinstance(self.users, Independent):
            users = kernels.IndependentUsers(self.users.tails, self.users.period)
            arrive: Any = (
                kernels.arrive_independent_separable if separable else kernels.arrive_independent_tabled
            )
        else:
            weights = self.users.weights
            users = kernels.ListedUsers(
                self.users.vectors, np.empty(0) if weights is None else np.cumsum(weights)
            )
            arrive = kernels.arrive_listed_separable if separable else kernels.arrive_listed_tabled
        if separable:
            self._set_up_separable(users, arrive)
        else:
            self._set_up_tabled(users, arrive)

    def _set_up_separable(self, users: Any, arrive: Any) -> None:
        m = self.n_items
        cutoff = m if self.scored.cutoff is None else min(self.scored.cutoff, m)
        kind = self.scored.kind
        if kind == EXP2 and self.users.is_binary:
            kind = IDENTITY  # 2^r - 1 = r, and copying is quicker
        self.params = kernels.SeparableParams(users, kind, self.scored.discount(m), cutoff)
        self.state = kernels.SeparableState(
            np.zeros(1, np.int64), np.zeros(m), np.zeros(m), np.zeros(1), np.zeros(m), np.zeros(1)
        )
        self.kernels = EnvironmentKernels(
            arrive, kernels.respond, kernels.value_separable, kernels.hindsight_separable
        )

    def _set_up_tabled(self, users: Any, arrive: Any) -> None:
        m, grade = self.n_items, self.users.max_grade
        table = self._table()
        cutoff = m if self.scored.cutoff is None else min(self.scored.cutoff, m)
        self.params = kernels.TabledParams(
            users, _TABLED[self.scored.family], cutoff, grade, self.scored.max_grade or grade, table
        )
        self.state = kernels.TabledState(np.zeros(1, np.int64), np.zeros(m), np.zeros(table.shape[1]))
        self.kernels = EnvironmentKernels(
            arrive, kernels.respond, kernels.value_tabled, kernels.hindsight_tabled
        )

    def _table(self) -> NDArray[np.float64]:
        if not self._few_outcomes():
            return np.empty((0, 0))
        orders, outcomes = self._orders_and_outcomes()
        return np.asarray(self.scored(orders[None, :, :], outcomes[:, None, :]), dtype=np.float64)

    def _few_outcomes(self) -> bool:
        m, grade = self.n_items, self.users.max_grade
        whole_grades = isinstance(self.users, Independent) or self.users.vectors.dtype == np.int8
        return whole_grades and m <= 8 and math.factorial(m) * (grade + 1) ** m <= _LARGEST_TABLE

    def _orders_and_outcomes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        m, grade = self.n_items, self.users.max_grade
        return np.array(list(permutations(range(m)))), np.array(list(product(range(grade + 1), repeat=m)))

    def start_counting(self) -> None:
        counted = ("total_gain", "total_offset") if self._separable else ("totals",)
        for name in counted:
            getattr(self.state, name)[...] = 0

    @property
    def remaining(self) -> int | None:
        if isinstance(self.users, Listed) and self.users.weights is None:
            return len(self.users.vectors) - int(self.state.t[0])
        return None

    def arrive(self, *, rng: np.random.Generator) -> None:
        if self.remaining == 0:
            raise ValueError("all users of the relevance matrix have arrived; restart() begins again")
        super().arrive(rng=rng)

    def best(self, context: Any = None) -> Ranking:
        """The best fixed ranking: for listed users over the whole list, otherwise in expectation over all phases.

        Where it is not a sort it is found by trying all rankings, up to six items or so; beyond, a ValueError.
        """
        users = self.users
        if isinstance(users, Listed):
            if self._separable:
                shares = np.ones(len(users.vectors)) if users.weights is None else users.weights
                return _sorted(shares @ self.scored.gain(users.vectors.astype(np.float64)))
        elif self._separable and self.scored.linear:
            steps = np.diff(self.scored.gain(np.arange(users.max_grade + 1.0)))
            return _sorted(np.einsum("pgi,g->i", users.tails, steps))
        elif len(users.tails) == 1 and users.is_binary:
            return _sorted(
                users.tails[0, 0]
            )  # exchanging two independent items only trades their probabilities
        return self._best_of_all()

    def _best_of_all(self) -> Ranking:
        if not self._few_outcomes():
            raise ValueError(
                f"the best ranking for {self.measure!r} is found by trying all {self.n_items}! rankings: too many"
            )
        orders, outcomes = self._orders_and_outcomes()
        values = np.asarray(self.scored(orders[:, None, :], outcomes[None, :, :])) @ self._chances(outcomes)
        return Ranking(orders[int(values.argmin() if self.is_loss else values.argmax())])

    def _chances(self, outcomes: NDArray[np.int64]) -> NDArray[np.float64]:
        users = self.users
        if isinstance(users, Listed):
            base = (users.max_grade + 1) ** np.arange(self.n_items)[::-1]
            return np.bincount(
                (users.vectors @ base).astype(np.int64), weights=users.weights, minlength=len(outcomes)
            ).astype(np.float64)
        ends = np.ones((len(users.tails), 1, self.n_items))
        chance = -np.diff(np.concatenate([ends, users.tails, 0 * ends], axis=1), axis=1)  # phase, grade, item
        picked = chance[:, outcomes, np.arange(self.n_items)]  # phase, outcome, item
        mean: NDArray[np.float64] = picked.prod(axis=2).mean(axis=0)
        return mean

    @classmethod
    def examples(cls) -> Iterator[Self]:
        matrix = np.random.default_rng(1).integers(0, 2, (400, 4))
        yield cls(matrix, measure="dcg")
        yield cls(noisy_halves(n_items=5), measure="ndcg@3")
        yield cls(bernoulli([0.9, 0.5, 0.2]), measure="average_precision")
        yield cls(switching([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]], period=7), measure="sum_loss")
        yield cls(graded([[0.2, 0.3, 0.5], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8]]), measure="pairwise_loss")
        yield cls(listed([[1, 0, 2, 0], [0, 1, 0, 3]], weights=[1, 2]), measure="err")
        yield cls(listed([[1, 0, 1], [0, 1, 0]]), measure="auc")
        yield cls(noisy_halves(n_items=1), measure="precision@1")


def _sorted(score: NDArray[np.float64]) -> Ranking:
    return Ranking(np.argsort(-score, kind="stable"))
