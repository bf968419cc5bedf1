"""Items that change while a ranker runs: which changes are allowed, and how a ranker with the new items takes over.

How what was learnt is carried into other items is up to the ranker: `Ranker.carry` and `Ranker.translate`.
"""

from __future__ import annotations

import numpy as np

from rankloop.base import Ranker
from rankloop.serving.adapters.registry import build
from rankloop.serving.log.records import Config


def changed(names: list[str], *, add: list[str], retire: list[str]) -> list[str]:
    """The items after a change: those that stay, in their order, then the new ones.

    Examples
    --------
    >>> changed(["a", "b", "c"], add=["d"], retire=["b"])
    ['a', 'c', 'd']
    """
    gone = set(retire)
    left = [name for name in names if name not in gone]
    return left + [name for name in add if name not in left]


def check_change(names: list[str], *, add: list[str], retire: list[str]) -> None:
    """Refuse a change that cannot be made."""
    known = set(names)
    for name in add:
        if name in known:
            raise ValueError(f"item {name!r} is there already")
    for name in retire:
        if name not in known:
            raise ValueError(f"{name!r} is not an item of this ranker")
    if not changed(names, add=add, retire=retire):
        raise ValueError("the last item cannot be retired")


def carried(ranker: Ranker, config: Config, *, before: list[str], names: list[str]) -> Ranker:
    """A new ranker over `names` that knows what `ranker` has learnt over the items `before`."""
    place = {name: i for i, name in enumerate(before)}
    fresh = build(config, n_items=len(names))
    fresh.carry(ranker, np.array([place.get(name, -1) for name in names], np.int64))
    return fresh
