"""The answers of the service as frozen dataclasses, read from JSON and checked.

Fields that this version does not know are left out, so that an older client understands a newer service.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Status = Literal["accepted", "duplicate", "parked", "late", "unknown", "conflict"]
T = TypeVar("T")


@dataclass(frozen=True)
class RankAnswer:
    """The list to show, best first."""

    decision_id: str
    items: list[str]
    propensities: list[float] | None
    model_seq: int
    duplicate: bool


@dataclass(frozen=True)
class EventAnswer:
    """What became of an event, and its row in the log."""

    status: Status
    seq: int
    duplicate: bool = False
    learnt: bool = False


@dataclass(frozen=True)
class Policy:
    """How long the service waits for feedback, and what it does with late feedback."""

    deadline_seconds: float
    parking_seconds: float
    late: Literal["ignore", "learn"]


@dataclass(frozen=True)
class Interval:
    """A mean with its 95% confidence interval, and the number of rounds and of independent units behind it."""

    mean: float
    low: float
    high: float
    rounds: int
    units: int


@dataclass(frozen=True)
class RankerAnswer:
    """The present state of one ranker."""

    name: str
    algorithm: str
    rounds: int
    model_seq: int
    state_hash: str
    current: list[str]
    last_seq: int
    generation: int
    frozen: bool
    feedback: str
    feedback_length: int | None
    max_grade: int | None
    parameters: dict[str, Any]
    policy: Policy
    counts: dict[str, int]
    parked: int
    exploration_share: float | None
    last_at: int
    snapshot_seq: int
    estimates: dict[str, dict[str, Interval | None]]
    duplicate: bool = False
    summary: str = ""


@dataclass(frozen=True)
class RankersAnswer:
    """All rankers."""

    rankers: list[RankerAnswer]


@dataclass(frozen=True)
class SnapshotAnswer:
    """A snapshot that can be rolled back to."""

    seq: int
    at: int
    epoch: int
    state_hash: str
    config_hash: str
    code_hash: str


@dataclass(frozen=True)
class SnapshotsAnswer:
    """All snapshots that are kept, oldest first."""

    snapshots: list[SnapshotAnswer]


@dataclass(frozen=True)
class StoryRow:
    """One event in the history of a decision."""

    seq: int
    at: int
    kind: str
    event_id: str
    values: list[float] | None = None
    outcome: str | None = None


@dataclass(frozen=True)
class DecisionAnswer:
    """The history of one list: what it was drawn from, and what became of it."""

    decision_id: str
    items: list[str]
    candidates: list[str] | None
    propensities: list[float] | None
    explored: bool
    model_seq: int
    seq: int
    at: int
    deadline: int
    key: str
    generation: int
    context: Any
    activated: bool
    answered: bool
    expired: bool
    rows: list[StoryRow]


@dataclass(frozen=True)
class SeriesAnswer:
    """Statistics of one ranker over time, in a bounded number of points."""

    name: str
    width: int
    series: dict[str, list[Any]]
    delays: dict[str, list[float]]


def read(kind: type[T], value: Any) -> T:
    """Read decoded JSON as `kind`.

    Parameters
    ----------
    kind : type
        A dataclass of this module, or a list of one.
    value : object
        What `json.loads` gave.

    Returns
    -------
    object
        An instance of `kind`.

    Raises
    ------
    TypeError
        If a field is missing or has another type; the message names it.

    Examples
    --------
    >>> read(EventAnswer, {"status": "accepted", "seq": 7, "new_in_a_later_version": 1})
    EventAnswer(status='accepted', seq=7, duplicate=False, learnt=False)
    >>> read(EventAnswer, {"status": "accepted", "seq": "7"})
    Traceback (most recent call last):
    ...
    TypeError: seq must be int, got '7'
    """
    answer: T = _read(kind, value, "answer")
    return answer


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(value, dict):
        hints = _hints(kind)
        return kind(**{name: _read(hint, value[name], name) for name, hint in hints.items() if name in value})
    if origin is list and isinstance(value, list):
        return [_read(arguments[0], one, where) for one in value]
    if origin is dict and isinstance(value, dict):
        return {key: _read(arguments[1], one, f"{where}.{key}") for key, one in value.items()}
    if origin is types.UnionType:
        return None if value is None else _read(arguments[0], value, where)
    if origin is Literal and isinstance(value, str):
        return value  # a status of a later version is no reason to fail
    if kind is float and type(value) in (int, float):
        return float(value)
    if isinstance(kind, type) and type(value) is kind:
        return value
    raise TypeError(f"{where} must be {getattr(kind, '__name__', kind)}, got {value!r:.60}")


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)
