"""Adversaries: sequences of users that are hard to learn from, and worlds that cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankloop import measures
from rankloop.arguments import one_of, whole
from rankloop.base import Floats, Ints, Ranking
from rankloop.compiled import EnvironmentKernels
from rankloop.environments.fixed_items import FixedItems, note_separable, note_tabled
from rankloop.environments.users import Listed, listed
from rankloop.kernels.jit import hot
from rankloop.kernels.random import uniform

# Two worlds that top-1 feedback cannot tell apart, although different rankings are best in them (2015, Lemma 11).
#
# Take the difference of the first and the last row of the measure's matrix over all relevance vectors, remove what
# the relevance of single items can explain, and add what is left to (world 0) or take it from (world 1) the uniform
# distribution. Every item is then relevant with the same probability in both worlds, so a learner that observes the
# relevance of one item a round behaves alike in both, and loses in one what it gains in the other: linear regret.


_FEWEST_ITEMS = {"ndcg": 3, "average_precision": 3, "auc": 4}
_MOST_ITEMS = 6


def adversary(measure: str, *, n_items: int | None = None, world: int = 0) -> Listed:
    """One of the two worlds, `world` 0 or 1, that make `measure` unlearnable from top-1 feedback.

    With as few items as it takes, or `n_items`.

    Examples
    --------
    >>> zero, one = (adversary("ndcg", world=world) for world in (0, 1))
    >>> bool(np.allclose(zero.weights @ zero.vectors, one.weights @ one.vectors))
    True
    """
    outcomes, _, direction = _unexplained(measure, n_items)
    if world not in (0, 1):
        raise ValueError(f"world must be 0 or 1, got {world!r}")
    return listed(outcomes, weights=_uniform_plus(direction, 1 if world == 0 else -1))


def forced_regret(measure: str, *, n_items: int | None = None) -> float:
    """Regret per round in `measure`, averaged over the two worlds, of every learner from top-1 feedback.

    Averaged over the worlds, relevance is uniform and all rankings have the same value, so nothing a learner plays
    matters: what it loses is half the distance between the best of world 0 and the best of world 1.
    `n_items` as in `adversary`.

    Examples
    --------
    >>> round(forced_regret("ndcg"), 4)
    0.0242
    """
    _, values, direction = _unexplained(measure, n_items)
    sign = -1 if measures.get(measure).is_loss else 1
    best = [(sign * values @ _uniform_plus(direction, side)).max() for side in (1, -1)]
    return float(np.mean(best) - sign * values.mean())


def _uniform_plus(direction: Floats, side: int) -> Floats:
    shares = 1 / len(direction) + side * direction
    return np.where(shares < 1e-12, 0.0, shares)  # the extreme entry is zero up to rounding


def _unexplained(measure: str, n_items: int | None) -> tuple[Ints, Floats, Floats]:
    """All outcomes, the value of each ranking for each, and the largest step from uniform along the residual."""
    scored = measures.get(measure)
    fewest = _FEWEST_ITEMS[one_of("measure", scored.name, _FEWEST_ITEMS)]
    # Not more than that, because all rankings are listed.
    m = fewest if n_items is None else whole("n_items", n_items, at_least=fewest, at_most=_MOST_ITEMS)
    outcomes = np.array(list(product((0, 1), repeat=m)))
    orders = np.array(list(permutations(range(m))))
    values = np.asarray(scored(orders[:, None, :], outcomes[None, :, :]))
    # The span of all signal matrices, erratum A19
    explained = np.column_stack([np.ones(len(outcomes)), outcomes])
    difference = values[0] - values[-1]
    residual = difference - explained @ np.linalg.lstsq(explained, difference, rcond=None)[0]
    return outcomes, values, residual / (np.abs(residual).max() * len(outcomes))


class TwoWorldsUsers(NamedTuple):
    """Relevance vectors, their summed chances in each world, and the world; -1 where chance decides."""

    vectors: NDArray[Any]
    cumulative: Floats
    world: int


class TwoWorldsSeparableState(NamedTuple):
    """As of fixed items, and the world."""

    t: Ints
    relevance: Floats
    gain: Floats
    offset: Floats
    total_gain: Floats
    total_offset: Floats
    world: Ints  # decided when the first user comes


class TwoWorldsTabledState(NamedTuple):
    """As of fixed items, and the world."""

    t: Ints
    relevance: Floats
    totals: Floats
    world: Ints  # decided when the first user comes


@hot
def _draw(users: Any, state: Any, key: Any) -> None:
    if state.t[0] == 0:
        state.world[0] = users.world if users.world >= 0 else int(uniform(key, 1) < 0.5)
    summed = users.cumulative[state.world[0]]
    row = np.searchsorted(summed, uniform(key, 0) * summed[-1], side="right")
    for i in range(len(state.relevance)):
        state.relevance[i] = users.vectors[row, i]


@hot
def arrive_separable(params: Any, state: Any, key: Any) -> None:
    """A user of the world, for a separable measure."""
    _draw(params.users, state, key)
    note_separable(params, state)


@hot
def arrive_tabled(params: Any, state: Any, key: Any) -> None:
    """A user of the world, for any measure."""
    _draw(params.users, state, key)
    note_tabled(params, state)


class TwoWorlds(Protocol):
    """Relevance vectors, their probabilities in both worlds, and the regret that no learner can avoid."""

    @property
    def outcomes(self) -> Sequence[Any]: ...
    @property
    def chances(self) -> tuple[Sequence[Any], Sequence[Any]]: ...
    @property
    def forced(self) -> Any: ...


class HopelessVerdict(Protocol):
    """A verdict of `rankloop.games` about a ranking game, or anything else that names a measure and two worlds."""

    @property
    def measure(self) -> str | None: ...
    @property
    def worlds(self) -> TwoWorlds | None: ...


class Indistinguishable(FixedItems):
    """Users of one of two worlds in which feedback looks alike, although different orders are best.

    Parameters
    ----------
    verdict : HopelessVerdict
        A hopeless verdict about a ranking game, from `games.classify`.
    world : int, optional
        0 or 1; None draws one for the first user, so that on average over seeds every learner loses at
        least `forced_regret` a round, whatever it does.

    Examples
    --------
    >>> from rankloop import games
    >>> verdict = games.classify(games.ranking_game(measure="ndcg", n_items=3, k=1))
    >>> world = Indistinguishable(verdict)
    >>> world.measure, round(world.forced_regret, 4)
    ('ndcg', 0.0357)
    """

    def __init__(self, verdict: HopelessVerdict, *, world: int | None = None) -> None:
        worlds = verdict.worlds
        if worlds is None:
            class_ = getattr(verdict, "class_", "unknown")
            raise ValueError(
                f"verdict must be hopeless and list two worlds, got one that is {class_} and lists none"
            )
        if verdict.measure is None or not all(isinstance(vector, Sequence) for vector in worlds.outcomes):
            raise ValueError("verdict must be about a ranking game, whose outcomes are relevance vectors")
        if world not in (0, 1, None):
            raise ValueError(f"world must be 0, 1 or None, got {world!r}")
        chances = np.array([[float(chance) for chance in side] for side in worlds.chances])
        vectors = np.array(worlds.outcomes)
        self._best = []
        for side in chances:
            # Users who never come would change nothing but the largest grade.
            self._best.append(FixedItems(listed(vectors, weights=side), measure=verdict.measure).best().items)
        super().__init__(listed(vectors, weights=chances.mean(axis=0)), measure=verdict.measure)
        self.forced_regret = float(worlds.forced)
        users = TwoWorldsUsers(
            self.users.vectors,  # type: ignore[union-attr]
            np.cumsum(chances, axis=1),
            -1 if world is None else world,
        )
        self.params = self.params._replace(users=users)
        which = np.zeros(1, np.int64)
        arrive: Any
        if self._separable:
            self.state = TwoWorldsSeparableState(**self.state._asdict(), world=which)
            arrive = arrive_separable
        else:
            self.state = TwoWorldsTabledState(**self.state._asdict(), world=which)
            arrive = arrive_tabled
        self.kernels = EnvironmentKernels(arrive, *self.kernels[1:])

    @property
    def world(self) -> int | None:
        """Which world it is; None until it is drawn."""
        if self.params.users.world >= 0:
            return int(self.params.users.world)
        return int(self.state.world[0]) if self.state.t[0] > 0 else None

    @property
    def remaining(self) -> int | None:
        return None

    def best(self, context: Any = None) -> Ranking:
        """The best ranking of the world; of both together until one is drawn."""
        return super().best(context) if self.world is None else Ranking(self._best[self.world].copy())
