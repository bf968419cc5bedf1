"""The calls of the API, each as the request it sends and the answer it expects; nothing is sent here.

`Client` and `AsyncClient` have a method for each public function below, with the same arguments.
"""

from __future__ import annotations

import array
import base64
import functools
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NotRequired, Protocol, TypedDict, TypeVar
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
    """The service did not answer, although the call was repeated: `status` is 0, and there is no `field`.

    `code` and `message` are as of `RankloopError`.
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
    rankings: NotRequired[Mapping[str, Sequence[str]]]
    unit: NotRequired[str]
    query: NotRequired[str | int]


class ShownList(TypedDict):
    """A list that was shown elsewhere, for `import_lists`."""

    items: Sequence[str]
    clicks: NotRequired[Sequence[float]]
    relevance: NotRequired[Sequence[float]]
    propensities: NotRequired[Sequence[float]]
    features: NotRequired[Sequence[Sequence[float]]]
    query: NotRequired[str | int]


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

    `add`: items to add. `retire`: items that are no longer shown. For rankers with features `update` names items that
    stay and get others, `features` has a row for each of `add`, then for each of `update`, and `feature_names` are of
    all features that the ranker takes from now on.
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
    """Return the features that are stored for an `item`."""
    return _get(_of(name, "features", item), ItemFeatures)


def ranker(name: str) -> Call[RankerAnswer]:
    """Return the present state of one ranker."""
    return _get(_of(name), RankerAnswer)


def rankers() -> Call[list[RankerAnswer]]:
    """Return the present state of all rankers."""
    return Call("GET", "/v1/rankers", lambda body: _reading(RankersAnswer)(body).rankers)


def delete(name: str) -> Call[str]:
    """Archive a ranker: it is served no more, its log stays, and its name is free again.

    Gives the name under which its log stays, for `rankloop verify` and `rankloop export`.
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
    rankings: Mapping[str, Sequence[str]] | None = None,
    unit: str | None = None,
    query: str | int | None = None,
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
    rankings : mapping of str to sequence of str, optional
        For a comparison, the order of each ranking that is not a ranker of the service.
    unit : str, optional
        For a comparison, the session or user that the list is for.
    query : str or int, optional
        What was searched for, for rankers that remember queries.

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
        "rankings": None if rankings is None else {one: list(order) for one, order in rankings.items()},
        "unit": unit,
        "query": query,
    }
    return _post(_of(name, "rank"), RankAnswer, body)


def activate(name: str, decision_id: str, *, event_id: str | None = None) -> Call[EventAnswer]:
    """Report that the list of a `decision_id` was shown; `event_id` is made here where it is left out."""
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
    """Report the feedback on many lists at once, `answers`, and return what became of each, in the same order."""
    return Call("POST", _of(name, "feedback"), _reading(list[EventAnswer]), json_bytes(list(answers)))


def freeze(name: str, frozen: bool = True) -> Call[EventAnswer]:
    """Stop learning; where `frozen` is false, resume."""
    return _post(_of(name, "freeze"), EventAnswer, {"frozen": frozen, "event_id": new_id()})


def rollback(name: str, to_seq: int) -> Call[EventAnswer]:
    """Return to the state of the snapshot that was taken at row `to_seq` of the log."""
    return _post(_of(name, "rollback"), EventAnswer, {"to_seq": to_seq, "event_id": new_id()})


def reset(name: str, *, parameters: dict[str, Any] | None = None) -> Call[EventAnswer]:
    """Forget what was learnt, and start again, with other `parameters` if given; the log stays."""
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
    """Return the history of the list with a `decision_id`."""
    return _get(_of(name, "decisions", decision_id), DecisionAnswer)


def events(name: str, *, after: int = 0, limit: int = 500) -> Call[EventsAnswer]:
    """Return what was learnt and changed after row `after` of the log: the `through` of the answer before.

    `limit`: how many rows to look at, at most 1,000.
    """
    return _get(f"{_of(name, 'events')}?after={after}&limit={limit}", EventsAnswer)


def series(name: str) -> Call[SeriesAnswer]:
    """Return the statistics of a ranker over time."""
    return _get(_of(name, "series"), SeriesAnswer)


def rank_many(name: str, requests: Sequence[Wanted]) -> Call[list[RankAnswer | RankloopError]]:
    """Return several lists to show, all of which are written to the disk together.

    Each of `requests` has the arguments that `rank` takes, such as `decision_id`, `items` and `features`. Where
    something is wrong with one request alone, the error stands in the place of its list.
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

    `deadline_seconds`, `late`, `answers`, `degraded`, `holdout`, `exploration_cap`, `displacement` and `gather_seconds`
    are as in `Policy`. `event_id`: the ID of the change; made here where it is left out.
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
    """Return why each item of the list with a `decision_id` stood where it stood, as data and in words."""
    return _get(_of(name, "explain", decision_id), ExplainAnswer)


def promote(name: str, share: float = 1.0, *, ranking: str | None = None) -> Call[EventAnswer]:
    """Let the ranker's lists be shown to a `share` of the requests with a baseline, the holdout aside.

    A share of 0 sends the ranker back to learning beside the baseline. Of a comparison: stop it, and show the order of
    one `ranking` to all.
    """
    return _post(
        _of(name, "promote"), EventAnswer, {"share": share, "ranking": ranking, "event_id": new_id()}
    )


def stop(name: str) -> Call[EventAnswer]:
    """End a comparison: all requests get the order of its first ranking. One that was stopped already is a conflict."""
    return _post(_of(name, "stop"), EventAnswer, {"event_id": new_id()})


def import_lists(
    name: str,
    lists: Sequence[ShownList] | Sequence[dict[str, Any]],
    *,
    history: str | None = None,
    part: int = 1,
    last: bool = True,
    source: str = "",
) -> Call[ImportAnswer]:
    """Let a ranker learn from `lists` that something else has shown, all of them or none.

    Each has `items`, best position first, and `clicks` or `relevance`, a number for each item; `propensities`, the
    probability with which each was shown where it was, and `features`, a row for each, where they are known.
    `history`: what the import is called; the same again changes nothing; derived from the lists where it is left out.
    Where they are too many for one request, `part` counts from 1, and the ranker learns when the `last` has come.
    `source`: where they are from, in words.
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

    `arrays`: the state, as `Ranker.state_arrays` gives it, of a ranker with the same algorithm and parameters, which
    has learnt from `rounds` rounds. `items`: the names of its items, in the order in which it numbers them; left out
    where each request brings its own. `history` and `source` are as of `import_lists`.
    """
    state = {
        "arrays": {name: saved_array(value) for name, value in arrays.items()},
        "rounds": rounds,
        "items": list(items),
    }
    return _post(_of(name, "import"), ImportAnswer, {"state": state, "source": source, "history": history})


# The bodies of requests: JSON, with features as packed float32.


class SupportsArray(Protocol):
    """An array of NumPy, or anything that NumPy can read: tensors, data frames."""

    def __array__(self) -> Any: ...


def saved_array(value: SupportsArray) -> dict[str, Any]:
    """An array of a ranker's state as little-endian bytes."""
    given = value.__array__()
    plain = given.astype(given.dtype.newbyteorder("<"))
    data = base64.b64encode(plain.tobytes()).decode()
    return {"dtype": plain.dtype.str, "shape": list(plain.shape), "data": data}


def json_bytes(body: object) -> bytes:
    """The body of a request; ValueError with the field where a number in it is not finite."""
    try:
        return _written(body)
    except ValueError:
        for part in body if isinstance(body, list) else [body]:
            _check_finite(part)
        raise


def _written(body: object) -> bytes:
    return json.dumps(body, allow_nan=False, separators=(",", ":"), default=_plain).encode()


def _check_finite(part: object) -> None:
    for name, value in part.items() if isinstance(part, dict) else ():
        try:
            _written(value)
        except ValueError:
            raise ValueError(f"{name} must be finite, got {value!r:.60}") from None


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return value.tolist()
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"JSON cannot hold {value!r:.60}, a {type(value).__name__}")


def packed(features: Sequence[Sequence[float]] | SupportsArray | None) -> dict[str, Any] | None:
    """Features as packed float32; ValueError where they are no matrix of finite numbers."""
    if features is None:
        return None
    values = array.array("f")
    if hasattr(features, "__array__"):
        matrix = features.__array__().astype("f4")  # NumPy's own, which need not be imported for it
        shape = tuple(matrix.shape)
        values.frombytes(matrix.tobytes())
    else:
        rows = [list(row) for row in features]
        shape = (len(rows), *{len(row) for row in rows})
        for row in rows:
            values.extend(row)
    if len(shape) != 2:
        raise ValueError(f"features must be items x features, with rows of one length; got {shape}")
    if not all(map(math.isfinite, values)):
        raise ValueError("features must be finite numbers of float32")
    if sys.byteorder == "big":
        values.byteswap()
    return {"shape": shape, "data": base64.b64encode(values.tobytes()).decode()}
