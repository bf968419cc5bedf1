"""What the service takes on: limits, each of which can be set, and the checks before anything is written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from rankloop.serving.adapters import registry
from rankloop.serving.errors import RequestError, TooLarge
from rankloop.serving.log.records import Config, Entry, read_body

DEPTH = 32  # of nested values in a request
_INTEGERS = range(-(1 << 63), 1 << 64)
_CARRY_STATES = ("rollback", "upgrade", "import")


class Limits(msgspec.Struct, frozen=True):
    """How much one request may ask for, so that one caller cannot take everything."""

    body_bytes: int = 8_000_000
    webhook_bytes: int = 100_000
    items: int = 10_000
    features: int = 4_096
    ranker_bytes: int = 256_000_000  # memory of one ranker
    batch: int = 1_000  # feedback in one request
    rankers: int = 1_000
    parked: int = 10_000  # feedback that waits for its decision, in one ranker
    gathered: int = 1_000  # answers to one list, where they are gathered
    waiting: int = 4_096  # events that wait for the disk
    context_bytes: int = 16_000
    row_bytes: int = 16_000_000  # one row of the log; rows that carry a state may have twice `ranker_bytes`
    streams: int = 64
    cache_bytes: int = 256_000_000  # lists at hand, of all rankers together
    degraded: int = 10_000  # lists shown without the store that wait to be logged
    store_seconds: float = 10.0  # that a request waits for the store
    connections: int = 2_000
    connections_per_address: int = 500
    header_bytes: int = 32_768
    header_seconds: float = 10.0  # from the first byte to the end of the header
    body_seconds: float = 60.0  # from the end of the header to the end of the body
    idle_seconds: int = 30  # of a connection between two requests
    requests_per_second: float = 5_000.0  # with one key


def read_limits(settings: list[str]) -> Limits:
    """The limits, some of them set as NAME=NUMBER.

    >>> read_limits(["rankers=20000", "header_seconds=2.5"]).rankers
    20000
    >>> read_limits(["rankers=many"])
    Traceback (most recent call last):
    ...
    ValueError: limit rankers must be a positive whole number, got 'many'
    """
    kinds = {field.name: field.type for field in msgspec.structs.fields(Limits)}
    given: dict[str, float] = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in kinds:
            raise ValueError(f"there is no limit {name!r}; there are {', '.join(kinds)}")
        whole = kinds[name] is int
        try:
            given[name] = int(text) if whole else float(text)
        except ValueError:
            given[name] = 0
        if not 0 < given[name] < 1 << 53:
            kind = "whole number" if whole else "number"
            raise ValueError(f"limit {name} must be a positive {kind}, got {text!r}")
    return msgspec.convert(given, Limits)


def check_value(value: Any, *, field: str) -> None:
    """Refuse a value that could not be written and read again anywhere: too deep, or of another kind than JSON has."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEPTH:
            raise RequestError(f"{field} must be nested at most {DEPTH} deep", field=field)
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                for key in one:
                    if not isinstance(key, str):
                        raise RequestError(f"{field} must have strings as keys, got {key!r:.40}", field=field)
                below += one.values()
            elif isinstance(one, list | tuple):
                below += one
            elif isinstance(one, int):
                if one not in _INTEGERS:
                    raise RequestError(f"{field} must have integers of 64 bits at most", field=field)
            elif one is not None and not isinstance(one, str | float):
                raise RequestError(f"{field} must not have a {type(one).__name__}", field=field)
        level = below


def check_entry(entry: Entry, limits: Limits) -> None:
    """Refuse an entry that could not be read again; nothing else may be committed.

    Feedback can be, and a list without a context: all of it was checked, and is written as bytes.
    """
    most = 2 * limits.ranker_bytes if entry.kind in _CARRY_STATES else limits.row_bytes
    if len(entry.body) > most:
        raise TooLarge(f"a row of the log may have {most:,} bytes, this one has {len(entry.body):,}")
    try:
        entry.event_id.encode()
        (entry.decision or "").encode()
        if entry.content is None or getattr(entry.content, "context", None) is not None:
            read_body(entry)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RequestError(f"what was sent cannot be read again: {error}") from None


def digest_of(*parts: str | bytes) -> bytes:
    """Equal for deliveries that say the same thing."""
    told = b""
    for part in parts:
        one = part.encode() if isinstance(part, str) else part
        told += len(one).to_bytes(8, "little") + one
    return hashlib.blake2b(told, digest_size=16).digest()


def check_names(names: list[str] | None, limits: Limits, *, field: str) -> None:
    """No name twice, and not too many."""
    if names is None:
        return
    if len(names) > limits.items:
        raise RequestError(f"limit reached: {limits.items:,} items, got {len(names):,}", field=field)
    if len(set(names)) != len(names):
        raise RequestError("items must not repeat", field=field)


def check_size(config: Config, limits: Limits, *, n_items: int) -> None:
    """Refuse a ranker that would be too large, before anything is allocated."""
    features = config.parameters.get("n_features", 1)
    if isinstance(features, int) and features > limits.features:
        raise RequestError(
            f"n_features must be at most {limits.features:,}, got {features:,}", field="parameters"
        )
    try:
        kind = registry.find(config.algorithm)
    except ValueError as error:
        raise RequestError(str(error), field="algorithm") from None
    if not n_items and registry.has_items(config.algorithm):
        raise RequestError(f"{config.algorithm} needs items: name at least one", field="items")
    try:
        needed = int(kind.bytes_for(**{**config.parameters, "n_items": n_items}))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise RequestError(f"{config.algorithm} cannot be built: {error}", field="parameters") from None
    if not registry.has_items(config.algorithm) and isinstance(features, int):
        needed += 4 * n_items * features  # float32, stored
    if needed > limits.ranker_bytes:
        raise RequestError(
            f"{config.algorithm} with {n_items:,} items would need {needed:,} bytes of memory, "
            f"the limit for one ranker is {limits.ranker_bytes:,}",
            field="items" if n_items else "parameters",
        )


def check_portable(config: Config, *, shared: bool) -> None:
    """Refuse a ranker that would drift apart between replicas."""
    if shared and not registry.find(config.algorithm).portable:
        raise RequestError(
            f"{config.algorithm} cannot be served by replicas: its state depends on the machine; use a SQLite folder",
            field="algorithm",
        )


def check_policy(config: Config) -> None:
    """Waiting times, shares and bounds that make sense."""
    for name, most in (("deadline_seconds", 1e9), ("parking_seconds", 3_600.0), ("gather_seconds", 86_400.0)):
        value = getattr(config.policy, name)
        if value is not msgspec.UNSET and not 0 <= value <= most:
            raise RequestError(
                f"policy.{name} must be between 0 and {most:g}, got {value}", field=f"policy.{name}"
            )
    holdout = config.policy.holdout
    if isinstance(holdout, float) and not 0 <= holdout < 1:
        raise RequestError(
            f"policy.holdout must be a share of at least 0 and below 1, got {holdout}", field="policy.holdout"
        )
    cap, bound = config.policy.exploration_cap, config.policy.displacement
    if isinstance(cap, float) and not 0 <= cap <= 1:
        raise RequestError(
            f"policy.exploration_cap must be a share between 0 and 1, got {cap}",
            field="policy.exploration_cap",
        )
    if isinstance(bound, int) and not 0 <= bound <= 1_000_000:
        raise RequestError(
            f"policy.displacement must be a number of positions up to 1,000,000, got {bound}",
            field="policy.displacement",
        )


def refuse(attempt: Callable[[], object], *, field: str) -> None:
    """Try it; what goes wrong is the caller's error."""
    try:
        attempt()
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise RequestError(str(error), field=field) from None
