"""The calls of the API, each as the request it sends and the answer it expects; nothing is sent here.

`Client` and `AsyncClient` have a method for each function below, with the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NotRequired, TypedDict, TypeVar
from urllib.parse import quote

from rankloop.serving.client.answers import (
    EventAnswer,
    EventsAnswer,
    RankAnswer,
    RankerAnswer,
    RankersAnswer,
    SeriesAnswer,
    SnapshotAnswer,
    SnapshotsAnswer,
    read,
)
from rankloop.serving.client.bodies import SupportsArray, json_bytes, packed_features
from rankloop.serving.client.decision_answer import DecisionAnswer
from rankloop.serving.clock import new_id

Answer = TypeVar("Answer")


class Feedback(TypedDict):
    """The feedback on one list, for `feedback_many`."""

    decision_id: str
    relevance: NotRequired[Sequence[float]]
    clicks: NotRequired[Sequence[float]]
    event_id: NotRequired[str]


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """A request, and how to read the JSON that answers it."""

    method: str
    path: str
    read: Callable[[Any], Answer]
    body: bytes | None = None


def ranker(name: str) -> Call[RankerAnswer]:
    """Return the present state of one ranker.

    Parameters
    ----------
    name : str
        The name of the ranker.

    Returns
    -------
    RankerAnswer
        Its state.
    """
    return Call("GET", of(name), lambda told: read(RankerAnswer, told))


def rankers() -> Call[list[RankerAnswer]]:
    """Return the present state of all rankers."""
    return Call("GET", "/v1/rankers", lambda told: read(RankersAnswer, told).rankers)


def delete(name: str) -> Call[str]:
    """Archive a ranker: it is served no more, its log stays, and its name is free again.

    Parameters
    ----------
    name : str
        The name of the ranker.

    Returns
    -------
    str
        The name under which its log stays, for `rankloop verify` and `rankloop export`.
    """
    return Call("DELETE", of(name), lambda told: str(told["archived"]))


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
    name : str
        The ranker.
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
    packed = None if features is None else packed_features(features)
    body: dict[str, Any] = {"decision_id": decision_id or new_id(), "items": items}
    body |= {"features": packed, "context": context}
    if baseline is not None:
        body["baseline"] = list(baseline)
    if shared is not None:
        body["shared"] = [float(value) for value in shared]
    if subject is not None:
        body["subject"] = subject
    if exclude:
        body["exclude"] = list(exclude)
    if n_positions is not None:
        body["n_positions"] = n_positions
    if pinned:
        body["pinned"] = {str(position): name for position, name in pinned.items()}
    return _post(f"{of(name)}/rank", RankAnswer, body)


def activate(name: str, decision_id: str, *, event_id: str | None = None) -> Call[EventAnswer]:
    """Report that the list was shown.

    Parameters
    ----------
    name : str
        The name of the ranker.
    decision_id : str
        The ID of the decision, as `rank` gave it.
    event_id : str, optional
        The ID of this report; by default one is made.

    Returns
    -------
    EventAnswer
        What became of the report.
    """
    body = {"decision_id": decision_id, "event_id": event_id}
    return _post(f"{of(name)}/activate", EventAnswer, body)


def feedback(
    name: str,
    decision_id: str,
    *,
    relevance: Sequence[float] | None = None,
    clicks: Sequence[float] | None = None,
    event_id: str | None = None,
) -> Call[EventAnswer]:
    """Report the feedback on a list.

    Parameters
    ----------
    name : str
        The ranker.
    decision_id : str
        The decision ID of the list.
    relevance : sequence of float, optional
        The relevance of the first items of the list.
    clicks : sequence of float, optional
        For each position 1 for a click, 0 for none.
    event_id : str, optional
        The ID of this report. Where it is left out the service derives one from the decision ID: a decision has
        one feedback, so that a repeated report is a duplicate.

    Returns
    -------
    EventAnswer
        What became of it.
    """
    body = {"decision_id": decision_id, "relevance": relevance, "clicks": clicks, "event_id": event_id}
    return _post(f"{of(name)}/feedback", EventAnswer, body)


def feedback_many(
    name: str, answers: Sequence[Feedback] | Sequence[dict[str, Any]]
) -> Call[list[EventAnswer]]:
    """Report the feedback on many lists at once, each with `decision_id` and `relevance` or `clicks`.

    Parameters
    ----------
    name : str
        The name of the ranker.
    answers : sequence of Feedback or sequence of dict of str to object
        One report for each list.

    Returns
    -------
    list of EventAnswer
        What became of each report, in the same order.
    """
    return Call(
        "POST", f"{of(name)}/feedback", lambda told: read(list[EventAnswer], told), json_bytes(list(answers))
    )


def freeze(name: str, frozen: bool = True) -> Call[EventAnswer]:
    """Stop learning; with `frozen=False`, resume.

    Parameters
    ----------
    name : str
        The name of the ranker.
    frozen : bool, optional
        Whether it stops learning.

    Returns
    -------
    EventAnswer
        What became of the change.
    """
    return _post(f"{of(name)}/freeze", EventAnswer, {"frozen": frozen, "event_id": new_id()})


def rollback(name: str, to_seq: int) -> Call[EventAnswer]:
    """Return to the state of the snapshot at `to_seq`.

    Parameters
    ----------
    name : str
        The name of the ranker.
    to_seq : int
        The row of the log at which the snapshot was taken.

    Returns
    -------
    EventAnswer
        What became of the change.
    """
    return _post(f"{of(name)}/rollback", EventAnswer, {"to_seq": to_seq, "event_id": new_id()})


def reset(name: str, *, parameters: dict[str, Any] | None = None) -> Call[EventAnswer]:
    """Forget what was learnt, and start again, with other parameters if given; the log stays.

    Parameters
    ----------
    name : str
        The name of the ranker.
    parameters : dict of str to object, optional
        Parameters from now on; by default those that it has.

    Returns
    -------
    EventAnswer
        What became of the change.
    """
    return _post(f"{of(name)}/reset", EventAnswer, {"parameters": parameters, "event_id": new_id()})


def snapshots(name: str) -> Call[list[SnapshotAnswer]]:
    """Return the snapshots that can be rolled back to, oldest first.

    Parameters
    ----------
    name : str
        The name of the ranker.
    """
    return Call("GET", f"{of(name)}/snapshots", lambda told: read(SnapshotsAnswer, told).snapshots)


def take_snapshot(name: str) -> Call[list[SnapshotAnswer]]:
    """Take a snapshot now, and return all that are kept.

    Parameters
    ----------
    name : str
        The name of the ranker.
    """
    return Call("POST", f"{of(name)}/snapshots", lambda told: read(SnapshotsAnswer, told).snapshots, b"")


def decision(name: str, decision_id: str) -> Call[DecisionAnswer]:
    """Return the history of one list.

    Parameters
    ----------
    name : str
        The name of the ranker.
    decision_id : str
        The ID of the decision.

    Returns
    -------
    DecisionAnswer
        Its history.
    """
    path = f"{of(name)}/decisions/{quote(decision_id, safe='')}"
    return Call("GET", path, lambda told: read(DecisionAnswer, told))


def events(name: str, *, after: int = 0, limit: int = 500) -> Call[EventsAnswer]:
    """Return what was learnt and changed after a row of the log.

    Parameters
    ----------
    name : str
        The name of the ranker.
    after : int, optional
        The last row that is known already: `through` of the answer before.
    limit : int, optional
        How many rows of the log to look at, at most 1,000.

    Returns
    -------
    EventsAnswer
        The events, and how far they reach.
    """
    path = f"{of(name)}/events?after={after}&limit={limit}"
    return Call("GET", path, lambda told: read(EventsAnswer, told))


def series(name: str) -> Call[SeriesAnswer]:
    """Return the statistics of a ranker over time.

    Parameters
    ----------
    name : str
        The name of the ranker.
    """
    return Call("GET", f"{of(name)}/series", lambda told: read(SeriesAnswer, told))


def of(name: str) -> str:
    """The path of a ranker."""
    return f"/v1/rankers/{quote(name, safe='')}"


def _post(path: str, answer: type[Answer], body: dict[str, Any]) -> Call[Answer]:
    given = {name: value for name, value in body.items() if value is not None}
    return Call("POST", path, lambda told: read(answer, told), json_bytes(given))
