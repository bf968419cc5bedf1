"""The answers of the service as frozen dataclasses, read from JSON and checked.

Fields that this version does not know are left out, so that an older client understands a newer service.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from rankloop.serving.client.policy import Policy

Status = Literal["accepted", "duplicate", "parked", "late", "unknown", "conflict", "busy"]
T = TypeVar("T")


@dataclass(frozen=True)
class RankAnswer:
    """The list to show, best first.

    Parameters
    ----------
    decision_id : str
        The ID that feedback refers to.
    items : list of str
        The items to show, best first.
    propensities : list of float or None
        The probability of each item at its position, where it is known.
    model_seq : int
        The row of the log up to which the ranker had learnt.
    duplicate : bool
        Whether the same request was answered before.
    degraded : bool, optional
        Whether the list is not in the log, so that nothing can be learnt from feedback on it.
    """

    decision_id: str
    items: list[str]
    propensities: list[float] | None
    model_seq: int
    duplicate: bool
    degraded: bool = False


@dataclass(frozen=True)
class EventAnswer:
    """What became of an event, and its row in the log.

    Parameters
    ----------
    status : str
        "accepted", "duplicate", "parked", "late", "unknown", "conflict" or "busy" (not written: send it again).
    seq : int
        The row of the event in the log.
    duplicate : bool, optional
        Whether the event was there before.
    learnt : bool, optional
        Whether the ranker learnt from it.
    """

    status: Status
    seq: int
    duplicate: bool = False
    learnt: bool = False


@dataclass(frozen=True)
class Interval:
    """A mean, bounds that hold at all times with 95% probability, and the number of lists behind it.

    Parameters
    ----------
    mean : float
        The mean.
    low : float
        The lower end of the interval.
    high : float
        The upper end of the interval.
    rounds : int
        How many lists it was computed from.
    """

    mean: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Lift:
    """A difference of mean rewards, with bounds that hold at all times together, 95%.

    Parameters
    ----------
    mean : float
        The ranker's mean less the baseline's.
    low : float
        The lower bound.
    high : float
        The upper bound.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class TrialAnswer:
    """How the ranker's lists compare with the baseline.

    Parameters
    ----------
    live : float
        The share of requests with a baseline that get the ranker's list.
    holdout : float
        The share that always gets the baseline.
    ranker_lists : int
        Lists of the ranker with feedback.
    ranker_mean : float or None
        Their mean reward.
    baseline_lists : int
        Baseline lists with feedback.
    baseline_mean : float or None
        Their mean reward.
    lift : Lift or None
        How much better the ranker's lists are than the baseline at the same time, with bounds that hold at all times.
    agreed : float or None
        The share of positions of baseline lists where the ranker would have shown the same item.
    at_least : float or None
        The mean reward of baseline lists at these positions alone.
    """

    live: float
    holdout: float
    ranker_lists: int
    ranker_mean: float | None
    baseline_lists: int
    baseline_mean: float | None
    lift: Lift | None
    agreed: float | None
    at_least: float | None


@dataclass(frozen=True)
class RankerAnswer:
    """The present state of one ranker.

    Parameters
    ----------
    name : str
        The name of the ranker.
    algorithm : str
        Its algorithm.
    rounds : int
        How many rounds it has learnt from.
    model_seq : int
        The row of the log up to which it has learnt.
    state_hash : str
        The hash of what it has learnt.
    current : list of str
        The items in the order that it holds best now.
    last_seq : int
        The newest row of its log.
    generation : int
        How often its items have changed.
    frozen : bool
        Whether it has stopped learning.
    feedback : str
        The kind of feedback that it takes.
    feedback_length : int or None
        How many positions feedback has; None for those of the list.
    max_grade : int or None
        The largest relevance, where that matters.
    parameters : dict of str to object
        The parameters of the algorithm.
    policy : Policy
        What is done about feedback that is missing or late.
    counts : dict of str to int
        How many events there were of each kind.
    parked : int
        How many reports wait for their decision.
    exploration_share : float or None
        The share of lists that explored; None where there are none.
    last_at : int
        When the newest row was written, in milliseconds since 1970.
    snapshot_seq : int
        The row of the newest snapshot.
    estimates : dict of str to dict of str to Interval
        What lists are worth: "value" by measure, the observed one first, and "regret"; only what can be said.
    duplicate : bool, optional
        Whether the request that created it was a repetition.
    summary : str, optional
        The algorithm, in a sentence.
    candidates : str, optional
        "yes", or why a list cannot be asked of some of its items only.
    trial : TrialAnswer or None, optional
        How its lists compare with the baseline that requests bring.
    baselines : str, optional
        "yes", or why it learns nothing from lists that show a baseline.
    stored_items : int, optional
        For how many items features are stored.
    stored_features : int, optional
        How many features are stored for each.
    feature_names : list of str, optional
        Names of the features, where there are any.
    not_estimated : dict of str to str, optional
        Why the other measures are not estimated, in a sentence each.
    """

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
    estimates: dict[str, dict[str, Interval]]
    duplicate: bool = False
    summary: str = ""
    candidates: str = "yes"
    trial: TrialAnswer | None = None
    baselines: str = "yes"
    stored_items: int = 0
    stored_features: int = 0
    feature_names: list[str] = field(default_factory=list)
    not_estimated: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RankersAnswer:
    """All rankers that are served; `notices` has a sentence for each with which something is wrong."""

    rankers: list[RankerAnswer]
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SnapshotAnswer:
    """A snapshot that can be rolled back to.

    Parameters
    ----------
    seq : int
        The row of the log that it was taken at.
    at : int
        When it was taken, in milliseconds since 1970.
    epoch : int
        The epoch of the process that took it.
    state_hash : str
        The hash of the state.
    config_hash : str
        The hash of the configuration.
    code_hash : str
        The hash of the code that computed it.
    """

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
class SeriesAnswer:
    """Statistics of one ranker over time, in a bounded number of points.

    Parameters
    ----------
    name : str
        The name of the ranker.
    width : int
        How many rows of the log a point stands for.
    series : dict of str to list of object
        The statistics by name, a value for each point.
    delays : dict of str to list of float
        Delays of feedback in seconds.
    """

    name: str
    width: int
    series: dict[str, list[Any]]
    delays: dict[str, list[float]]


@dataclass(frozen=True)
class EventsAnswer:
    """What was learnt and changed, in the order of the log.

    Parameters
    ----------
    events : list of dict of str to object
        Each with `id`, `ranker`, `seq`, `at` (milliseconds since 1970) and `kind`, and what that kind has.
    through : int
        The last row that was looked at: ask for what comes after it.
    model_seq : int
        How far the ranker has folded its log: there is more where `through` is less.
    log : str
        The identity of the log: another one where the ranker was archived and its name used again.
    """

    events: list[dict[str, Any]]
    through: int
    model_seq: int
    log: str


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
