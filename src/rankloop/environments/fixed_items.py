"""The same items for all users, who arrive one by one, each with a relevance vector of their own (2015).

Two kinds of users (independent grades; listed vectors) times two kinds of measures: separable ones, whose best
ranking in hindsight is a sort of the summed gains, and the rest, which follow every ranking by means of a table.
"""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop import measures
from rankloop.base import Floats, Ints, Ranking
from rankloop.compiled import CompiledEnvironment, EnvironmentKernels
from rankloop.environments.users import (
    Independent,
    Listed,
    Users,
    relevance_matrix,
)
from rankloop.kernels.discounts import EXP2, IDENTITY
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.measures import average_precision, err, gain, pairwise_loss
from rankloop.kernels.random import uniform
from rankloop.kernels.sorting import sorted_copy
from rankloop.measures import Measure

AVERAGE_PRECISION, ERR, PAIRWISE_LOSS = range(3)


class IndependentUsers(NamedTuple):
    """tails[phase, grade - 1, item] is the chance of that grade or better; phases change every `period` rounds."""

    tails: Floats
    period: int


class ListedUsers(NamedTuple):
    """The vectors themselves, in order, or drawn where `cumulative` holds their summed weights."""

    vectors: NDArray[Any]
    cumulative: Floats


class SeparableParams(NamedTuple):
    """Who comes and how a ranking is scored."""

    users: Any
    kind: int
    discount: Floats
    cutoff: int


class SeparableState(NamedTuple):
    """The user who is here, and the sums over all who came."""

    t: Ints  # users so far
    relevance: Floats  # of each item to this user
    gain: Floats  # of each item to this user
    offset: Floats  # of this user
    total_gain: Floats  # of each item, over all users
    total_offset: Floats  # over all users


class TabledParams(NamedTuple):
    """table[outcome, ranking] scores every ranking for every relevance vector; empty where there are too many."""

    users: Any
    measure: int
    cutoff: int
    max_grade: int  # of the users
    scale: int  # the highest grade that the measure knows
    table: Floats


class TabledState(NamedTuple):
    """The user who is here, and the sums over all who came."""

    t: Ints  # users so far
    relevance: Floats  # of each item to this user
    totals: Floats  # by ranking: its value, over all users


@hot
def _draw_independent(users: Any, t: int, key: Any, relevance: Any) -> None:
    phase = t // users.period % len(users.tails) if len(users.tails) > 1 else 0
    for i in range(len(relevance)):
        relevance[i] = uniform(key, i) < users.tails[phase, 0, i]
    for grade in range(1, users.tails.shape[1]):
        for i in range(len(relevance)):
            relevance[i] += uniform(key, i) < users.tails[phase, grade, i]


@hot
def _draw_listed(users: Any, t: int, key: Any, relevance: Any) -> None:
    row = t
    if len(users.cumulative) > 0:
        row = np.searchsorted(users.cumulative, uniform(key, 0) * users.cumulative[-1], side="right")
    for i in range(len(relevance)):
        relevance[i] = users.vectors[row, i]


@hot
def note_separable(params: Any, state: Any) -> None:
    """Take down what the user who is here thinks, and add it to the sums."""
    offset = gain(params.kind, state.relevance, params.discount, state.gain)
    state.offset[0] = offset
    state.total_offset[0] += offset
    for i in range(len(state.gain)):
        state.total_gain[i] += state.gain[i]
    state.t[0] += 1


@hot
def note_tabled(params: Any, state: Any) -> None:
    """Add the value of every ranking to the present user."""
    state.t[0] += 1
    if len(state.totals) == 0:
        return
    outcome = 0
    for i in range(len(state.relevance)):
        outcome = outcome * (params.max_grade + 1) + int(state.relevance[i])
    for ranking in range(len(state.totals)):
        state.totals[ranking] += params.table[outcome, ranking]


@hot
def arrive_independent_separable(params: Any, state: Any, key: Any) -> None:
    """A user with independent grades, for a separable measure."""
    _draw_independent(params.users, state.t[0], key, state.relevance)
    note_separable(params, state)


@hot
def arrive_independent_tabled(params: Any, state: Any, key: Any) -> None:
    """A user with independent grades, for any measure."""
    _draw_independent(params.users, state.t[0], key, state.relevance)
    note_tabled(params, state)


@hot
def arrive_listed_separable(params: Any, state: Any, key: Any) -> None:
    """A listed user, for a separable measure."""
    _draw_listed(params.users, state.t[0], key, state.relevance)
    note_separable(params, state)


@hot
def arrive_listed_tabled(params: Any, state: Any, key: Any) -> None:
    """A listed user, for any measure."""
    _draw_listed(params.users, state.t[0], key, state.relevance)
    note_tabled(params, state)


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """The relevance of the first items shown."""
    for position in range(len(revealed)):
        revealed[position] = state.relevance[items[position]]


@hot
def value_separable(params: Any, state: Any, items: Any) -> Any:
    """f(order) . g(relevance) + offset(relevance)."""
    total = 0.0
    for position in range(params.cutoff):
        total += params.discount[position] * state.gain[items[position]]
    return total + state.offset[0]


@hot
def value_tabled(params: Any, state: Any, items: Any) -> float:
    """Straight from the definition."""
    if params.measure == AVERAGE_PRECISION:
        return average_precision(items, state.relevance, params.cutoff)
    if params.measure == ERR:
        return err(items, state.relevance, params.cutoff, params.scale)
    return pairwise_loss(items, state.relevance)


@kernel
def hindsight_separable(params: Any, state: Any) -> Any:
    """The largest summed gains go to the best positions (2015, A3: the same sort for losses and gains)."""
    rising = sorted_copy(state.total_gain)
    total = 0.0
    for position in range(params.cutoff):
        total += params.discount[position] * rising[len(rising) - 1 - position]
    return total + state.total_offset[0]


@kernel
def hindsight_tabled(params: Any, state: Any) -> float:
    """The best of all rankings; NaN where they are too many to follow."""
    best = np.nan
    for ranking in range(len(state.totals)):
        total = state.totals[ranking]
        better = total < best if params.measure == PAIRWISE_LOSS else total > best
        if better or ranking == 0:
            best = total
    return best


_TABLED = {
    "average_precision": AVERAGE_PRECISION,
    "err": ERR,
    "pairwise_loss": PAIRWISE_LOSS,
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
    >>> world = FixedItems([[1, 0, 0], [0, 1, 0], [1, 0, 1]], measure="dcg")
    >>> world.best().items
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
            users = IndependentUsers(self.users.tails, self.users.period)
            arrive: Any = arrive_independent_separable if separable else arrive_independent_tabled
        else:
            weights = self.users.weights
            users = ListedUsers(self.users.vectors, np.empty(0) if weights is None else np.cumsum(weights))
            arrive = arrive_listed_separable if separable else arrive_listed_tabled
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
        self.params = SeparableParams(users, kind, self.scored.discount(m), cutoff)
        self.state = SeparableState(
            np.zeros(1, np.int64), np.zeros(m), np.zeros(m), np.zeros(1), np.zeros(m), np.zeros(1)
        )
        self.kernels = EnvironmentKernels(arrive, respond, value_separable, hindsight_separable)

    def _set_up_tabled(self, users: Any, arrive: Any) -> None:
        m, grade = self.n_items, self.users.max_grade
        table = self._table()
        cutoff = m if self.scored.cutoff is None else min(self.scored.cutoff, m)
        self.params = TabledParams(
            users, _TABLED[self.scored.family], cutoff, grade, self.scored.max_grade or grade, table
        )
        self.state = TabledState(np.zeros(1, np.int64), np.zeros(m), np.zeros(table.shape[1]))
        self.kernels = EnvironmentKernels(arrive, respond, value_tabled, hindsight_tabled)

    def _table(self) -> Floats:
        if not self._few_outcomes():
            return np.empty((0, 0))
        orders, outcomes = self._orders_and_outcomes()
        return np.asarray(self.scored(orders[None, :, :], outcomes[:, None, :]), dtype=np.float64)

    def _few_outcomes(self) -> bool:
        m, grade = self.n_items, self.users.max_grade
        whole_grades = isinstance(self.users, Independent) or self.users.vectors.dtype == np.int8
        return whole_grades and m <= 8 and math.factorial(m) * (grade + 1) ** m <= _LARGEST_TABLE

    def _orders_and_outcomes(self) -> tuple[Ints, Ints]:
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
            # Exchanging two independent items only trades their probabilities
            return _sorted(users.tails[0, 0])
        return self._best_of_all()

    def _best_of_all(self) -> Ranking:
        if not self._few_outcomes():
            raise ValueError(
                f"the best ranking for {self.measure!r} is found by trying all {self.n_items}! rankings: too many"
            )
        orders, outcomes = self._orders_and_outcomes()
        values = np.asarray(self.scored(orders[:, None, :], outcomes[None, :, :])) @ self._chances(outcomes)
        return Ranking(orders[int(values.argmin() if self.is_loss else values.argmax())])

    def _chances(self, outcomes: Ints) -> Floats:
        users = self.users
        if isinstance(users, Listed):
            base = (users.max_grade + 1) ** np.arange(self.n_items)[::-1]
            return np.bincount(
                (users.vectors @ base).astype(np.int64), weights=users.weights, minlength=len(outcomes)
            ).astype(np.float64)
        ends = np.ones((len(users.tails), 1, self.n_items))
        chance = -np.diff(np.concatenate([ends, users.tails, 0 * ends], axis=1), axis=1)  # phase, grade, item
        picked = chance[:, outcomes, np.arange(self.n_items)]  # phase, outcome, item
        mean: Floats = picked.prod(axis=2).mean(axis=0)
        return mean


def _sorted(score: Floats) -> Ranking:
    return Ranking(np.argsort(-score, kind="stable"))
