"""Two worlds that no feedback tells apart, taken from a hopeless verdict: linear regret for every learner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Protocol, Self

import numpy as np

from rankloop.base import Ranking
from rankloop.compiled import EnvironmentKernels
from rankloop.environments.fixed_items import FixedItems
from rankloop.environments.users import listed
from rankloop.kernels.environments import indistinguishable


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
    >>> people = Indistinguishable(verdict)
    >>> people.measure, round(people.forced_regret, 4)
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
        users = indistinguishable.TwoWorldsUsers(
            self.users.vectors,  # type: ignore[union-attr]
            np.cumsum(chances, axis=1),
            -1 if world is None else world,
        )
        self.params = self.params._replace(users=users)
        which = np.zeros(1, np.int64)
        arrive: Any
        if self._separable:
            self.state = indistinguishable.TwoWorldsSeparableState(**self.state._asdict(), world=which)
            arrive = indistinguishable.arrive_separable
        else:
            self.state = indistinguishable.TwoWorldsTabledState(**self.state._asdict(), world=which)
            arrive = indistinguishable.arrive_tabled
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

    @classmethod
    def examples(cls) -> Iterator[Self]:
        # The top item seen: whether the first and the third agree tells the worlds apart, and no learner sees both.
        for measure, others, world in (("ndcg", (), None), ("average_precision", (0, 0, 0), 1)):
            vectors = [(*r, *others) for r in ((0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, 1))]
            chances = ((0.5, 0.0, 0.0, 0.5), (0.0, 0.5, 0.5, 0.0))
            worlds = SimpleNamespace(outcomes=vectors, chances=chances, forced=0.01)
            yield cls(SimpleNamespace(measure=measure, worlds=worlds), world=world)
