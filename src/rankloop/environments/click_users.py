"""Users of any click model over fixed items: where a click ranker meets users that it was not made for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from rankloop.arguments import whole
from rankloop.base import Ranking
from rankloop.compiled import EnvironmentKernels
from rankloop.environments.best_click_lists import best_of_world, every_list, first_best, user_params
from rankloop.environments.scheduled_worlds import ScheduledWorlds
from rankloop.feedback import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from rankloop.kernels.environments import click_users as kernels
from rankloop.kernels.environments import click_worlds


class ClickUsers(ScheduledWorlds):
    """Users who click as a model says: cascade, dependent click, user browsing, dynamic Bayesian and so on.

    The value of a list is its expected number of clicks. `best()` is the best fixed list over the whole schedule,
    `hindsight()` the value of the best fixed list over the rounds played, `ideal(rounds)` the value of showing the
    best list of each round's own users. All are exact.

    Parameters
    ----------
    models : ClickModel or sequence of ClickModel
        How users click, from `rankloop.feedback`; several come in turn, for `phase` rounds each.
    n_positions : int, optional
        How many items are shown; None shows as many as the model has positions, or all items.
    phase : int, optional
        Rounds before the next model, where there are several.

    Notes
    -----
    Which list is best depends on the model. Where the chances to look do not depend on clicks (position-based, trust
    bias) it is an assignment of items to positions. Where the chance to read on depends on the item alone (cascade,
    dynamic Bayesian, click chain) the best order of given items is by falling likes / (1 - goes on), the chance of a
    click over the chance to leave, and the best items are found by dynamic programming. Under a dependent click
    model whose chances to read on do not rise with the position, and under the cascade model, it is the list by
    falling attraction. Other models, and the best fixed list of several models, are found by trying all lists:
    above 262,144 of them `hindsight` is NaN, and so is the regret, and `best` raises ValueError.

    Examples
    --------
    >>> people = ClickUsers(CascadeModel(attraction=[0.2, 0.8, 0.5]), n_positions=2)
    >>> people.best().items, round(people.value(people.best()), 3)
    (array([1, 2]), 0.9)
    """

    params: kernels.UserParams
    state: kernels.UserState
    kernels = EnvironmentKernels(click_worlds.arrive, kernels.respond, kernels.value, kernels.hindsight)

    def __init__(
        self,
        models: ClickModel | Sequence[ClickModel],
        *,
        n_positions: int | None = None,
        phase: int = 100_000,
    ) -> None:
        given = [models] if isinstance(models, ClickModel) else models
        if not isinstance(given, Sequence) or len(given) == 0:
            raise ValueError(f"models must be a click model or a list of at least one, got {models!r}")
        for number, model in enumerate(given):
            if not isinstance(model, ClickModel):
                raise ValueError(
                    f"models[{number}] must be a click model of rankloop.feedback, got {model!r}"
                )
        if len({model.n_items for model in given}) > 1:
            raise ValueError(f"models must have equally many items, got {[model.n_items for model in given]}")
        self.models = tuple(given)
        self.n_items = given[0].n_items
        most = min(model.n_positions or model.n_items for model in given)
        self.n_positions = most if n_positions is None else whole("n_positions", n_positions, at_least=1)
        if self.n_positions > self.n_items:
            raise ValueError(f"n_positions must be at most n_items={self.n_items}, got {n_positions}")
        tables = [model.browsing(self.n_positions) for model in given]
        self._lists = every_list(self.n_items, self.n_positions) if len(given) > 1 else None
        self.params = params = user_params(
            tables,
            n_lists=0 if self._lists is None else len(self._lists),
            phase=whole("phase", phase, at_least=1),
        )
        if self._lists is not None:
            kernels.values_of(params, self._lists, params.values)
        self.best_lists = np.zeros((len(given), self.n_positions), np.int64)  # the best list of each world
        for world, table in enumerate(tables):
            params.best[world], self.best_lists[world] = best_of_world(table)
        self.state = kernels.UserState(
            t=np.zeros(1, np.int64),
            start=np.zeros(1, np.int64),
            key=np.zeros(1, np.uint64),
            world=np.zeros(1, np.int64),
            counts=np.zeros(len(given), np.int64),
            last=np.zeros(self.n_positions + 1),
        )

    def best(self, context: Any = None) -> Ranking:
        """The best fixed list: in expectation, each model as often as the schedule has it."""
        if len(self.models) == 1 and np.isfinite(self.params.best[0]):
            return Ranking(self.best_lists[0].copy())
        if self._lists is None:
            raise ValueError(
                f"the best of all lists of {self.n_positions} of {self.n_items} items cannot be found: "
                "they are too many to be tried"
            )
        return Ranking(self._lists[first_best(self.shares @ self.params.values)])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        attraction, three = np.array([0.3, 0.9, 0.1, 0.6, 0.4, 0.2, 0.5]), np.array([1.0, 0.5, 0.3])
        cascade = CascadeModel(attraction)
        yield cls(cascade, n_positions=3)
        yield cls(DependentClickModel(attraction, np.array([0.2, 0.9, 0.5])))
        yield cls(UserBrowsingModel(attraction, np.random.default_rng(1).random((3, 3))))
        yield cls(DynamicBayesianModel(attraction, attraction[::-1], 0.9), n_positions=4)
        yield cls(ClickChainModel(attraction, np.array([0.9, 0.6, 0.2])), n_positions=2)
        yield cls(TrustBiasModel(attraction, three, np.array([0.9, 0.9, 0.8]), 0.5 * three))
        yield cls([cascade, PositionBasedModel(attraction[::-1], three[:2])], phase=7)
