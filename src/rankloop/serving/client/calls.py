"""The calls of the API, each as the request it sends and the answer it expects; nothing is sent here.

`Client` and `AsyncClient` have a method for each public function below, with the same arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NotRequired, TypedDict, TypeVar
from urllib.parse import quote

import msgspec

from rankloop.serving.api import (
    ArchivedAnswer,
    DecisionAnswer,
    EventAnswer,
    EventsAnswer,
    ExplainAnswer,
    ImportAnswer,
    ItemFeatures,
    RankAnswer,
    RankerAnswer,
    RankersAnswer,
    RankOutcome,
    SeriesAnswer,
    SnapshotAnswer,
    SnapshotsAnswer,
)
from rankloop.serving.client.bodies import SupportsArray, json_bytes, packed, saved_array
from rankloop.serving.clock import new_id

Answer = TypeVar("Answer")


class RankloopError(Exception):
    """The service refused a call, or its answer cannot be read.

    Parameters
    ----------
    status : int
        The HTTP status; 0 where there was no answer.
    code : str
        The kind of error, for programs: "not_found", "conflict", "invalid", ...
    message : str
        What went wrong, in a sentence.
    field : str, optional
        The field of the request that is wrong.
    """

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(status, code, message, field)  # the arguments themselves, so that it can be pickled
        self.status = status
        self.code = code
        self.message = message
        self.field = field

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.message}" + (f" ({self.field})" if self.field else "")


class Unreachable(RankloopError):
    """The service did not answer, although the call was repeated.

    Parameters
    ----------
    status : int
        Always 0: there was no answer.
    code : str
        The kind of error, for programs.
    message : str
        What went wrong, in a sentence.
    field : str, optional
        Never given.
    """

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """A request, and how to read the JSON that answers it."""

    method: str
    path: str
    read: Callable[[bytes], Answer]
    body: bytes | None = None


def _reading(answer: Any) -> Callable[[bytes], Any]:
    return _decoder(answer).decode


@functools.cache
def _decoder(answer: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(answer)


def _get(path: str, answer: type[Answer]) -> Call[Answer]:
    return Call("GET", path, _reading(answer))


def _post(path: str, answer: type[Answer], body: dict[str, Any]) -> Call[Answer]:
    told = {name: value for name, value in body.items() if value is not None}
    return Call("POST", path, _reading(answer), json_bytes(told))


def _of(name: str, *path: str) -> str:
    """The path of a ranker, or below it."""
    return "/".join(["/v1/rankers", *(quote(part, safe="") for part in (name, *path))])


class Feedback(TypedDict):
    """The feedback on one list, for `feedback_many`."""

    decision_id: str
    relevance: NotRequired[Sequence[float]]
    clicks: NotRequired[Sequence[float]]
    clicked: NotRequired[Sequence[str]]
    item: NotRequired[str]
    event_id: NotRequired[str]


class Wanted(TypedDict):
    """One list that is wanted, for `rank_many`; everything in it may be left out."""

    decision_id: NotRequired[str]
    items: NotRequired[Sequence[str]]
    features: NotRequired[Sequence[Sequence[float]] | SupportsArray]
    context: NotRequired[Any]
    exclude: NotRequired[Sequence[str]]
    n_positions: NotRequired[int]
    pinned: NotRequired[Mapping[int, str]]
    baseline: NotRequired[Sequence[str]]
    shared: NotRequired[Sequence[float]]
    subject: NotRequired[str]


class ShownList(TypedDict):
    """A list that was shown elsewhere, for `import_lists`."""

    items: Sequence[str]
    clicks: NotRequired[Sequence[float]]
    relevance: NotRequired[Sequence[float]]
    propensities: NotRequired[Sequence[float]]
    features: NotRequired[Sequence[Sequence[float]]]


def create(
    name: str,
    *,
    algorithm: str,
    items: Sequence[str] | None = None,
    parameters: dict[str, Any] | None = None,
    policy: dict[str, Any] | None = None,
    seed: int | None = None,
    features: Sequence[Sequence[float]] | SupportsArray | None = None,
    feature_names: Sequence[str] | None = None,
) -> Call[RankerAnswer]:
    """Create a ranker. The same again changes nothing; the same name with anything else is a conflict.

    Parameters
    ----------
    name : str
        The name of the ranker: letters, digits, dot, dash, underscore.
    algorithm : str
        The class of the ranker, such as "TopFTRL".
    items : sequence of str, optional
        The items to rank; for rankers with features those whose features are stored, if any.
    parameters : dict, optional
        The parameters of the ranker.
    policy : dict, optional
        `deadline_seconds`, `parking_seconds` and `late` ("ignore" or "learn").
    seed : int, optional
        The seed of the lists; drawn by the service where it is left out.
    features : array of shape (n_items, n_columns), optional
        For rankers with features, a row for each of `items`, stored as float32.
    feature_names : sequence of str, optional
        Names of all features that the ranker takes, for explanations.

    Returns
    -------
    RankerAnswer
        The ranker; `duplicate` if it was there already.
    """
    body = {
        "name": name,
        "algorithm": algorithm,
        "parameters": parameters or {},
        "items": items,
        "policy": policy,
        "seed": seed,
        "features": packed(features),
        "feature_names": feature_names,
    }
    return _post("/v1/rankers", RankerAnswer, body)


def change_items(
    name: str,
    *,
    add: Sequence[str] | None = None,
    retire: Sequence[str] | None = None,
    update: Sequence[str] | None = None,
    features: Sequence[Sequence[float]] | SupportsArray | None = None,
    feature_names: Sequence[str] | None = None,
) -> Call[EventAnswer]:
    """Add items, retire items, or store other features for items.

    Parameters
    ----------
    add : sequence of str, optional
        Items to add.
    retire : sequence of str, optional
        Items that are no longer shown.
    update : sequence of str, optional
        Items that stay, and get other features.
    features : array of shape (n_items, n_columns), optional
        For rankers with features, a row for each of `add`, then for each of `update`.
    feature_names : sequence of str, optional
        Names of all features that the ranker takes, from now on.
    """
    body = {
        "add": add or [],
        "retire": retire or [],
        "update": update,
        "features": packed(features),
        "feature_names": feature_names,
        "event_id": new_id(),
    }
    return _post(_of(name, "items"), EventAnswer, body)


def item_features(name: str, item: str) -> Call[ItemFeatures]:
    """Return the features that are stored for an item.

    Parameters
    ----------
    item : str
        The item.
    """
    return _get(_of(name, "features", item), ItemFeatures)


def ranker(name: str) -> Call[RankerAnswer]:
    """Return the present state of one ranker."""
    return _get(_of(name), RankerAnswer)


def rankers() -> Call[list[RankerAnswer]]:
    """Return the present state of all rankers."""
    return Call("GET", "/v1/rankers", lambda body: _reading(RankersAnswer)(body).rankers)


def delete(name: str) -> Call[str]:
    """Archive a ranker: it is served no more, its log stays, and its name is free again.

    Returns
    -------
    str
        The name under which its log stays, for `rankloop verify` and `rankloop export`.
    """
    return Call("DELETE", _of(name), lambda body: str(_reading(ArchivedAnswer)(body).archived))


def rank(
    name: str,
    *,
    decision_id: str | None = None,
    items: Sequence[str] | None = None,
    features: Sequence[Sequence[float]] | SupportsArray | None = None,
    context: Any = None,
    exclude: Sequence[str] = (),
    n_positions: int | None = None,
    pinned: Mapping[int, str] | None = None,
    baseline: Sequence[str] | None = None,
    shared: Sequence[float] | None = None,
    subject: str | None = None,
) -> Call[RankAnswer]:
    """Return a list to show.

    Parameters
    ----------
    decision_id : str, optional
        The decision ID of the list; the same ID again gives the same list. Made here where it is left out.
    items : sequence of str, optional
        The candidates: some of the ranker's items, or those that the features are of. All by default.
    features : array of shape (n_items, n_features), optional
        A row for each candidate, sent as packed float32.
    context : object, optional
        Anything that JSON can hold, kept in the log beside the decision.
    exclude : sequence of str, optional
        Items that must not be shown.
    n_positions : int, optional
        How many items to show at most.
    pinned : mapping of int to str, optional
        Items that must stand at a position, counted from 0.
    baseline : sequence of str, optional
        The application's own order, which is shown instead to the holdout, and before the ranker is promoted.
    shared : sequence of float, optional
        Numbers of the request as a whole, such as of its user: each times each stored feature is a feature.
    subject : str, optional
        Whose context it is: `rankloop erase` makes it unreadable for good.

    Returns
    -------
    RankAnswer
        The list and its decision ID.
    """
    body = {
        "decision_id": decision_id or new_id(),
        "items": items,
        "features": packed(features),
        "context": context,
        "exclude": list(exclude) or None,
        "n_positions": n_positions,
        "pinned": {str(position): item for position, item in (pinned or {}).items()} or None,
        "baseline": None if baseline is None else list(baseline),
        "shared": None if shared is None else [float(value) for value in shared],
        "subject": subject,
    }
    return _post(_of(name, "rank"), RankAnswer, body)


def activate(name: str, decision_id: str, *, event_id: str | None = None) -> Call[EventAnswer]:
    """Report that the list was shown.

    Parameters
    ----------
    decision_id : str
        The ID of the decision, as `rank` gave it.
    event_id : str, optional
        The ID of this report; by default one is made.
    """
    body = {"decision_id": decision_id, "event_id": event_id}
    return _post(_of(name, "activate"), EventAnswer, body)


def feedback(
    name: str,
    decision_id: str,
    *,
    relevance: Sequence[float] | None = None,
    clicks: Sequence[float] | None = None,
    clicked: Sequence[str] | None = None,
    item: str | None = None,
    event_id: str | None = None,
) -> Call[EventAnswer]:
    """Report the feedback on a list, in one of four forms; a click by name is a relevance of 1.

    Parameters
    ----------
    decision_id : str
        The decision ID of the list.
    relevance : sequence of float, optional
        The relevance of the first items of the list.
    clicks : sequence of float, optional
        For each position 1 for a click, 0 for none.
    clicked : sequence of str, optional
        The items that were clicked, all of them; empty where none was.
    item : str, optional
        An item that was clicked. Others may follow: what comes within the policy's `gather_seconds` is learnt together.
    event_id : str, optional
        The ID of this report. Where it is left out the service derives one, so that a repeated report is a duplicate:
        from the decision ID, which has one feedback, and for a click from its item too.
    """
    body = {
        "decision_id": decision_id,
        "relevance": relevance,
        "clicks": clicks,
        "clicked": clicked,
        "item": item,
        "event_id": event_id,
    }
    return _post(_of(name, "feedback"), EventAnswer, body)


def feedback_many(
    name: str, answers: Sequence[Feedback] | Sequence[dict[str, Any]]
) -> Call[list[EventAnswer]]:
    """Report the feedback on many lists at once, each with `decision_id` and `relevance` or `clicks`.

    Parameters
    ----------
    answers : sequence of Feedback or sequence of dict of str to object
        One report for each list.

    Returns
    -------
    list of EventAnswer
        What became of each report, in the same order.
    """
    return Call("POST", _of(name, "feedback"), _reading(list[EventAnswer]), json_bytes(list(answers)))


def freeze(name: str, frozen: bool = True) -> Call[EventAnswer]:
    """Stop learning; with `frozen=False`, resume.

    Parameters
    ----------
    frozen : bool, optional
        Whether it stops learning.
    """
    return _post(_of(name, "freeze"), EventAnswer, {"frozen": frozen, "event_id": new_id()})


def rollback(name: str, to_seq: int) -> Call[EventAnswer]:
    """Return to the state of the snapshot at `to_seq`.

    Parameters
    ----------
    to_seq : int
        The row of the log at which the snapshot was taken.
    """
    return _post(_of(name, "rollback"), EventAnswer, {"to_seq": to_seq, "event_id": new_id()})


def reset(name: str, *, parameters: dict[str, Any] | None = None) -> Call[EventAnswer]:
    """Forget what was learnt, and start again, with other parameters if given; the log stays.

    Parameters
    ----------
    parameters : dict of str to object, optional
        Parameters from now on; by default those that it has.
    """
    return _post(_of(name, "reset"), EventAnswer, {"parameters": parameters, "event_id": new_id()})


def snapshots(name: str) -> Call[list[SnapshotAnswer]]:
    """Return the snapshots that can be rolled back to, oldest first."""
    return Call("GET", _of(name, "snapshots"), _snapshots)


def take_snapshot(name: str) -> Call[list[SnapshotAnswer]]:
    """Take a snapshot now, and return all that are kept."""
    return Call("POST", _of(name, "snapshots"), _snapshots, b"")


def _snapshots(body: bytes) -> list[SnapshotAnswer]:
    answer: SnapshotsAnswer = _reading(SnapshotsAnswer)(body)
    return answer.snapshots


def decision(name: str, decision_id: str) -> Call[DecisionAnswer]:
    """Return the history of one list.

    Parameters
    ----------
    decision_id : str
        The ID of the decision.
    """
    return _get(_of(name, "decisions", decision_id), DecisionAnswer)


def events(name: str, *, after: int = 0, limit: int = 500) -> Call[EventsAnswer]:
    """Return what was learnt and changed after a row of the log.

    Parameters
    ----------
    after : int, optional
        The last row that is known already: `through` of the answer before.
    limit : int, optional
        How many rows of the log to look at, at most 1,000.

    Returns
    -------
    EventsAnswer
        The events, and how far they reach.
    """
    return _get(f"{_of(name, 'events')}?after={after}&limit={limit}", EventsAnswer)


def series(name: str) -> Call[SeriesAnswer]:
    """Return the statistics of a ranker over time."""
    return _get(_of(name, "series"), SeriesAnswer)


def rank_many(name: str, requests: Sequence[Wanted]) -> Call[list[RankAnswer | RankloopError]]:
    """Return several lists to show, all of which are written to the disk together.

    Parameters
    ----------
    requests : sequence of dict
        For each list the arguments that `rank` takes, such as `decision_id`, `items` and `features`.

    Returns
    -------
    list of RankAnswer or RankloopError
        For each request, in order, the list; or the error, where something is wrong with that request alone.
    """
    bodies = [{"decision_id": new_id(), **one, "features": packed(one.get("features"))} for one in requests]
    return Call("POST", _of(name, "rank"), _lists_or_errors, json_bytes(bodies))


def _lists_or_errors(body: bytes) -> list[RankAnswer | RankloopError]:
    read: list[RankAnswer | RankloopError] = []
    for one in _reading(list[RankOutcome])(body):
        if one.error is None:
            read.append(one.answer)
        else:
            read.append(RankloopError(422, one.error.code, one.error.message, one.error.field))
    return read


def change_policy(
    name: str,
    *,
    deadline_seconds: float | None = None,
    late: str | None = None,
    answers: str | None = None,
    degraded: bool | None = None,
    holdout: float | None = None,
    exploration_cap: float | None = None,
    displacement: int | None = None,
    gather_seconds: float | None = None,
    event_id: str | None = None,
) -> Call[EventAnswer]:
    """Change the policy of a ranker, for lists from then on; what is left out stays.

    Parameters
    ----------
    deadline_seconds : float, optional
        How long feedback on a list is waited for.
    late : {"ignore", "learn"}, optional
        What is done with feedback after the deadline.
    answers : {"first", "last", "sum", "union"}, optional
        Which of several answers to one list counts.
    degraded : bool, optional
        Whether lists are shown while the store cannot be written to.
    holdout : float, optional
        The share of requests with a baseline that always get it.
    exploration_cap : float, optional
        The largest share of lists that may explore; 1 for all of them.
    displacement : int, optional
        How many positions an item may stand from its place in the baseline, at most; 0 for any number.
    gather_seconds : float, optional
        How long clicks that come one by one are gathered; 0 where the first of them is the answer.
    event_id : str, optional
        The ID of the change; made here where it is left out.
    """
    body = {
        "deadline_seconds": deadline_seconds,
        "late": late,
        "answers": answers,
        "degraded": degraded,
        "holdout": holdout,
        "exploration_cap": exploration_cap,
        "displacement": displacement,
        "gather_seconds": gather_seconds,
        "event_id": event_id or new_id(),
    }
    return _post(_of(name, "policy"), EventAnswer, body)


def explain(name: str, decision_id: str) -> Call[ExplainAnswer]:
    """Return why each item of a list stood where it stood.

    Parameters
    ----------
    decision_id : str
        The ID of the decision.

    Returns
    -------
    ExplainAnswer
        A reason for each item, as data and in words.
    """
    return _get(_of(name, "explain", decision_id), ExplainAnswer)


def promote(name: str, share: float = 1.0) -> Call[EventAnswer]:
    """Let the ranker's lists be shown to a share of the requests with a baseline, the holdout aside.

    Parameters
    ----------
    share : float, optional
        The share, from 0 to 1; 0 sends the ranker back to learning beside the baseline.
    """
    return _post(_of(name, "promote"), EventAnswer, {"share": share, "event_id": new_id()})


def import_lists(
    name: str,
    lists: Sequence[ShownList] | Sequence[dict[str, Any]],
    *,
    history: str | None = None,
    part: int = 1,
    last: bool = True,
    source: str = "",
) -> Call[ImportAnswer]:
    """Let a ranker learn from lists that something else has shown, all of them or none.

    Parameters
    ----------
    lists : sequence of dict
        Each with `items`, best position first, and `clicks` or `relevance`, a number for each item; `propensities`,
        the probability with which each was shown where it was, and `features`, a row for each, where they are known.
    history : str, optional
        What the import is called; the same again changes nothing. Derived from the lists where it is left out.
    part : int, optional
        The number of this part, from 1, where the lists are too many for one request.
    last : bool, optional
        Whether no part follows; the ranker learns then, and not before.
    source : str, optional
        Where they are from, in words.
    """
    body = {"lists": list(lists), "part": part, "last": last, "source": source, "history": history}
    return _post(_of(name, "import"), ImportAnswer, body)


def import_state(
    name: str,
    arrays: Mapping[str, SupportsArray],
    *,
    rounds: int,
    items: Sequence[str] = (),
    history: str | None = None,
    source: str = "",
) -> Call[ImportAnswer]:
    """Let a ranker that has learnt nothing yet begin with the state of another one, such as one of a simulation.

    Parameters
    ----------
    name : str
        The ranker, with the same algorithm and parameters.
    arrays : mapping of str to array
        The state, as `Ranker.state_arrays` gives it.
    rounds : int
        How many rounds that ranker has learnt from.
    items : sequence of str, optional
        The names of its items, in the order in which it numbers them; left out where each request brings its own.
    history : str, optional
        What the import is called; the same again changes nothing. Derived from the state where it is left out.
    source : str, optional
        Where it is from, in words.
    """
    state = {
        "arrays": {name: saved_array(value) for name, value in arrays.items()},
        "rounds": rounds,
        "items": list(items),
    }
    return _post(_of(name, "import"), ImportAnswer, {"state": state, "source": source, "history": history})
