"""What a state depends on beside its log: the version of the algorithm, its arithmetic here, and the format of states.

The version is an attribute of the ranker's class. The arithmetic is tried: a few rounds with fixed users, and the
elementary functions at fixed points, give a short digest, the probe, equal wherever the ranker computes the same. Both
are in the row that makes a ranker, so that a process that would compute something else finds out before it learns. A
change of the code that leaves version, probe and format alone keeps the snapshots.
"""

from __future__ import annotations

import functools
import hashlib

import msgspec
import numpy as np

from rankloop.kernels import elementary
from rankloop.serving.adapters.registry import build, find, has_items
from rankloop.serving.log.records import Config, without_items

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
            context = rng.random((_ITEMS, ranker.n_features or 1)).astype(np.float32)
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
