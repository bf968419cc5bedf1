"""Requests and answers of the HTTP API, as the types that check and describe them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from rankloop.serving.adapters.estimates import Interval
from rankloop.serving.log.candidate_lists import Lift
from rankloop.serving.log.records import DeadLetter, Policy

RankerName = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Letters, digits, dot, dash, underscore."),
]
ItemName = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=256)]
# The same without a check of each as it is read, which takes longer than all else of reading a request: they must be
# known items, or are checked together.
ListedName = Annotated[
    str, Meta(extra_json_schema={"pattern": r"^[^\x00-\x1f\x7f]+$", "minLength": 1, "maxLength": 256})
]
EventId = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=128)]
Seed = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Status = Literal["accepted", "duplicate", "parked", "late", "unknown", "conflict", "busy"]


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows of features as packed little-endian float32: in msgpack as they are, in JSON as base64."""

    shape: tuple[int, int]
    data: bytes


class CreateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ranker to create. The same again is a duplicate; the same name with anything else is a conflict.

    features: for rankers with features, a row for each of `items`, which are stored. feature_names: of all features
    that the ranker takes.
    """

    name: RankerName
    algorithm: str
    items: list[ItemName] | None = None
    parameters: dict[str, Any] = {}
    policy: Policy = Policy()
    seed: Seed | None = None
    features: list[list[float]] | Matrix | None = None
    feature_names: list[ItemName] | None = None


class RankRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A request for a list.

    items: the candidates; left out, all items of the ranker. features: a row for each of them, for rankers with
    features: all columns, or those that follow the stored ones. shared: numbers of the request as a whole, such as of
    its user; each times each stored feature is a feature.
    exclude: items that must not be shown; names that are not there are ignored.
    n_positions: how many items to show at most. pinned: items that must stand at a position, counted from 0.
    baseline: the application's own order, which is shown instead to a share of requests: see `promote`.
    subject: whose context it is: it is encrypted with a key of this subject, and erased with `rankloop erase`.
    """

    decision_id: EventId | None = None
    items: list[ListedName] | None = None
    features: list[list[float]] | Matrix | None = None
    context: Any = None
    exclude: list[ItemName] = []
    n_positions: Annotated[int, Meta(ge=1)] | None = None
    pinned: dict[int, ItemName] = {}
    baseline: list[ListedName] | None = None
    shared: Annotated[list[float], Meta(min_length=1)] | None = None
    subject: EventId | None = None


class RankAnswer(msgspec.Struct, frozen=True, gc=False):
    """The list to show, best first. `degraded`: it is not logged, and feedback on it cannot be learnt from."""

    decision_id: str
    items: list[str]
    propensities: list[float] | None
    model_seq: int
    duplicate: bool
    degraded: bool = False


class FeedbackRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Feedback on one list: the relevance of its first k items, or a click (1) or none (0) per position."""

    decision_id: EventId
    event_id: EventId | None = None
    relevance: list[float] | None = None
    clicks: list[float] | None = None


class EventAnswer(msgspec.Struct, frozen=True, gc=False):
    """The outcome of an event, and its row in the log."""

    status: Status
    seq: int
    duplicate: bool = False
    learnt: bool = False


class ActivateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The list was shown."""

    decision_id: EventId
    event_id: EventId | None = None


class ItemsRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Items to add, and items to retire.

    For rankers with features: `update` names items that get other features. features: a row for each of `add`, then
    for each of `update`. feature_names: of all features that the ranker takes, from now on.
    """

    add: list[ItemName] = []
    retire: list[ItemName] = []
    event_id: EventId | None = None
    update: list[ItemName] = []
    features: list[list[float]] | Matrix | None = None
    feature_names: list[ItemName] | None = None


class PromoteRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Let the ranker's lists be shown to a share of the requests with a baseline that are not held out."""

    share: Annotated[float, Meta(ge=0.0, le=1.0)] = 1.0
    event_id: EventId | None = None


class TrialAnswer(msgspec.Struct, frozen=True):
    """How the ranker compares with the baseline.

    live: the share of requests with a baseline that get the ranker's list. lists: with feedback, of each kind. Their
    means are of different times where that share has changed: `lift` compares lists of the same time.
    agreed: the share of positions of baseline lists where the ranker would have shown the same item.
    at_least: mean reward of a baseline list at these positions alone, which the ranker's list would have had too.
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


class FreezeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Freeze or resume learning."""

    frozen: bool = True
    event_id: EventId | None = None


class RollbackRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Roll back to a snapshot."""

    to_seq: Annotated[int, Meta(ge=1, le=(1 << 40) - 1)]
    event_id: EventId | None = None


class PolicyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to change of the policy, for lists from then on; what is left out stays."""

    deadline_seconds: float | None = None
    late: Literal["ignore", "learn"] | None = None
    answers: Literal["first", "last", "sum", "union"] | None = None
    degraded: bool | None = None
    holdout: float | None = None
    exploration_cap: float | None = None
    displacement: int | None = None
    event_id: EventId | None = None


class ResetRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forget what was learnt, and start again with these parameters and items, or the present ones. The log stays."""

    parameters: dict[str, Any] | None = None
    items: list[ItemName] | None = None
    event_id: EventId | None = None


class RankerAnswer(msgspec.Struct, frozen=True):
    """The present state of one ranker.

    candidates: "yes", or why a list cannot be asked of some of its items. baselines: "yes", or why nothing is learnt
    from lists that show a baseline. stored_items, stored_features: items whose features are stored, and how many each.
    estimates: "value" by measure, the observed one first, and "regret"; only what has an interval that says something.
    not_estimated: of the other measures the reason, in a sentence.
    """

    name: str
    algorithm: str
    summary: str
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
    candidates: str = "yes"
    trial: TrialAnswer | None = None
    duplicate: bool = False
    baselines: str = "yes"
    stored_items: int = 0
    stored_features: int = 0
    feature_names: list[str] = []
    not_estimated: dict[str, str] = {}


class ArchivedAnswer(msgspec.Struct, frozen=True):
    """A ranker that was put away, and the name under which its rows stay."""

    name: str
    archived: str


class RankersAnswer(msgspec.Struct, frozen=True):
    """All rankers that are served, and a sentence for each with which something is wrong."""

    rankers: list[RankerAnswer]
    notices: list[str] = []


class SnapshotAnswer(msgspec.Struct, frozen=True):
    """A snapshot that can be rolled back to."""

    seq: int
    at: int
    epoch: int
    state_hash: str
    config_hash: str
    code_hash: str


class SnapshotsAnswer(msgspec.Struct, frozen=True):
    """All snapshots that are kept, oldest first."""

    snapshots: list[SnapshotAnswer]


class StoryRow(msgspec.Struct, frozen=True):
    """One event in the history of a decision."""

    seq: int
    at: int
    kind: str
    event_id: str
    values: list[float] | None = None
    outcome: str | None = None


class DecisionAnswer(msgspec.Struct, frozen=True):
    """The history of one decision: what it was drawn from, and what became of it.

    guard_rail: "greedy" where the exploration cap let the best list of the moment be shown; "moved" or "groups" where a
    bound on displacements moved items into reach, or let the ranker order groups of neighbours.
    """

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
    pinned: dict[int, str] = {}
    shown_by: Literal["ranker", "baseline"] = "ranker"
    guard_rail: Literal["", "greedy", "moved", "groups"] = ""
    context_erased: bool = False


class DecisionSummary(msgspec.Struct, frozen=True):
    """One list in a line; `values` is the feedback on it so far."""

    decision_id: str
    seq: int
    at: int
    top: str
    length: int
    explored: bool
    values: list[float] | None
    shown_by: Literal["ranker", "baseline"] = "ranker"
    guard_rail: Literal["", "greedy", "moved", "groups"] = ""


class DecisionsAnswer(msgspec.Struct, frozen=True):
    """The newest lists, newest first."""

    decisions: list[DecisionSummary]


class SparksAnswer(msgspec.Struct, frozen=True):
    """For each ranker the mean reward over time, oldest first, in a few points."""

    sparks: dict[str, list[float | None]]


class SeriesAnswer(msgspec.Struct, frozen=True):
    """Statistics of one ranker over time: a bounded number of points, whatever the log's length."""

    name: str
    width: int
    series: dict[str, list[Any]]
    delays: dict[str, list[float]]


class ItemRow(msgspec.Struct, frozen=True):
    """One item: its place in the current order, lists that showed it, feedback on it, and the mean of that.

    `place`: 0 where the order is shorter than the catalogue, and it is not in it. `positive`: how often the feedback
    was above 0, as a click is. `low`, `high`: the 95% interval of the mean.
    """

    item: str
    place: int
    shown: int
    observed: int
    positive: int
    estimate: float | None
    low: float | None
    high: float | None


class ItemTableAnswer(msgspec.Struct, frozen=True):
    """Items with what they were shown and got back, since row `since`; `total`: how many there are."""

    items: list[ItemRow]
    total: int
    since: int


class AccessAnswer(msgspec.Struct, frozen=True):
    """The role of the caller, the rankers that its key is for (none: all), and its quotas (0: none)."""

    role: str
    rankers: list[str]
    most_rankers: int
    rate: float


class EventsAnswer(msgspec.Struct, frozen=True):
    """What was learnt and changed, in the order of the log.

    through: the last row that was looked at, to be `after` of the next request. model_seq: how far the ranker has
    folded its log: there is more where `through` is less. log: the identity of the log. It is another one where the
    ranker was archived and its name used again; the rows are then counted from 1 again.
    """

    events: list[dict[str, Any]]
    through: int
    model_seq: int
    log: str


class DeadLettersAnswer(msgspec.Struct, frozen=True):
    """Dead letters: their total number, and the newest."""

    total: int
    newest: list[DeadLetter]


class RankOutcome(msgspec.Struct, frozen=True, gc=False):
    """One list of several that were requested at once: the list, or what is wrong with the request for it."""

    answer: RankAnswer | None = None
    error: ErrorBody | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """What went wrong: a code, a sentence, and the field of the request."""

    code: str
    message: str
    field: str | None = None


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The form of all errors."""

    error: ErrorBody
