"""Rankers by name, as the service builds them: without a horizon, over named items or over features.

A request or a log may name a ranker of the package, one that an installed package registers in the entry-point group
`rankloop.rankers`, or a `package.module:Class` that the operator allowed. No other module is ever imported.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Iterable
from typing import Any

import msgspec

from rankloop.base import Ranker
from rankloop.rankers import registry
from rankloop.rankers.candidates import fitting
from rankloop.serving.log.records import DEFAULTS, Config

_allowed: dict[str, type[Ranker]] = {}


def allow(names: Iterable[str]) -> None:
    """Let requests and logs name these rankers; for the operator of the process, never for a request."""
    for name in names:
        _allowed[name] = _servable(name, registry.find(name))
    served.cache_clear()


@functools.cache
def served() -> dict[str, type[Ranker]]:
    """Every ranker that a service can run, by the name that a request gives.

    >>> {"RTop1F", "FTPL", "RTopKF", "ListNet"} <= set(served())
    True
    >>> "PBMPIE" in served()
    False
    """
    found: dict[str, type[Ranker]] = {}
    for name in registry.names():
        try:
            found[name] = _servable(name, registry.find(name))
        except ValueError:  # one that another package registers may be broken; `find` says how
            continue
    return found | _allowed


def find(algorithm: str) -> type[Ranker]:
    """The ranker of this name."""
    kind = served().get(algorithm)
    if kind is not None:
        return kind
    if ":" in algorithm:
        raise ValueError(
            f"algorithm {algorithm!r} is not allowed here: the operator allows it with --ranker {algorithm}"
        )
    if algorithm in registry.names():
        _servable(algorithm, registry.find(algorithm))  # says why not
    raise ValueError(f"algorithm must be one of {', '.join(served())}, got {algorithm!r}")


def _servable(name: str, kind: type[Ranker]) -> type[Ranker]:
    if kind.unservable:
        raise ValueError(f"{name} cannot be served: {kind.unservable}")
    return kind


def has_items(algorithm: str) -> bool:
    """Whether the ranker has items of its own; otherwise each request brings a list with features."""
    return "n_items" in inspect.signature(find(algorithm)).parameters


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
    for version in range(DEFAULTS - 1, config.defaults - 1, -1):
        given = dict(kind.defaults_before.get(version, {})) | given
    if given.get("horizon") is not None:
        raise ValueError(
            f"a service has no horizon, because the number of requests is unknown, got {given['horizon']!r}"
        )
    if has_items(config.algorithm):
        # Items are retired while a service runs: what looks at the top of the list then looks at all of a shorter one.
        given |= {"n_items": n_items, **fitting(given, n_items)}
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
