"""Environments by name, for the command line and for quick trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import one_of, whole
from rankloop.base import Floats, Ints
from rankloop.environments import users
from rankloop.environments.adversaries import adversary
from rankloop.environments.click_users import ClickUsers
from rankloop.environments.click_worlds import (
    ClickWorlds,
    Corrupted,
    Drifting,
    LowerBound,
    Periodic,
    PositionBased,
    ScheduledWorlds,
    halves_exchanged,
)
from rankloop.environments.fixed_items import FixedItems
from rankloop.feedback import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    TrustBiasModel,
    UserBrowsingModel,
)


class _Named(NamedTuple):
    """What `rankloop list` says of an environment, and how to make it: its users of so many items, or all of it."""

    description: str
    make: Callable[..., Any]


def _falling(n_items: int | None) -> users.Users:
    return users.bernoulli(np.linspace(0.9, 0.1, n_items or 10))


def _switching(n_items: int | None) -> users.Users:
    chances = np.linspace(0.9, 0.1, n_items or 10)
    return users.switching([chances, chances[::-1]], period=1000)


_RELEVANCE = {
    "noisy-halves": _Named(
        "half of the items is relevant, users differ a little (2015, section 10)",
        lambda n_items: users.noisy_halves(n_items=n_items or 10),
    ),
    "bernoulli": _Named("independent items, relevant with probability 0.9 down to 0.1", _falling),
    "switching": _Named(
        "as bernoulli, but the order of the items is reversed every 1,000 rounds", _switching
    ),
    "adversary-ndcg": _Named(
        "users that make NDCG unlearnable from the top item (3 to 6 items)",
        lambda n_items: adversary("ndcg", n_items=n_items),
    ),
    "adversary-map": _Named(
        "users that make average precision unlearnable from the top item (3 to 6 items)",
        lambda n_items: adversary("average_precision", n_items=n_items),
    ),
    "adversary-auc": _Named(
        "users that make AUC unlearnable from the top item (4 to 6 items)",
        lambda n_items: adversary("auc", n_items=n_items),
    ),
}


def _gap(gap: float) -> PositionBased:
    # 2022, Experiments: alpha = (.95, .95 - gap, ..., .95 - 9 gap), beta = (1, 1/2, ..., 1/5)
    return PositionBased(attraction=0.95 - gap * np.arange(10), examination=1 / np.arange(1, 6))


def _yandex() -> PositionBased:
    # 2022, Appendix E: estimated from the ten most frequent results of the Yandex log
    return PositionBased(
        attraction=[0.894, 0.231, 0.139, 0.0745, 0.0585, 0.0424, 0.0237, 0.0234, 0.0231, 0.0178],
        examination=[0.891, 0.227, 0.0778, 0.0412, 0.0378],
    )


_STILL: dict[str, tuple[str, Callable[[], PositionBased]]] = {
    "gap-0.03": (
        "position-based clicks, items 0.03 apart (2022, Experiments; 10 items, 5 shown)",
        lambda: _gap(0.03),
    ),
    "gap-0.01": ("position-based clicks, items 0.01 apart (2022, Experiments)", lambda: _gap(0.01)),
    "yandex": ("position-based clicks as in the Yandex log (2022, Appendix E)", _yandex),
}

_CHANGES: dict[str, tuple[str, Callable[[PositionBased], ClickWorlds]]] = {
    "periodic-1": (
        "the halves of the items change places every 100,000 rounds (2022)",
        Periodic.exchanging,
    ),
    "periodic-2": ("items and positions are reversed every 100,000 rounds (2022)", Periodic.reversing),
    "corrupted": ("one user in ten has items and positions reversed", Corrupted),
    "drifting": ("items and positions are reversed gradually, there and back in 1,000,000", Drifting),
}


def _changing(still: str, change: str) -> _Named:
    description, changed = _CHANGES[change]
    return _Named(f"as {still}, but {description}", lambda: changed(_STILL[still][1]()))


def _model_users(name: str, *orders: Ints) -> ClickUsers:
    models = [_MODELS[name][1](np.linspace(0.5, 0.05, 10)[order]) for order in orders]
    return ClickUsers(models, n_positions=5)


def _browsing(attraction: Floats) -> ClickModel:
    # The further below the last click, or the top where there is none, the less likely a look.
    position, last = np.indices((5, 5))
    return UserBrowsingModel(attraction, 1 / (1 + 0.5 * np.maximum(position - last, 0)))


_MODELS: dict[str, tuple[str, Callable[[Floats], ClickModel]]] = {
    "cascade": ("users who read to the first item that attracts them, and leave", CascadeModel),
    "dependent-click": (
        "users who may read on after a click, ever less likely (dependent click model)",
        lambda attraction: DependentClickModel(attraction, np.linspace(0.9, 0.5, 5)),
    ),
    "user-browsing": ("users who look near their last click (user browsing model)", _browsing),
    "dynamic-bayesian": (
        "users who leave once a click satisfied them, or lose patience (dynamic Bayesian model)",
        lambda attraction: DynamicBayesianModel(attraction, 0.2 + attraction, 0.9),
    ),
    "click-chain": (
        "users who read on by what they clicked (click chain model)",
        lambda attraction: ClickChainModel(attraction, np.array([0.9, 0.7, 0.3])),
    ),
    "trust-bias": (
        "position-based users who also click what does not attract them, most at the top (trust bias)",
        lambda attraction: TrustBiasModel(
            attraction, 1 / np.arange(1, 6), np.linspace(0.95, 0.75, 5), 0.5 / np.arange(1, 6)
        ),
    ),
}


def _by_model(name: str) -> _Named:
    return _Named(f"{_MODELS[name][0]}; 10 items, 5 shown", lambda: _model_users(name, np.arange(10)))


def _by_model_in_turn(name: str) -> _Named:
    return _Named(
        f"as {name}, but the halves of the items change places every 100,000 rounds",
        lambda: _model_users(name, np.arange(10), halves_exchanged(10)),
    )


_CLICKS = {
    **{name: _Named(*entry) for name, entry in _STILL.items()},
    **{f"{still}-{change}": _changing(still, change) for still in _STILL for change in _CHANGES},
    "lower-bound": _Named(
        "one list is better by too little to be detected in 1,000,000 rounds (2022, Theorem 3)",
        lambda: LowerBound(n_items=10, n_positions=5, horizon=1_000_000),
    ),
    **{name: _by_model(name) for name in _MODELS},
    **{f"{name}-periodic": _by_model_in_turn(name) for name in _MODELS},
}


def names() -> dict[str, str]:
    """Every name with its description.

    Returns
    -------
    dict of str to str
        The names, sorted.
    """
    return {name: entry.description for name, entry in (_RELEVANCE | _CLICKS).items()}


def named(
    name: str, *, n_items: int | None = None, measure: str | None = None
) -> FixedItems | ScheduledWorlds:
    """The environment called `name`, with `n_items` and `measure` where the name leaves them open.

    Users who reveal relevance have ten items and "dcg" by default, an adversary as few items as it
    needs. Worlds of clicks have a fixed number of items and positions and are measured in clicks: there `n_items` may
    only repeat their number, and `measure` only say "clicks".

    Examples
    --------
    >>> named("noisy-halves", n_items=4, measure="ndcg").n_items
    4
    >>> named("yandex-periodic-1").n_positions
    5
    """
    if n_items is not None:
        n_items = whole("n_items", n_items, at_least=1)
    if name in _RELEVANCE:
        return FixedItems(_RELEVANCE[name].make(n_items), measure=measure or "dcg")
    one_of("environment", name, names())
    world: ScheduledWorlds = _CLICKS[name].make()
    if n_items not in (None, world.n_items):
        raise ValueError(
            f"n_items must be {world.n_items} or left out: environment {name!r} has that many, got {n_items}"
        )
    if measure not in (None, "clicks"):
        raise ValueError(
            f"measure must be 'clicks' or left out: environment {name!r} is measured in clicks, got {measure!r}"
        )
    return world
