"""Rankers by name, as the service builds them: without a horizon, over named items or over features.

A log and a request may name a ranker of the package, one that an installed package registers in the entry-point group
`rankloop.rankers`, or one that the operator allowed with `allow`. Nothing else is ever imported.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from typing import Any

import msgspec

from rankloop import rankers
from rankloop.base import Ranker
from rankloop.serving.log.records import Config


@functools.cache
def served() -> dict[str, type[Ranker]]:
    """Every ranker of the package that a service can run.

    >>> {"RTop1F", "FTPL", "RTopKF", "ListNet"} <= set(served())
    True
    """
    found = {name: getattr(rankers, name) for name in rankers.__all__}
    return {
        name: kind
        for name, kind in found.items()
        if inspect.isclass(kind) and issubclass(kind, Ranker) and not kind.unservable
    }


def has_items(algorithm: str) -> bool:
    """Whether the ranker has items of its own; otherwise each request brings a list with features."""
    return "n_items" in inspect.signature(find(algorithm)).parameters


def find(algorithm: str) -> type[Ranker]:
    """The ranker of this name; ValueError where there is none, or none that may be served."""
    kind = served().get(algorithm)
    if kind is None:
        raise ValueError(f"algorithm must be one of {', '.join(served())}, got {algorithm!r}")
    return kind


def build(config: Config, *, n_items: int) -> Ranker:
    """A fresh ranker; ValueError where the configuration makes no sense."""
    kind = find(config.algorithm)
    known = inspect.signature(kind).parameters
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config.parameters.items()
    }
    for name in given:
        if name not in known or name == "n_items":
            offered = ", ".join(sorted({*known} - {"n_items", "horizon"}))
            raise ValueError(f"{config.algorithm} has no parameter {name!r} to set; it has {offered}")
    if given.get("horizon") is not None:
        raise ValueError(
            f"a service has no horizon: nobody knows how many will come, got {given['horizon']!r}"
        )
    if has_items(config.algorithm):
        given["n_items"] = n_items
    else:
        given.setdefault("n_features", None)
        if given["n_features"] is None:
            raise ValueError(f"{config.algorithm} needs the parameter n_features")
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"{config.algorithm} cannot be built: {error}") from None


def config_hash(config: Config) -> str:
    """Equal for equal configurations, whatever the order in which parameters were written."""
    text = msgspec.json.encode(config, order="deterministic")
    return hashlib.sha256(text).hexdigest()
