"""User Behavior Insights over HTTP: searches and events become lists and clicks of the log, each exactly once.

A search whose id is a decision's is that list. Any other was ordered by another system: its hit ids become a list
without propensities, from which rankers learn that can learn from any list. Without hit ids its impressions make the
list, once they have been gathered. What comes before its list waits in the log, and is a dead letter where none comes.
No id of a client, session or user is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from rankloop.data.ubi import Event, Query, Unknown, impressed, is_action, read_document
from rankloop.features import key_of
from rankloop.serving.admission import (
    Busy,
    Conflict,
    Forbidden,
    Limits,
    Malformed,
    NotFound,
    RequestError,
    TooLarge,
    Unavailable,
    Unsupported,
    check_names,
)
from rankloop.serving.api import (
    ActivateRequest,
    EventAnswer,
    FeedbackRequest,
    RankRequest,
    UbiAnswer,
    UbiOutcome,
)
from rankloop.serving.log import records
from rankloop.serving.log.digests import digest_of
from rankloop.serving.log.records import Decision, Entry, Waits, pack
from rankloop.serving.rank_request import check_context, chosen_rows, request_rows
from rankloop.serving.stores.contract import Stale

if TYPE_CHECKING:
    from rankloop.serving.engine import Engine
    from rankloop.serving.log.fold import Fold
    from rankloop.serving.served_ranker import ServedRanker

PATHS = ("/v1/ubi/queries", "/v1/ubi/events", "/ubi_queries", "/ubi_events", "/_bulk")
_KINDS = (
    *(b"application/json", b"application/x-ndjson", b"application/ndjson", b"text/plain"),
    *(b"application/vnd.elasticsearch+x-ndjson", b"application/vnd.elasticsearch+json"),
)
_STATUS = {"accepted": 201, "parked": 202, "conflict": 409, "busy": 429}  # of a document; else 200
_DRAWS = 4  # of one list, where the ranker is changed meanwhile
_HITS = "query_response_hit_ids"


class Line(NamedTuple):
    """A document of a request, what is to be done with it, and why it cannot be read, where it cannot."""

    action: str
    document: Any
    error: RequestError | None = None


def read_lines(kind: bytes, body: bytes, limits: Limits) -> tuple[list[Line], bool]:
    r"""The documents of a body, and whether it is one by itself: one, an array, or lines with or without actions.

    >>> lines, single = read_lines(b"text/plain", b'{"index": {}}\n{"user_query": "tea"}\n', Limits())
    >>> lines, single
    ([Line(action='index', document={'user_query': 'tea'}, error=None)], False)
    """
    if kind not in _KINDS:
        raise Unsupported("Content-Type must be application/json, application/x-ndjson or text/plain")
    single = False
    try:
        found = msgspec.json.decode(body)
        single = not isinstance(found, list)
        parts = found if isinstance(found, list) else [found]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        parts = [_decoded(line) for line in body.split(b"\n") if line.strip()]
    lines: list[Line] = []
    waiting = iter(parts)
    for one in waiting:
        if not is_action(one):
            lines.append(_line("index", one))
            continue
        action = next(iter(one))
        document = one if action == "delete" else next(waiting, None)
        lines.append(_line(action, document))
    if not lines or (len(lines) == 1 and isinstance(lines[0].error, Malformed)):
        raise lines[0].error if lines and lines[0].error else Malformed("the body has no document")
    if len(lines) > limits.batch:
        raise TooLarge(
            f"limit reached: {limits.batch:,} documents in one request, got {len(lines):,}; nothing was written"
        )
    return lines, single


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return Malformed(f"the document cannot be read: {error}")


def _line(action: str, document: Any) -> Line:
    error: RequestError | None = document if isinstance(document, Malformed) else None
    if action not in ("index", "create"):
        error = RequestError(f"documents can be indexed or created, got the action {action!r}", field=action)
    elif document is None:
        error = Malformed(f"the action {action!r} has no document behind it")
    return Line(action, document, error)


class Route(NamedTuple):
    """Which ranker documents are for: the one that the request names, else their application, else the key's own.

    permit: refuses a ranker that the key is not for. own: the rankers that the key names.
    """

    named: str | None
    own: tuple[str, ...]
    permit: Callable[[str], object]

    async def ranker(self, engine: Engine, application: str) -> ServedRanker | RequestError:
        """The ranker, or why there is none."""
        names = [self.named] if self.named else [application, *(self.own if len(self.own) == 1 else ())]
        there = [] if self.named or self.own else await engine.names()
        wrong: RequestError = NotFound(
            "name a ranker as the application, or with ?ranker=", field="application"
        )
        for name in (*names, *(there if len(there) == 1 else ())):
            if name:
                try:
                    self.permit(name)
                    return await engine.find_to_write(name)
                except (NotFound, Forbidden) as error:
                    wrong = error
                except RequestError as error:
                    return error
        return wrong


async def take(engine: Engine, lines: list[Line], route: Route, *, single: bool = False) -> UbiAnswer:
    """Take in the documents of a request, searches before events; what each came to, in their order.

    single: what is wrong with the document is raised.
    """
    read = [line.error or _read(line.document) for line in lines]
    documents = [one for one in read if not isinstance(one, RequestError)]
    rankers = {one: await route.ranker(engine, one) for one in {one.application for one in documents}}
    came: dict[int, EventAnswer | RequestError] = {
        i: one for i, one in enumerate(read) if isinstance(one, RequestError)
    }

    async def settle(i: int, one: Query | Event) -> None:
        served = rankers[one.application]
        try:
            if isinstance(served, RequestError):
                raise served
            came[i] = await (
                _search(engine, served, one) if isinstance(one, Query) else _event(engine, served, one)
            )
        except RequestError as error:
            came[i] = error

    for kind in (Query, Event):
        await asyncio.gather(*[settle(i, one) for i, one in enumerate(read) if isinstance(one, kind)])
    first = came[0]
    if single and isinstance(first, RequestError):
        raise first
    items = [{line.action: _outcome(read[i], came[i])} for i, line in enumerate(lines)]
    return UbiAnswer(any(isinstance(one, RequestError) for one in came.values()), items)


def _read(document: Any) -> Query | Event | RequestError:
    try:
        return read_document(document)
    except Unknown as error:
        return RequestError(str(error), field=error.field)


def _outcome(one: Query | Event | RequestError, came: EventAnswer | RequestError) -> UbiOutcome:
    name = "" if isinstance(one, RequestError) else one.query_id if isinstance(one, Query) else one.event_id
    if isinstance(came, RequestError):
        return UbiOutcome(name, came.status, "error", {"type": came.code, "reason": came.message})
    result = "created" if came.status == "accepted" else came.status
    return UbiOutcome(name, _STATUS.get(came.status, 200), result)


_NOTHING = EventAnswer("noop", 0)


async def _search(engine: Engine, served: ServedRanker, query: Query) -> EventAnswer:
    state = await served.decision_state(query.query_id)
    if state is not None and state.decision.key:
        return _NOTHING  # the ranker's own list
    if not query.shown:
        if state is not None:
            return _NOTHING
        waits = Waits("query", user_query=query.user_query, application=query.application)
        return await _wait(engine, served, query.query_id, query.query_id, waits)
    answer = await show(engine, served, query)
    await join(engine, served, query.query_id)
    return answer


async def _event(engine: Engine, served: ServedRanker, event: Any) -> EventAnswer:
    if not event.action:
        return _NOTHING
    state = await served.decision_state(event.query_id)
    if state is None:
        waits = Waits(event.action, event.item, event.ordinal, event.user_query, event.application)
        return await _wait(engine, served, event.query_id, event.event_id, waits)
    if event.action == "impression":
        if state.activated:
            return EventAnswer("duplicate", 0, duplicate=True)
        return await engine.activate(served.name, ActivateRequest(event.query_id))
    click = FeedbackRequest(event.query_id, event.event_id, item=event.item)
    (answer,) = await engine.feedback(served.name, [click])
    return answer


async def _wait(
    engine: Engine, served: ServedRanker, query_id: str, event_id: str, waits: Waits
) -> EventAnswer:
    waiting = served.fold.waiting
    if waiting.n >= engine.limits.parked:
        raise Busy(f"limit reached: {engine.limits.parked:,} documents that wait for their list")
    body = records.encode(waits)
    written = await engine.write(Entry(served.name, "ubi", event_id, body, digest_of(body), query_id))
    if not written.new or written.outcome is None:
        return EventAnswer("duplicate", written.row.seq, duplicate=True)
    return EventAnswer(written.outcome.status, written.row.seq)


async def show(engine: Engine, served: ServedRanker, query: Query) -> EventAnswer:
    """Log a list that another system ordered, as one that was shown."""
    for _ in range(_DRAWS):
        decision = list_of(served.fold, query, engine.limits)
        entry = Entry(
            ranker=served.name,
            kind="decision",
            event_id=query.query_id,
            body=records.encode(decision),
            digest=digest_of(_HITS, *query.shown),
            drawn_from=(served.fold.applied, served.fold.link),
            content=decision,
        )
        try:
            written = await engine.write(entry)
        except Stale:  # another replica changed the ranker meanwhile
            continue
        except Conflict:
            raise Conflict(
                f"search {query.query_id!r:.80} is there already, with another list", field="query_id"
            ) from None
        if not written.new:
            return EventAnswer("duplicate", written.row.seq, duplicate=True)
        return EventAnswer("accepted", written.row.seq)
    raise Unavailable(f"ranker {served.name!r} is being changed: try again")


def list_of(fold: Fold, query: Query, limits: Limits) -> Decision:
    """The list that a search showed, as a decision that nobody drew: it has no key and no propensities."""
    names, field = list(query.shown), _HITS
    check_names(names, limits, field=field)
    context: dict[str, Any] = {"user_query": query.user_query}
    check_context(context, limits)
    candidates, stored, features = None, None, None
    if fold.has_items:
        n = fold.ranker.n_positions or len(fold.items)
        if len(names) < n:
            raise RequestError(f"{field} has {len(names)} ids, and this ranker shows {n}", field=field)
        there = set(fold.items)
        unknown = next((name for name in names[:n] if name not in there), None)
        if unknown is not None:
            raise RequestError(f"{unknown!r:.80} is not an item of this ranker", field=field)
        shown = [fold.number[name] for name in names[:n]]
    else:
        rows = request_rows(fold, RankRequest(items=names), limits)
        _, stored = chosen_rows(fold, rows, None, [])
        features = None if rows.given is None else pack(rows.given)
        shown = list(range(len(names)))
        candidates = names if stored is None else None
    return Decision(
        model_seq=fold.applied,
        generation=fold.generation,
        shown=np.array(shown, "<i4").tobytes(),
        key=b"",
        deadline=0,
        explored=False,
        candidates=candidates,
        context=context,
        allowed=round(fold.config.policy.deadline_seconds * 1000),
        stored=stored,
        features=features,
        query=key_of(query.user_query),
    )


async def join(engine: Engine, served: ServedRanker, query_id: str) -> None:
    """Make the list of a search of its impressions, where there is none yet, and report its clicks as feedback.

    Each step has an ID of its own, so that one that was interrupted is completed, and nothing is counted twice.
    """
    search = served.fold.waiting.of.get(query_id)
    if search is None:
        return
    search.tried = True
    documents = dict(search.documents)
    seen = search.seen()
    state = await served.decision_state(query_id)
    with contextlib.suppress(Unknown, RequestError):
        if state is None:
            application = seen[0].application if seen else ""
            first = 0 if application in served.fold.waiting.zero else 1
            shown = impressed(((one.ordinal, one.item) for one in seen), first=first)
            if not shown:
                return
            words = next((one.user_query for _, one in documents.values() if one.user_query), "")
            await show(engine, served, Query(query_id, words, tuple(shown), application))
        if seen:
            await engine.activate(served.name, ActivateRequest(query_id))
        clicks = [
            FeedbackRequest(query_id, event_id, item=one.item)
            for event_id, (_, one) in documents.items()
            if one.action == "click"
        ]
        told: list[Awaitable[Any]] = [engine.feedback(served.name, [click]) for click in clicks]
        # One that its list does not have stays where it is, and becomes a dead letter.
        for outcome in await asyncio.gather(*told, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, RequestError):
                raise outcome


async def join_due(engine: Engine, served: ServedRanker) -> None:
    """The same for all searches of which enough has been gathered."""
    fold = served.fold
    now = await engine.store.time(served.name, at=engine.now()) if fold.waiting.of else 0
    for at, query_id in fold.waiting.due(fold.config.policy):
        if at <= now:
            await join(engine, served, query_id)
