"""What the service takes on: limits, each of which can be set, checks before anything is written, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranker
from rankloop.kernels.call_checks import within
from rankloop.serving import registry
from rankloop.serving.log.records import Config, Entry, Policy, read_body

_LARGEST = float(np.finfo(np.float64).max)
DEPTH = 32  # of nested values in a request
_INTEGERS = range(-(1 << 63), 1 << 64)
_POLICY = {  # the most that a setting may be
    "deadline_seconds": 1_000_000_000,
    "parking_seconds": 3_600,
    "gather_seconds": 86_400,
    "holdout": 1,
    "exploration_cap": 1,
    "displacement": 1_000_000,
}
_CARRY_STATES = ("rollback", "upgrade", "import")


class Limits(msgspec.Struct, frozen=True):
    """How much one request may ask for, so that one caller cannot take everything."""

    body_bytes: int = 8_000_000
    webhook_bytes: int = 100_000  # whoever made up a signature may send so much: it is checked at the end
    items: int = 10_000
    documents: int = 1_000  # to rerank in one request
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


def checked_feedback(given: Any, ranker: Ranker, length: int | None, *, field: str) -> NDArray[np.float64]:
    """The numbers of feedback, so many where that is known; `RequestError` where the ranker cannot learn from them."""
    kind, values = ranker.feedback.kind, np.array(given, np.float64)
    if length is not None and len(values) != length:
        raise RequestError(f"{kind} must have {length} values for this list, got {len(values)}", field=field)
    if kind == "clicks" and not ((values == 0.0) | (values == 1.0)).all():
        raise RequestError(f"clicks must be 0 or 1, got {given}", field=field)
    if not within(values, 0.0, _LARGEST):
        raise RequestError(f"{kind} must be finite and not negative, got {given}", field=field)
    if ranker.max_grade is not None and not within(values, 0.0, float(ranker.max_grade)):
        raise RequestError(f"{kind} must be at most {ranker.max_grade}, got {given}", field=field)
    return values


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


def check_policy(policy: Policy) -> None:
    """Waiting times, shares and bounds that make sense."""
    for name, most in _POLICY.items():
        value = getattr(policy, name)
        if value is not msgspec.UNSET and (not 0 <= value <= most or (name == "holdout" and value == most)):
            below = ", and below that" if name == "holdout" else ""
            raise RequestError(
                f"policy.{name} must be between 0 and {most}{below}, got {value}", field=f"policy.{name}"
            )


def refuse(attempt: Callable[[], object], *, field: str) -> None:
    """Try it; what goes wrong is the caller's error."""
    try:
        attempt()
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise RequestError(str(error), field=field) from None


# Errors of requests, and their HTTP status and code.


class RequestError(Exception):
    """A refused request: an HTTP status, a code for programs, a sentence, and the field that is wrong."""

    status = 422
    code = "invalid"
    retry_after: int | None = None  # seconds, where trying again makes sense

    def __init_subclass__(cls, *, status: int = 0, code: str = "", retry_after: int | None = None) -> None:
        if status:
            cls.status, cls.code, cls.retry_after = status, code, retry_after

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class Malformed(RequestError, status=400, code="malformed"):
    """The body cannot be read."""


class Unauthorized(RequestError, status=401, code="unauthorized"):
    """No key, or an unknown one."""


class Forbidden(RequestError, status=403, code="forbidden"):
    """A key whose role does not allow the request."""


class NotFound(RequestError, status=404, code="not_found"):
    """Not found."""


class TooSlow(RequestError, status=408, code="timeout"):
    """The body did not arrive in time."""


class Conflict(RequestError, status=409, code="conflict"):
    """The ID is used for something else."""


class TooLarge(RequestError, status=413, code="too_large"):
    """More than the limits allow."""


class Unsupported(RequestError, status=415, code="unsupported_media_type"):
    """An unsupported content type."""


class Busy(RequestError, status=429, code="busy", retry_after=1):
    """The queue is full; nothing was dropped silently, and nothing was written."""


class RateLimited(Busy):
    """More requests than allowed from one caller."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(RequestError, status=503, code="unavailable", retry_after=1):
    """The store cannot write now."""
