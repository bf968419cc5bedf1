"""Worlds of position-based clicks: users who stay, change in turn, drift or are corrupted, and the hardest ones.

One world is there in each round: the only one, the next one every so many rounds, or one of two at random. Which
one is a function of the round and of a key drawn at the first, so the past can be recomputed without being stored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, shares, whole
from rankloop.base import Floats, Ints, Ranking
from rankloop.compiled import CompiledEnvironment, EnvironmentKernels, check_items
from rankloop.feedback.model_file import warn_if_unconverged
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.lists import best_list, in_order
from rankloop.kernels.random import uniform


class ClickParams(NamedTuple):
    """clicks[world, position, item] is the chance of a click; best[world] the value of the best list there."""

    clicks: Floats
    best: Floats
    phase: int  # rounds before the next world comes; 0 where it is drawn
    share: float  # the chance of world 1 in each round, where it is drawn


class ClickState(NamedTuple):
    """The present world, and what is needed to recompute the past."""

    t: Ints  # users so far
    start: Ints  # since when regret is counted
    key: NDArray[np.uint64]  # of the schedule of worlds
    world: Ints  # which one is here
    counts: Ints  # rounds in each world


@hot
def _world_at(params: Any, key: Any, t: int) -> int:
    if len(params.best) == 1:
        world = 0
    elif params.phase > 0:
        world = t // params.phase % len(params.best)
    else:
        world = int(uniform(key, t) < params.share)
    return world


@hot
def arrive(params: Any, state: Any, key: Any) -> None:
    """The next user, in the world of this round."""
    t = state.t[0]
    if t == 0:
        state.key[0] = key
    world = _world_at(params, state.key[0], t)
    state.world[0] = world
    state.counts[world] += 1
    state.t[0] = t + 1


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """A click or none at each position."""
    world = state.world[0]
    for position in range(len(revealed)):
        revealed[position] = uniform(key, position) < params.clicks[world, position, items[position]]


@hot
def value(params: Any, state: Any, items: Any) -> float:
    """Expected clicks."""
    world = state.world[0]
    total = 0.0
    for position in range(len(items)):
        total += params.clicks[world, position, items[position]]
    return total


@kernel
def hindsight(params: Any, state: Any) -> Any:
    """The value of the best fixed list over all worlds so far."""
    n_worlds, m, n = params.clicks.shape
    if n_worlds == 1:
        return state.counts[0] * params.best[0]
    total = np.zeros((m, n))
    for world in range(n_worlds):
        if state.counts[world] > 0:
            total += state.counts[world] * params.clicks[world]
    return best_list(total, np.empty(m, np.int64))


@kernel
def count_worlds(params: Any, state: Any, rounds: Any, counts: Any) -> None:
    """How many of the first rounds since the start were in each world, for each of `rounds`, which rise."""
    seen = np.zeros(len(params.best), np.int64)
    t = state.start[0]
    for i in range(len(rounds)):
        while t - state.start[0] < rounds[i]:
            seen[_world_at(params, state.key[0], t)] += 1
            t += 1
        counts[i] = seen


@kernel
def best_lists(clicks: Any, lists: Any, best: Any) -> None:
    """The best list of each world and its value."""
    for world in range(len(clicks)):
        best[world] = best_list(clicks[world], lists[world])


class ScheduledWorlds(CompiledEnvironment):
    """Users who click, on lists of the same items; which world they come from may change with the round.

    `params` has `best`, the value of the best list of each world, `phase` and `share`: worlds come in turn for
    `phase` rounds each, or, where `phase` is 0, world 1 in a `share` of the rounds, drawn at random, and else world 0.
    `state` is what `click_worlds.arrive` writes.
    """

    reveals: ClassVar[str] = "clicks"
    measure = "clicks"
    is_loss = False
    max_grade = 1
    n_items: int
    params: Any

    @property
    def n_worlds(self) -> int:
        """How many worlds there are."""
        return len(self.params.best)

    @property
    def shares(self) -> Floats:
        """How large a part of the rounds the schedule gives each world, in the long run."""
        if self.params.phase == 0:
            return np.array([1 - self.params.share, self.params.share])
        return np.full(self.n_worlds, 1 / self.n_worlds)

    @property
    def world(self) -> int:
        """The world that the present user comes from, counted from 0."""
        return int(self.state.world[0])

    def ideal(self, rounds: ArrayLike) -> Floats:
        """Value of the best list of each round's world, over the first `rounds` rounds since `start_counting`.

        `play` starts the counting, so `environment.ideal(trace.rounds) - trace.total` is the regret against the best
        list of each phase. It is exact, with the same worlds in the same rounds. Where worlds are drawn, `rounds` must
        not exceed the rounds played.
        """
        given = numbers("rounds", rounds)
        if not ((given >= 0) & (given < 2**53) & (given == np.floor(given))).all():
            raise ValueError(f"rounds must be whole numbers of at least 0, got {rounds!r}")
        wanted = given.astype(np.int64)
        played = int(self.state.t[0] - self.state.start[0])
        if self.params.phase > 0:
            start = self.state.start[0]
            counts = self._turns(start + wanted) - self._turns(start)
        elif wanted.max(initial=0) > played:
            raise ValueError(f"rounds must be at most the {played} that were played, got {rounds!r}")
        else:
            rising, place = np.unique(wanted, return_inverse=True)
            counts = np.empty((len(rising), self.n_worlds), np.int64)
            count_worlds(self.params, self.state, rising, counts)
            counts = counts[place].reshape(*wanted.shape, -1)
        total: Floats = counts @ self.params.best
        return total

    def _turns(self, t: Ints) -> Ints:
        # How many of the rounds before t are in each world, the last axis: whole cycles, and what of one is left.
        n_worlds, phase = self.n_worlds, self.params.phase
        cycles, rest = np.divmod(t[..., None], n_worlds * phase)
        turns: Ints = cycles * phase + np.clip(rest - phase * np.arange(n_worlds), 0, phase)
        return turns

    def start_counting(self) -> None:
        self.state.counts[...] = 0
        self.state.start[...] = self.state.t


class ClickWorlds(ScheduledWorlds):
    """Users who click each shown position independently; which world they come from may change with the round.

    A subclass gives the probabilities of its worlds, worlds x positions x items, and when each applies: in turn
    for `phase` rounds each, or, where `phase` is 0, world 1 in a `share` of the rounds, drawn at random, and else
    world 0.

    The value of a list is its expected clicks. `best()` is the best fixed list over the whole schedule, `hindsight()`
    the value of the best fixed list over the rounds played, `ideal(rounds)` the value of showing the best list of
    each round's own world.
    """

    params: ClickParams
    state: ClickState
    kernels = EnvironmentKernels(arrive, respond, value, hindsight)

    def __init__(self, clicks: Floats, *, phase: int = 1, share: float = 0.0) -> None:
        n_worlds, self.n_positions, self.n_items = clicks.shape
        self.best_lists = np.empty((n_worlds, self.n_positions), np.int64)  # the best list of each world
        best = np.empty(n_worlds)
        best_lists(clicks, self.best_lists, best)
        self.params = ClickParams(clicks, best, phase, share)
        self.state = ClickState(
            t=np.zeros(1, np.int64),
            start=np.zeros(1, np.int64),
            key=np.zeros(1, np.uint64),
            world=np.zeros(1, np.int64),
            counts=np.zeros(n_worlds, np.int64),
        )

    @property
    def clicks(self) -> Floats:
        """The probability of a click, worlds x positions x items."""
        return self.params.clicks

    def best(self, context: Any = None) -> Ranking:
        """The best fixed list: in expectation, each world as often as the schedule has it."""
        items = np.empty(self.n_positions, np.int64)
        mean = np.tensordot(self.shares, self.clicks, axes=1)
        best_list(mean, items)
        return Ranking(in_order(mean, items))


class ClickMatrix(ClickWorlds):
    """Users who click item i at position j with probability `probabilities[j][i]`, whatever else is shown.

    Parameters
    ----------
    probabilities : array_like
        Positions x items; no more positions than items.

    Examples
    --------
    >>> world = ClickMatrix([[0.5, 0.4, 0.1], [0.4, 0.1, 0.0]])
    >>> world.best().items, round(world.ideal(1000).item())
    (array([1, 0]), 800)
    """

    def __init__(self, probabilities: ArrayLike) -> None:
        chances = shares("probabilities", probabilities, n_axes=2)
        if len(chances) > chances.shape[1]:
            raise ValueError(
                f"probabilities must have no more positions than items, got {len(chances)} x {chances.shape[1]}"
            )
        super().__init__(chances[None])

    def reversed(self) -> ClickMatrix:
        """The same world with items and positions in the opposite order."""
        return ClickMatrix(self.clicks[0, ::-1, ::-1])

    def exchanged(self) -> ClickMatrix:
        """The same world with the items of the two halves exchanged; of an odd number the middle item stays."""
        return ClickMatrix(self.clicks[0][:, halves_exchanged(self.n_items)])


def halves_exchanged(n_items: int) -> Ints:
    """For each index, the item that takes it when the halves are exchanged.

    >>> halves_exchanged(4), halves_exchanged(5)
    (array([2, 3, 0, 1]), array([3, 4, 2, 0, 1]))
    """
    items = np.arange(n_items)
    half = n_items // 2
    return np.concatenate([items[n_items - half :], items[half : n_items - half], items[:half]])


class PositionBased(ClickMatrix):
    """Users who click item i at position j with probability attraction[i] * examination[j].

    Parameters
    ----------
    attraction : array_like
        For each item, the probability of a click where it is examined.
    examination : array_like
        For each position, the probability that it is examined, in any order; at most as many as items.

    Notation
    --------
    alpha is `attraction`, beta is `examination`, n and m their lengths (2022, Setting). Only their products are
    observed: a larger alpha with a smaller beta is the same world (erratum C12).

    Examples
    --------
    >>> world = PositionBased(attraction=[0.2, 0.8, 0.5], examination=[1.0, 0.5])
    >>> world.best().items, world.value(world.best())
    (array([1, 2]), 1.05)
    """

    def __init__(self, *, attraction: ArrayLike, examination: ArrayLike) -> None:
        self.attraction = shares("attraction", attraction)
        self.examination = shares("examination", examination)
        if len(self.examination) > len(self.attraction):
            raise ValueError(
                f"examination must have no more positions than attraction has items ({len(self.attraction)}), "
                f"got {len(self.examination)}"
            )
        super().__init__(np.outer(self.examination, self.attraction))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The world in the JSON file at `path`, with the keys `attraction` and `examination`, and perhaps others."""
        try:
            told = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(
                f"path must be a file of parameters, got {str(path)!r}: {error.strerror}"
            ) from None
        except ValueError as error:
            raise ValueError(f"path must be JSON, got {str(path)!r}: {error}") from None
        for key in ("attraction", "examination"):
            if not isinstance(told, dict) or key not in told:
                raise ValueError(f"path must tell {key!r}, got {str(path)!r}, which does not")
        warn_if_unconverged(path, told)
        try:
            return cls(attraction=told["attraction"], examination=told["examination"])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def reversed(self) -> PositionBased:
        return PositionBased(attraction=self.attraction[::-1], examination=self.examination[::-1])

    def exchanged(self) -> PositionBased:
        attraction = self.attraction[halves_exchanged(self.n_items)]
        return PositionBased(attraction=attraction, examination=self.examination)


class Periodic(ClickWorlds):
    """Every `phase` rounds the next world begins; after the last, the first again.

    Parameters
    ----------
    worlds : sequence of ClickMatrix
        `ClickMatrix`, `PositionBased` and the like, all with as many positions and items.
    phase : int, optional
        Rounds before the next world.

    Examples
    --------
    >>> morning = PositionBased(attraction=[0.9, 0.5, 0.1], examination=[1.0, 0.5])
    >>> world = Periodic([morning, morning.reversed()], phase=1000)
    >>> world.best_lists
    array([[0, 1],
           [1, 2]])
    """

    def __init__(self, worlds: Sequence[ClickMatrix], *, phase: int = 100_000) -> None:
        super().__init__(stacked(worlds), phase=whole("phase", phase, at_least=1))

    @classmethod
    def exchanging(cls, world: ClickMatrix, *, phase: int = 100_000) -> Self:
        """The first periodic world of 2022: after each `phase` the halves of the items of `world` change places."""
        return cls([world, one_world("world", world).exchanged()], phase=phase)

    @classmethod
    def reversing(cls, world: ClickMatrix, *, phase: int = 100_000) -> Self:
        """The second periodic world of 2022: after each `phase` items and positions of `world` are reversed."""
        return cls([world, one_world("world", world).reversed()], phase=phase)


def one_world(name: str, given: ClickMatrix) -> ClickMatrix:
    """`given`, or a ValueError unless it is a world that does not change."""
    if not isinstance(given, ClickMatrix):
        raise ValueError(f"{name} must be a world that does not change, such as PositionBased, got {given!r}")
    return given


def stacked(worlds: Sequence[ClickMatrix]) -> Floats:
    """The probabilities of all `worlds`, worlds x positions x items."""
    if not isinstance(worlds, Sequence) or len(worlds) == 0:
        raise ValueError(f"worlds must be a list of at least one world, got {worlds!r}")
    shapes = [one_world(f"worlds[{i}]", world).clicks.shape[1:] for i, world in enumerate(worlds)]
    if len(set(shapes)) > 1:
        raise ValueError(f"worlds must agree in positions and items, got {shapes}")
    return np.concatenate([world.clicks for world in worlds])


class Drifting(ClickWorlds):
    """Two populations of users: at first only those of `world`, `steps` phases later only those of `to`, then back.

    Parameters
    ----------
    world : ClickMatrix
        The first population.
    to : ClickMatrix, optional
        The second; None takes `world` with items and positions reversed.
    steps : int, optional
        How many phases it takes from the one to the other. In phase k a user is of the second population with
        probability k / steps.
    phase : int, optional
        Rounds before the share moves on. There and back takes 2 * steps * phase rounds.

    Notes
    -----
    The value of a list is its expected clicks from a user of either population, mixed as in that phase: the population
    of a single user is not part of the truth. Even where both populations follow the position-based model,
    their mixture does not. Every phase keeps its own probabilities, 2 * steps * positions * items numbers.

    Examples
    --------
    >>> world = Drifting(PositionBased(attraction=[0.9, 0.5, 0.1], examination=[1.0]), steps=3, phase=1000)
    >>> world.clicks[:, 0].round(2)
    array([[0.9 , 0.5 , 0.1 ],
           [0.63, 0.5 , 0.37],
           [0.37, 0.5 , 0.63],
           [0.1 , 0.5 , 0.9 ],
           [0.37, 0.5 , 0.63],
           [0.63, 0.5 , 0.37]])
    """

    def __init__(
        self, world: ClickMatrix, *, to: ClickMatrix | None = None, steps: int = 50, phase: int = 10_000
    ) -> None:
        target = one_world("world", world).reversed() if to is None else one_world("to", to)
        if target.clicks.shape != world.clicks.shape:
            raise ValueError(
                f"to must agree with world in positions and items {world.clicks.shape[1:]}, "
                f"got {target.clicks.shape[1:]}"
            )
        steps = whole("steps", steps, at_least=1)
        there = np.arange(steps + 1) / steps
        shares = np.concatenate([there, there[-2:0:-1]])[:, None, None]
        first, second = stacked([world, target])
        super().__init__((1 - shares) * first + shares * second, phase=whole("phase", phase, at_least=1))


class Corrupted(ClickWorlds):
    """Each user comes from the world `against` with probability `share`, and otherwise from `world`.

    Parameters
    ----------
    world : ClickMatrix
        Who comes mostly.
    against : ClickMatrix, optional
        Who comes to mislead; None takes `world` with items and positions turned round.
    share : float, optional
        How many of the rounds are theirs, between 0 and 1.

    Notes
    -----
    Which rounds these are is drawn at the start and does not depend on what is shown. The value of a list is the clicks
    that it is expected to get from the present user, misleading or not.

    Examples
    --------
    >>> world = Corrupted(PositionBased(attraction=[0.9, 0.5, 0.1], examination=[1.0, 0.5]), share=0.1)
    >>> world.best().items
    array([0, 1])
    """

    def __init__(self, world: ClickMatrix, *, against: ClickMatrix | None = None, share: float = 0.1) -> None:
        foe = one_world("world", world).reversed() if against is None else one_world("against", against)
        part = shares("share", share, n_axes=0)
        if foe.clicks.shape != world.clicks.shape:
            raise ValueError(
                f"against must agree with world in positions and items {world.clicks.shape[1:]}, "
                f"got {foe.clicks.shape[1:]}"
            )
        super().__init__(stacked([world, foe]), phase=0, share=float(part))


class LowerBound(ClickMatrix):
    """Every item is clicked at every position with probability 1/2, except one for each position: 1/2 + `delta`.

    Theorem 3 says that every learner has a regret of at least `least_regret` after `horizon` rounds in this world, on
    average over all choices of `best`. To a learner that treats all items alike all choices are alike, so any will do.

    Parameters
    ----------
    n_items : int
        N and m; n must be at least max(m + 3, 2 m).
    n_positions : int
        N and m; n must be at least max(m + 3, 2 m).
    horizon : int
        T, the rounds that will be played, at least n.
    best : array_like, optional
        The list that is better; None takes the first items in order.

    Notation
    --------
    delta = (1/8) sqrt((n - m + 1) / T); least_regret = (1/16) m sqrt((n - m + 1) T).

    Departures
    ----------
    None; but note that the probabilities are not a product of attraction and examination. The bound is for clicks that
    an adversary chooses, not for the stochastic position-based model (erratum C11).

    References
    ----------
    2022, Theorem 3 and Appendix C.

    Examples
    --------
    >>> world = LowerBound(n_items=10, n_positions=5, horizon=60_000)
    >>> world.delta, round(world.least_regret, 1)
    (0.00125, 187.5)
    """

    def __init__(
        self, *, n_items: int, n_positions: int, horizon: int, best: ArrayLike | None = None
    ) -> None:
        m = whole("n_positions", n_positions, at_least=1)
        n = whole("n_items", n_items, at_least=1)
        if n < max(m + 3, 2 * m):
            raise ValueError(
                f"n_items must be at least max(m + 3, 2 m) = {max(m + 3, 2 * m)} for m = {m} positions, got {n}"
            )
        self.horizon = whole("horizon", horizon, at_least=n)
        u = np.arange(m) if best is None else np.asarray(best)
        try:
            if u.dtype.kind not in "iu":
                raise ValueError(f"items must be whole numbers, got {u.dtype}")
            check_items(u.astype(np.int64), m, n)
        except ValueError as error:
            raise ValueError(f"best must be {m} of {n} items, got {best!r}: {error}") from None
        self.delta = sqrt((n - m + 1) / self.horizon) / 8
        self.least_regret = m * sqrt((n - m + 1) * self.horizon) / 16
        clicks = np.full((m, n), 0.5)
        clicks[np.arange(m), u] += self.delta
        super().__init__(clicks)
