"""The types of the HTTP API: for the service, which refuses unknown fields, and its client, which leaves them out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from rankloop.serving.verdict_answers import ComparisonAnswer, Interval, TrialAnswer

_NAME = r"^[^\x00-\x1f\x7f]+$"
RankerName = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Letters, digits, dot, dash, underscore."),
]
ItemName = Annotated[str, Meta(pattern=_NAME, min_length=1, max_length=256)]
# The same without a check of each as it is read, which takes longer than all else of reading a request: they must be
# known items, or are checked together.
ListedName = Annotated[str, Meta(extra_json_schema={"pattern": _NAME, "minLength": 1, "maxLength": 256})]
EventId = Annotated[str, Meta(pattern=_NAME, min_length=1, max_length=128)]
Query = Annotated[str, Meta(max_length=1024)] | Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Seed = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
# Words of answers: a later service may have more of them, which is no reason to fail.
Status = Annotated[
    str,
    Meta(
        extra_json_schema={"enum": ["accepted", "duplicate", "parked", "late", "unknown", "conflict", "busy"]}
    ),
]
ShownBy = Annotated[str, Meta(extra_json_schema={"enum": ["ranker", "baseline"]})]
Rail = Annotated[str, Meta(extra_json_schema={"enum": ["", "greedy", "moved", "groups"]})]


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows of features as packed little-endian float32: in msgpack as they are, in JSON as base64."""

    shape: tuple[int, int]
    data: bytes


class ChangeablePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What of a policy may be changed while the ranker runs; what is left out stays, or is the default."""

    deadline_seconds: float | None = None
    late: Literal["ignore", "learn"] | None = None
    answers: Literal["first", "last", "sum", "union"] | None = None
    degraded: bool | None = None
    holdout: float | None = None
    exploration_cap: float | None = None
    displacement: int | None = None
    gather_seconds: float | None = None


class NewPolicy(ChangeablePolicy, frozen=True, forbid_unknown_fields=True):
    """The policy of a ranker that is to be created."""

    parking_seconds: float | None = None
    apprentice: bool | None = None
    silence: Literal["ignore", "zero"] | None = None


class PolicyRequest(ChangeablePolicy, frozen=True, forbid_unknown_fields=True):
    """What is to change of the policy, for lists from then on; what is left out stays."""

    event_id: EventId | None = None


class CreateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ranker to create. The same again is a duplicate; the same name with anything else is a conflict.

    features: for rankers with features, a row for each of `items`, which are stored. feature_names: of all features
    that the ranker takes.
    """

    name: RankerName
    algorithm: str
    items: list[ItemName] | None = None
    parameters: dict[str, Any] = {}
    policy: NewPolicy = NewPolicy()
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
    rankings: for a comparison, the order of each ranking by name; rankers of the service are asked for theirs.
    unit: for a comparison, the session or user that the list is for, whose lists depend on each other.
    query: what was searched for, for rankers that remember queries. The log has a hash of it only.
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
    rankings: dict[str, list[ItemName]] | None = None
    unit: EventId | None = None
    query: Query | None = None


class RankAnswer(msgspec.Struct, frozen=True, gc=False):
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


class FeedbackRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Feedback on one list.

    relevance: of its first k items. clicks: a click (1) or none (0) per position. Or by the names of items, where a
    click is a relevance of 1: clicked, all that were clicked; item, one of them, and others may follow.
    """

    decision_id: EventId
    event_id: EventId | None = None
    relevance: list[float] | None = None
    clicks: list[float] | None = None
    clicked: list[ListedName] | None = None
    item: ListedName | None = None


class EventAnswer(msgspec.Struct, frozen=True, gc=False):
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


class UbiOutcome(msgspec.Struct, frozen=True, omit_defaults=True, rename={"event_id": "_id"}):
    """What became of a document of UBI, with the ID of its event or search, and where it was refused, why.

    status: 201 for what is in the log, 202 for what waits for its list, 200 for what changed nothing; else an error.
    result: "created", "parked", "duplicate", "late", "unknown", "conflict", "noop" or "error".
    """

    event_id: str
    status: int
    result: str
    error: dict[str, str] | None = None


class UbiAnswer(msgspec.Struct, frozen=True):
    """What became of the documents of UBI in a request, each under its action, in their order. errors: any refused."""

    errors: bool
    items: list[dict[str, UbiOutcome]]


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
    """Let the ranker's lists be shown to a share of the requests with a baseline that are not held out.

    ranking: of a comparison instead, the one whose order every request gets from now on.
    """

    share: Annotated[float, Meta(ge=0.0, le=1.0)] = 1.0
    event_id: EventId | None = None
    ranking: str | None = None


class StopRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """End a comparison: every request gets the order of its first ranking from now on."""

    event_id: EventId | None = None


class FreezeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Freeze or resume learning."""

    frozen: bool = True
    event_id: EventId | None = None


class RollbackRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Roll back to a snapshot."""

    to_seq: Annotated[int, Meta(ge=1, le=(1 << 40) - 1)]
    event_id: EventId | None = None


class ResetRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forget what was learnt, and start again with these parameters and items, or the present ones. The log stays."""

    parameters: dict[str, Any] | None = None
    items: list[ItemName] | None = None
    event_id: EventId | None = None


class Policy(msgspec.Struct, frozen=True):
    """How long the service waits for feedback, and what it does with late feedback.

    Parameters
    ----------
    deadline_seconds, parking_seconds : float
        How long feedback on a list is waited for, and how long it is kept where its list is not known yet.
    late : {"ignore", "learn"}
        What is done with feedback after the deadline.
    degraded : bool, optional
        Whether lists are shown while the store cannot be written to.
    answers : {"first", "last", "sum", "union"}, optional
        Which of several answers to one list counts.
    apprentice : bool, optional
        Whether requests with a baseline get the baseline until the ranker is promoted.
    holdout : float, optional
        The share of requests with a baseline that always get it.
    silence : {"ignore", "zero"}, optional
        Whether no answer to a list that was seen means a relevance of 0. It means no click in any case.
    exploration_cap : float, optional
        The largest share of lists that may explore.
    displacement : int, optional
        How many positions an item may stand from its place in the baseline, at most; 0 for any number.
    gather_seconds : float, optional
        How long clicks that come one by one are gathered before they are learnt as one answer, from the first of them.
    """

    deadline_seconds: float
    parking_seconds: float
    late: str
    degraded: bool = False
    answers: str = "first"
    apprentice: bool = False
    holdout: float = 0.0
    silence: str = "ignore"
    exploration_cap: float = 1.0
    displacement: int = 0
    gather_seconds: float = 30.0


class RankerAnswer(msgspec.Struct, frozen=True):
    """The present state of one ranker.

    Parameters
    ----------
    name, algorithm : str
        The name of the ranker, and its algorithm.
    rounds, model_seq : int
        How many rounds it has learnt from, and the row of the log up to which it has.
    state_hash : str
        The hash of what it has learnt.
    current : list of str
        The items in the order that it holds best now.
    last_seq, generation : int
        The newest row of its log, and how often its items have changed.
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
    last_at, snapshot_seq : int
        When the newest row was written, in milliseconds since 1970, and the row of the newest snapshot.
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
    stored_items, stored_features : int, optional
        For how many items features are stored, and how many for each.
    feature_names : list of str, optional
        Names of the features, where there are any.
    not_estimated : dict of str to str, optional
        Why the other measures are not estimated, in a sentence each.
    comparison : ComparisonAnswer or None, optional
        Of a comparison of rankings, its verdict.
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
    feature_names: list[str] = []
    not_estimated: dict[str, str] = {}
    comparison: ComparisonAnswer | None = None


class ArchivedAnswer(msgspec.Struct, frozen=True):
    """A ranker that was put away, and the name under which its rows stay."""

    name: str
    archived: str


class RankersAnswer(msgspec.Struct, frozen=True):
    """All rankers that are served, and a sentence for each with which something is wrong."""

    rankers: list[RankerAnswer]
    notices: list[str] = []


class SnapshotAnswer(msgspec.Struct, frozen=True):
    """A snapshot that can be rolled back to.

    Parameters
    ----------
    seq, at, epoch : int
        The row of the log that it was taken at, the time in milliseconds since 1970, and the epoch of who took it.
    state_hash, config_hash, code_hash : str
        The hashes of the state, of the configuration, and of the code that computed it.
    """

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
    """One event in the history of a decision.

    Parameters
    ----------
    seq, at : int
        The row of the log, and when it was written, in milliseconds since 1970.
    kind, event_id : str
        The kind of the event, and its ID.
    values : list of float, optional
        The reported numbers, where there are some.
    outcome : str, optional
        What became of it.
    """

    seq: int
    at: int
    kind: str
    event_id: str
    values: list[float] | None = None
    outcome: str | None = None


class DecisionAnswer(msgspec.Struct, frozen=True):
    """The history of one list: what it was drawn from, and what became of it.

    Parameters
    ----------
    decision_id : str
        The ID of the decision.
    items : list of str
        The items that were to be shown, best first.
    candidates : list of str or None
        The items that it was drawn from, where the request named them.
    propensities : list of float or None
        The probability of each item at its position, where it is known.
    explored : bool
        Whether the list explored.
    model_seq, seq : int
        The row of the log up to which the ranker had learnt, and the row of the decision.
    at, deadline : int
        When it was made, and until when feedback is waited for, in milliseconds since 1970.
    key : str
        The key of the random numbers behind it.
    generation : int
        How often the ranker's items had changed by then.
    context : object
        What the request said beside it.
    activated, answered, expired : bool
        Whether it was reported as shown, whether there was feedback, and whether the deadline passed without any.
    rows : list of StoryRow
        All events about it, in order.
    pinned : dict of str to str, optional
        The items that the request had pinned, by position.
    shown_by : str, optional
        "ranker", or "baseline" where the application's own list was shown.
    guard_rail : str, optional
        "greedy" where the exploration cap let the best list of the moment be shown; "moved" or "groups" where a bound
        on displacements moved items into reach, or let the ranker order groups of neighbours; empty otherwise.
    context_erased : bool, optional
        Whether the context was erased, with the key of its subject.
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
    pinned: dict[str, str] = {}
    shown_by: ShownBy = "ranker"
    guard_rail: Rail = ""
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
    shown_by: ShownBy = "ranker"
    guard_rail: Rail = ""


class DecisionsAnswer(msgspec.Struct, frozen=True):
    """The newest lists, newest first."""

    decisions: list[DecisionSummary]


class SparksAnswer(msgspec.Struct, frozen=True):
    """For each ranker the mean reward over time, oldest first, in a few points."""

    sparks: dict[str, list[float | None]]


class SeriesAnswer(msgspec.Struct, frozen=True):
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

    Parameters
    ----------
    events : list of dict of str to object
        Each with `id`, `ranker`, `seq`, `at` (milliseconds since 1970) and `kind`, and what that kind has.
    through, model_seq : int
        The last row that was looked at: ask for what comes after it; and how far the ranker has folded its log: there
        is more where the first is less.
    log : str
        The identity of the log: another one where the ranker was archived and its name used again.
    """

    events: list[dict[str, Any]]
    through: int
    model_seq: int
    log: str


class DeadLetter(msgspec.Struct, frozen=True):
    """Feedback that no decision was found for, or that its decision could not take; snapshots have it as well."""

    seq: int
    at: int
    decision: str
    why: str


class DeadLettersAnswer(msgspec.Struct, frozen=True):
    """Dead letters: their total number, and the newest."""

    total: int
    newest: list[DeadLetter]


class FeaturePart(msgspec.Struct, frozen=True):
    """What one feature adds to a score.

    Parameters
    ----------
    feature : int
        Its column, counted from 0.
    value, weight, part : float
        Its value for this item, the ranker's weight of it, and the product of the two.
    name : str or None, optional
        Its name, where the catalogue has names of features.
    """

    feature: int
    value: float
    weight: float
    part: float
    name: str | None = None


class ItemReason(msgspec.Struct, frozen=True):
    """Why an item stood at its position.

    Parameters
    ----------
    item : str
        The item.
    position : int
        Its position, counted from 0.
    reason : {"pinned", "baseline", "ranker"}
        Whether the request pinned it, the baseline was shown, or the ranker chose it.
    propensity : float or None
        The probability of the item at this position, where it is known.
    place : int or None
        Its place in the order of the candidates that the ranker held best, counted from 0.
    score : float or None
        Its score, for rankers with features.
    features : list of FeaturePart
        Those that weigh most in the score.
    words : str
        The same in words.
    """

    item: str
    position: int
    reason: str
    propensity: float | None
    place: int | None
    score: float | None
    features: list[FeaturePart]
    words: str


class ExplainAnswer(msgspec.Struct, frozen=True):
    """Why each item of a list stood where it stood.

    Parameters
    ----------
    decision_id : str
        The ID of the decision.
    explored : bool
        Whether the list was shown to find something out.
    model_seq, as_of : int
        The row up to which the ranker had learnt when it drew the list, and the row that places and scores are of.
    items : list of ItemReason
        A reason for each item, in the order of the list.
    context_erased : bool, optional
        Whether the context of the request was erased, with the key of its subject.
    state : {"decision", "present"}, optional
        "decision" where that is the row that the list was drawn from; "present" where the state of then is no longer
        kept, and they are of now.
    """

    decision_id: str
    explored: bool
    model_seq: int
    as_of: int
    items: list[ItemReason]
    context_erased: bool = False
    state: str = "present"


class ItemFeatures(msgspec.Struct, frozen=True):
    """The features that are stored for an item.

    Parameters
    ----------
    item : str
        The item.
    since : int
        The row of the log that stored them.
    features : list of FeaturePart
        Each with its value, and where the ranker has weights, its present weight and the product of the two.
    """

    item: str
    since: int
    features: list[FeaturePart]


class ImportAnswer(msgspec.Struct, frozen=True):
    """What became of an import, or of a part of one.

    Parameters
    ----------
    status : str
        "accepted", "duplicate" or "conflict".
    seq : int
        Its row in the log.
    history : str
        What the import is called.
    duplicate : bool, optional
        Whether it was there before, so that nothing has changed.
    learnt : int or None, optional
        How many lists the ranker learnt from; None where it was there before, or where parts are to come.
    left_out : dict of str to int, optional
        How many lists it could not learn from, by reason.
    """

    status: Status
    seq: int
    history: str
    duplicate: bool = False
    learnt: int | None = None
    left_out: dict[str, int] = {}


class RankOutcome(msgspec.Struct, frozen=True, gc=False):
    """One list of several that were requested at once: the list, or what is wrong with the request for it."""

    answer: RankAnswer | None = None
    error: ErrorBody | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """What went wrong: a code, a sentence, and the field of the request."""

    code: str
    message: str
    field: str | None = None


class ErrorAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The form of all errors. message: the same once more, where other services have it."""

    error: ErrorBody
    message: str = ""
