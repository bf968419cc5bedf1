"""Environments by name, for the command line and for quick trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rankloop.environments import users
from rankloop.environments.adversaries import adversary
from rankloop.environments.fixed_items import FixedItems


class _Named(NamedTuple):
    """What `rankloop list` says of an environment, and how to make its users of so many items."""

    description: str
    users: Callable[[int | None], users.Users]


def _falling(n_items: int | None) -> users.Users:
    return users.bernoulli(np.linspace(0.9, 0.1, n_items or 10))


def _switching(n_items: int | None) -> users.Users:
    chances = np.linspace(0.9, 0.1, n_items or 10)
    return users.switching([chances, chances[::-1]], period=1000)


_ENVIRONMENTS = {
    "noisy-halves": _Named(
        "half of the items is relevant, users differ a little (2015, section 10)",
        lambda n_items: users.noisy_halves(n_items=n_items or 10),
    ),
    "bernoulli": _Named("independent items, relevant with probability 0.9 down to 0.1", _falling),
    "switching": _Named("as bernoulli, but the order of the items turns over every 1,000 rounds", _switching),
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


def names() -> dict[str, str]:
    """Every name with its description."""
    return {name: entry.description for name, entry in _ENVIRONMENTS.items()}


def named(name: str, *, n_items: int | None = None, measure: str = "dcg") -> FixedItems:
    """The environment called `name`, with ten items unless told otherwise; an adversary, with as few as it needs.

    >>> named("noisy-halves", n_items=4, measure="ndcg").n_items
    4
    """
    if name not in _ENVIRONMENTS:
        raise ValueError(f"environment must be one of {', '.join(_ENVIRONMENTS)}, got {name!r}")
    return FixedItems(_ENVIRONMENTS[name].users(n_items), measure=measure)
