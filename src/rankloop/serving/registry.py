"""Rankers by name, as the service builds them: without a horizon, over named items or over features.

A request or a log may name a ranker of the package, one that an installed package registers in the entry-point group
`rankloop.rankers`, or a `package.module:Class` that the operator allowed. No other module is ever imported. Here too is
what a ranker computes with, so that states of another version are told apart.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from rankloop.base import Ranker
from rankloop.kernels import elementary
from rankloop.rankers import registry
from rankloop.rankers.candidates import fitting
from rankloop.serving.log.comparison import Comparison
from rankloop.serving.log.records import DEFAULTS, Config, without_items

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
    return found | {"Comparison": Comparison} | _allowed


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
        if given["n_features"] is None and known["n_features"].default is inspect.Parameter.empty:
            raise ValueError(f"{config.algorithm} needs the parameter n_features")
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"{config.algorithm} cannot be built: {error}") from None


def config_hash(config: Config) -> str:
    """Equal for equal configurations, whatever the order in which parameters were written."""
    text = msgspec.json.encode(config, order="deterministic")
    return hashlib.sha256(text).hexdigest()


# Items that change while a ranker runs. How what was learnt is carried into other items is up to the ranker.


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


# What a state depends on beside its log: the version of the algorithm, its arithmetic here, and the format of states.
#
# The version is an attribute of the ranker's class. The arithmetic is tried: a few rounds with fixed users, and the
# elementary functions at fixed points, give a short digest, the probe, equal wherever the ranker computes the same.
# Both are in the row that makes a ranker, so that a process that would compute something else finds out before it
# learns. A change of the code that leaves version, probe and format alone keeps the snapshots.

STATE_FORMAT = 2  # of `fold.Saved`: a snapshot in another format is not read
_ROUNDS = 8
_ITEMS = 6  # with features, in the list of a trial
_POINTS = np.linspace(0.01, 20.0, 37)


class OtherVersion(ValueError):
    """The log was folded with another version of the algorithm, or with another arithmetic."""


def version_of(algorithm: str) -> int:
    """The version of the algorithm in this code."""
    return find(algorithm).algorithm_version


def probe_of(config: Config) -> str:
    """The digest of a short trial of the ranker that `config` makes; "machine" where it depends on the machine."""
    if not find(config.algorithm).portable:
        return "machine"
    plain = msgspec.structs.replace(config, seed=0, version=1, probe="")
    if not has_items(config.algorithm):
        plain = without_items(plain)
    return _probe(find(config.algorithm), msgspec.msgpack.encode(plain, order="deterministic"))


@functools.lru_cache(maxsize=1024)
def _probe(kind: type, packed: bytes) -> str:
    config = msgspec.msgpack.decode(packed, type=Config)
    ranker = build(config, n_items=len(config.items or ()))
    rng = np.random.default_rng(2015)
    digest = hashlib.blake2b(_elementary(), digest_size=6)
    for _ in range(_ROUNDS):
        context = None
        if not has_items(config.algorithm):
            rows = rng.random((_ITEMS, ranker.n_features or 1)).astype(np.float32)
            context = ranker.as_request(rows, 1, range(_ITEMS))
        shown = ranker.rank(context, rng=rng)
        digest.update(shown.items.astype("<i8").tobytes())
        heard = rng.integers(0, 2, ranker.feedback.length(len(shown.items)))
        ranker.learn(shown, heard.astype(np.float64))
    for name, array in sorted(ranker.state_arrays().items()):
        digest.update(name.encode() + np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


@functools.cache
def _elementary() -> bytes:
    values = [
        function(x)
        for function in (elementary.exp, elementary.log, elementary.exp2m1, elementary.cos_turns)
        for x in _POINTS.tolist()
    ]
    return np.array(values, "<f8").tobytes()


def stamped(config: Config) -> Config:
    """The configuration with the version and the probe of this code and machine."""
    return msgspec.structs.replace(config, version=version_of(config.algorithm), probe=probe_of(config))


def fingerprint(config: Config) -> str:
    """Equal for states of this configuration that may be exchanged.

    >>> fingerprint(Config("FTPL", 1, ["a", "b"])).startswith("format 2, version 1, arithmetic ")
    True
    """
    return f"format {STATE_FORMAT}, version {version_of(config.algorithm)}, arithmetic {probe_of(config)}"


def readable(found: str, config: Config) -> bool:
    """Whether a state with the fingerprint `found` may be exchanged, but for its probe, which a reset changes."""
    return found.rpartition(" ")[0] == fingerprint(config).rpartition(" ")[0]


def check_same(config: Config) -> None:
    """`OtherVersion` where a log with this configuration was folded with something else than this code and machine."""
    version = version_of(config.algorithm)
    if config.version != version:
        raise OtherVersion(
            f"its log is of version {config.version} of {config.algorithm}, and this code has version {version}"
        )
    if config.probe and config.probe != probe_of(config):
        raise OtherVersion(
            f"its log was folded with the arithmetic {config.probe}, and {config.algorithm} computes "
            f"{probe_of(config)} here: another machine, or code that was changed without a new version"
        )
