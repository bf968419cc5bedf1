"""Calls that ask for several lists at once, and that change what several answers come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from rankloop.serving.client.answers import EventAnswer, RankAnswer, read
from rankloop.serving.client.bodies import SupportsArray, json_bytes, packed_features
from rankloop.serving.client.calls import Call, of
from rankloop.serving.client.errors import RankloopError
from rankloop.serving.clock import new_id


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


def rank_many(name: str, requests: Sequence[Wanted]) -> Call[list[RankAnswer | RankloopError]]:
    """Return several lists to show, all of which are written to the disk together.

    Parameters
    ----------
    name : str
        The ranker.
    requests : sequence of dict
        For each list the arguments that `rank` takes, such as `decision_id`, `items` and `features`.

    Returns
    -------
    list of RankAnswer or RankloopError
        For each request, in order, the list; or the error, where something is wrong with that request alone.
    """
    bodies = []
    for one in requests:
        body: dict[str, Any] = {"decision_id": new_id(), **one}
        if body.get("features") is not None:
            body["features"] = packed_features(body["features"])
        bodies.append(body)
    return Call("POST", f"{of(name)}/rank", lambda told: [_read(one) for one in told], json_bytes(bodies))


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
    event_id: str | None = None,
) -> Call[EventAnswer]:
    """Change the policy of a ranker, for lists from then on; what is left out stays.

    Parameters
    ----------
    name : str
        The ranker.
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
    event_id : str, optional
        The ID of the change; made here where it is left out.

    Returns
    -------
    EventAnswer
        What became of it.
    """
    body = {
        "deadline_seconds": deadline_seconds,
        "late": late,
        "answers": answers,
        "degraded": degraded,
        "holdout": holdout,
        "exploration_cap": exploration_cap,
        "displacement": displacement,
        "event_id": event_id or new_id(),
    }
    return Call("POST", f"{of(name)}/policy", lambda told: read(EventAnswer, told), json_bytes(body))


def _read(told: dict[str, Any]) -> RankAnswer | RankloopError:
    error = told["error"]
    if error is None:
        return read(RankAnswer, told["answer"])
    return RankloopError(422, error["code"], error["message"], error["field"])
