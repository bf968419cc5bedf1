"""Rankers by name, as the service builds them: without a horizon, over named items or over features."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import msgspec

from rankloop import rankers
from rankloop.base import Ranker
from rankloop.serving.log.records import Config


@functools.cache
def served() -> dict[str, type[Ranker]]:
    """Every ranker of the package that learns from something and need not be told how many will come.

    >>> {"RTop1F", "FTPL", "RTopKF", "ListNet"} <= set(served())
    True
    """
    found = {name: getattr(rankers, name) for name in rankers.__all__}
    return {
        name: kind
        for name, kind in found.items()
        if inspect.isclass(kind)
        and issubclass(kind, Ranker)
        and next(kind.examples()).feedback.kind != "nothing"
        and not _needs_horizon(kind)
    }


def _needs_horizon(kind: type[Ranker]) -> bool:
    horizon = inspect.signature(kind).parameters.get("horizon")
    return horizon is not None and horizon.default is inspect.Parameter.empty


def has_items(algorithm: str) -> bool:
    """Whether the ranker has items of its own; otherwise each request brings a list with features."""
    return "n_items" in inspect.signature(_kind(algorithm)).parameters


def _kind(algorithm: str) -> type[Ranker]:
    kind = served().get(algorithm)
    if kind is None:
        raise ValueError(f"algorithm must be one of {', '.join(served())}, got {algorithm!r}")
    return kind


def build(config: Config, *, n_items: int) -> Ranker:
    """A fresh ranker; ValueError where the configuration makes no sense."""
    kind = _kind(config.algorithm)
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
    import hashlib

    text = msgspec.json.encode(config, order="deterministic")
    return hashlib.sha256(text).hexdigest()
