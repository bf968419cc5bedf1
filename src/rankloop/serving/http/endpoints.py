"""The table of the HTTP API: what is served, required roles, and the types that check it and describe it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from rankloop.serving import explain, views
from rankloop.serving import schemas as m
from rankloop.serving.batches import rank_many
from rankloop.serving.engine import Engine
from rankloop.serving.errors import Conflict
from rankloop.serving.http.asked import Asked
from rankloop.serving.http.readiness import notices
from rankloop.serving.importing import ImportAnswer, ImportRequest, import_history
from rankloop.serving.item_features import ItemFeaturesAnswer, item_features
from rankloop.serving.item_table import item_table
from rankloop.serving.policy_changes import change_policy

Handler = Callable[[Engine, Asked, Any], Awaitable[Any]]


class Endpoint(NamedTuple):
    """One line of the table. `request` None: there is no body; `query`: names it may have, and what they mean.

    at_hand: whether it can be answered without reading from the store, for the ranker of this name and this body.
    """

    method: str
    path: str
    role: str
    summary: str
    handle: Handler
    answer: Any
    request: Any = None
    query: tuple[tuple[str, str], ...] = ()
    at_hand: Callable[[Engine, str, Any], bool] = lambda engine, name, body: False

    @property
    def reads_much(self) -> bool:
        """Whether it may ask the store many times, so that there must be an end to all of it together."""
        return self.method == "GET" or self.path.endswith(("/feedback", "/rollback"))


class Created(NamedTuple):
    """An answer that is to be sent with 201."""

    answer: Any


async def _create(engine: Engine, params: Asked, body: m.CreateRequest) -> Any:
    params.caller.check_new(body.name, await engine.names())
    served, duplicate = await engine.create(body)
    engine.changed.set()  # those who watch may have looked before it was there
    answer = await views.ranker_answer(served, duplicate=duplicate)
    return answer if duplicate else Created(answer)


async def _rankers(engine: Engine, params: Asked, body: None) -> m.RankersAnswer:
    mine = [served for served in await engine.find_all() if params.caller.covers(served.name)]
    answers = [await views.ranker_answer(served) for served in mine]
    return m.RankersAnswer(answers, [] if params.caller.rankers else notices(engine))


async def _access(engine: Engine, params: Asked, body: None) -> m.AccessAnswer:
    caller = params.caller
    return m.AccessAnswer(caller.role, list(caller.rankers), caller.most_rankers, caller.rate)


async def _ranker(engine: Engine, params: Asked, body: None) -> m.RankerAnswer:
    return await views.ranker_answer(await engine.find(params["name"]))


async def _archive(engine: Engine, params: Asked, body: None) -> m.ArchivedAnswer:
    return await engine.archive(params["name"])


def _rank(engine: Engine, params: Asked, body: Any) -> Awaitable[Any]:
    if isinstance(body, list):
        return rank_many(engine, params["name"], body)
    return engine.rank(params["name"], body)


async def _activate(engine: Engine, params: Asked, body: m.ActivateRequest) -> m.EventAnswer:
    return await engine.activate(params["name"], body)


async def _feedback(engine: Engine, params: Asked, body: Any) -> Any:
    if isinstance(body, list):
        return await engine.feedback(params["name"], body)
    (answer,) = await engine.feedback(params["name"], [body])
    if answer.status == "conflict":
        raise Conflict(
            f"decision {body.decision_id!r} has another answer already, or the event id is taken (row {answer.seq})",
            field="event_id",
        )
    return answer


async def _items(engine: Engine, params: Asked, body: m.ItemsRequest) -> m.EventAnswer:
    return await engine.change_items(params["name"], body)


async def _promote(engine: Engine, params: Asked, body: m.PromoteRequest) -> m.EventAnswer:
    return await engine.promote(params["name"], body)


async def _freeze(engine: Engine, params: Asked, body: m.FreezeRequest) -> m.EventAnswer:
    return await engine.freeze(params["name"], body)


async def _rollback(engine: Engine, params: Asked, body: m.RollbackRequest) -> m.EventAnswer:
    return await engine.rollback(params["name"], body)


async def _policy(engine: Engine, params: Asked, body: m.PolicyRequest) -> m.EventAnswer:
    return await change_policy(engine, params["name"], body)


async def _reset(engine: Engine, params: Asked, body: m.ResetRequest) -> m.EventAnswer:
    return await engine.reset(params["name"], body)


async def _import(engine: Engine, params: Asked, body: ImportRequest) -> ImportAnswer:
    return await import_history(engine, params["name"], body)


async def _decision(engine: Engine, params: Asked, body: None) -> m.DecisionAnswer:
    return await views.decision_answer(await engine.find(params["name"]), params["decision_id"])


async def _snapshots(engine: Engine, params: Asked, body: None) -> m.SnapshotsAnswer:
    return await views.snapshots_answer(await engine.find(params["name"]))


async def _snapshot(engine: Engine, params: Asked, body: None) -> m.SnapshotsAnswer:
    await engine.snapshot(params["name"])
    return await views.snapshots_answer(await engine.find(params["name"]))


async def _series(engine: Engine, params: Asked, body: None) -> m.SeriesAnswer:
    served = await engine.find(params["name"])
    return views.series_answer(served, window=params.get("window", "all"), now=engine.now())


async def _item_table(engine: Engine, params: Asked, body: None) -> m.ItemTableAnswer:
    return item_table(
        await engine.find(params["name"]),
        search=params.get("search", ""),
        sort=params.get("sort", "order"),
        limit=params.get("limit", "100"),
    )


async def _item_features(engine: Engine, params: Asked, body: None) -> ItemFeaturesAnswer:
    return item_features(await engine.find(params["name"]), params["item"])


async def _dead_letters(engine: Engine, params: Asked, body: None) -> m.DeadLettersAnswer:
    return views.dead_letters_answer(await engine.find(params["name"]))


async def _events(engine: Engine, params: Asked, body: None) -> m.EventsAnswer:
    served = await engine.find(params["name"])
    return await views.events_answer(served, after=params.get("after", "0"), limit=params.get("limit", "500"))


async def _explain(engine: Engine, params: Asked, body: None) -> explain.ExplainAnswer:
    return await explain.explain_answer(await engine.find(params["name"]), params["decision_id"])


async def _decisions(engine: Engine, params: Asked, body: None) -> m.DecisionsAnswer:
    return await views.decisions_answer(await engine.find(params["name"]))


async def _sparks(engine: Engine, params: Asked, body: None) -> m.SparksAnswer:
    mine = [served for served in await engine.find_all() if params.caller.covers(served.name)]
    return m.SparksAnswer({one.name: views.sparkline(one.fold.series) for one in mine})


def _rank_at_hand(engine: Engine, name: str, body: Any) -> bool:
    return engine.is_at_hand(name) and not isinstance(body, list)


def _feedback_at_hand(engine: Engine, name: str, body: Any) -> bool:
    if not engine.is_at_hand(name) or isinstance(body, list):
        return False
    fold = engine.rankers[name].fold
    return body.decision_id in fold.recent and len(fold.parked) < engine.limits.parked


_RANKER = "/v1/rankers/{name}"

ENDPOINTS = (
    Endpoint("POST", "/v1/rankers", "admin", "Create a ranker", _create, m.RankerAnswer, m.CreateRequest),
    Endpoint("GET", "/v1/rankers", "reader", "All rankers", _rankers, m.RankersAnswer),
    Endpoint("GET", _RANKER, "reader", "The present state of one ranker", _ranker, m.RankerAnswer),
    Endpoint("DELETE", _RANKER, "admin", "Archive a ranker; its log stays", _archive, m.ArchivedAnswer),
    Endpoint(
        "POST",
        f"{_RANKER}/rank",
        "writer",
        "A list to show, or several",
        _rank,
        m.RankAnswer | list[m.RankOutcome],
        m.RankRequest | list[m.RankRequest],
        at_hand=_rank_at_hand,
    ),
    Endpoint(
        "POST",
        f"{_RANKER}/activate",
        "writer",
        "Report that the list was shown",
        _activate,
        m.EventAnswer,
        m.ActivateRequest,
    ),
    Endpoint(
        "POST",
        f"{_RANKER}/feedback",
        "writer",
        "Report feedback on one list or many",
        _feedback,
        m.EventAnswer | list[m.EventAnswer],
        m.FeedbackRequest | list[m.FeedbackRequest],
        at_hand=_feedback_at_hand,
    ),
    Endpoint(
        "POST", f"{_RANKER}/items", "admin", "Add or retire items", _items, m.EventAnswer, m.ItemsRequest
    ),
    Endpoint(
        "POST",
        f"{_RANKER}/freeze",
        "admin",
        "Freeze or resume learning",
        _freeze,
        m.EventAnswer,
        m.FreezeRequest,
    ),
    Endpoint(
        "POST",
        f"{_RANKER}/promote",
        "admin",
        "Show the ranker's lists to a share of the requests with a baseline",
        _promote,
        m.EventAnswer,
        m.PromoteRequest,
    ),
    Endpoint(
        "POST",
        f"{_RANKER}/rollback",
        "admin",
        "Roll back to a snapshot",
        _rollback,
        m.EventAnswer,
        m.RollbackRequest,
    ),
    Endpoint(
        "POST",
        f"{_RANKER}/policy",
        "admin",
        "Change the policy for lists from now on",
        _policy,
        m.EventAnswer,
        m.PolicyRequest,
    ),
    Endpoint(
        "POST",
        f"{_RANKER}/import",
        "admin",
        "Learn from history: lists shown elsewhere, or a state",
        _import,
        ImportAnswer,
        ImportRequest,
    ),
    Endpoint("POST", f"{_RANKER}/reset", "admin", "Begin anew", _reset, m.EventAnswer, m.ResetRequest),
    Endpoint(
        "GET",
        f"{_RANKER}/decisions/{{decision_id}}",
        "reader",
        "The history of one decision",
        _decision,
        m.DecisionAnswer,
    ),
    Endpoint(
        "GET",
        f"{_RANKER}/explain/{{decision_id}}",
        "reader",
        "Why each item of a list stood where it stood",
        _explain,
        explain.ExplainAnswer,
    ),
    Endpoint(
        "GET",
        f"{_RANKER}/decisions",
        "reader",
        "The newest lists",
        _decisions,
        m.DecisionsAnswer,
    ),
    Endpoint("GET", "/v1/access", "reader", "What the caller's key permits", _access, m.AccessAnswer),
    Endpoint("GET", "/v1/sparks", "reader", "A sparkline for each ranker", _sparks, m.SparksAnswer),
    Endpoint("GET", f"{_RANKER}/snapshots", "reader", "All snapshots", _snapshots, m.SnapshotsAnswer),
    Endpoint("POST", f"{_RANKER}/snapshots", "admin", "Take a snapshot now", _snapshot, m.SnapshotsAnswer),
    Endpoint(
        "GET",
        f"{_RANKER}/series",
        "reader",
        "Statistics over time",
        _series,
        m.SeriesAnswer,
        query=(("window", "all, hour or day"),),
    ),
    Endpoint(
        "GET",
        f"{_RANKER}/items",
        "reader",
        "What each item was shown and got back",
        _item_table,
        m.ItemTableAnswer,
        query=(
            ("search", "Part of the names that are wanted"),
            ("sort", "order, shown, observed, positive, estimate or name"),
            ("limit", "How many at most"),
        ),
    ),
    Endpoint(
        "GET",
        f"{_RANKER}/features/{{item}}",
        "reader",
        "The stored features of an item",
        _item_features,
        ItemFeaturesAnswer,
    ),
    Endpoint(
        "GET",
        f"{_RANKER}/events",
        "reader",
        "What was learnt and changed, in the order of the log",
        _events,
        m.EventsAnswer,
        query=(
            ("after", "The last row that is known already; 0 for none"),
            ("limit", "How many rows to look at, at most"),
        ),
    ),
    Endpoint(
        "GET",
        f"{_RANKER}/dead-letters",
        "reader",
        "Dead letters: feedback that could not be used",
        _dead_letters,
        m.DeadLettersAnswer,
    ),
)
