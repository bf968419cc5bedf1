"""The HTTP API: what answers which path, and how that is served: key, limits, body, answer, in JSON or msgpack.

The key is checked before a body is read, always. A body is decoded once, into the type that the endpoint names.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

from rankloop import __version__
from rankloop.serving import admission, views
from rankloop.serving import api as m
from rankloop.serving.auth import KEY_IN_ADDRESS, Guard, Permission
from rankloop.serving.engine import Engine
from rankloop.serving.failpoints import reach
from rankloop.serving.history_import import ImportRequest, import_history
from rankloop.serving.item_counts import item_features, item_table
from rankloop.serving.messages import tracing
from rankloop.serving.rerank import RerankAnswer, RerankRequest, rerank
from rankloop.serving.stores.contract import StoreError

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_log = logging.getLogger("rankloop.serving")
_json = msgspec.json.Encoder().encode
_msgpack = msgspec.msgpack.Encoder().encode
_MSGPACK = (b"application/msgpack", b"application/x-msgpack", b"application/vnd.msgpack")
_JSON = b"application/json"
_SPOKEN = (_JSON, *_MSGPACK)
_TEXT = b"text/plain"
_NOSNIFF = (b"x-content-type-options", b"nosniff")
_FIELD = re.compile(r" - at `\$\.?([^`]*)`$")
_NAMED = re.compile(r"^Object (?:missing required|contains unknown) field `([^`]*)`")
_LONGEST_NAME = 64  # characters of a ranker's name


class Parameters(dict[str, str]):
    """The names in the path of a request; `caller`: what its caller may do; `headers`: of the request."""

    __slots__ = ("caller", "headers")

    def __init__(self, names: dict[str, str], caller: Permission, headers: dict[bytes, bytes]) -> None:
        dict.__init__(self, names)
        self.caller = caller
        self.headers = headers


class Endpoint(NamedTuple):
    """A method and path, the role that it needs, and what answers it.

    request, answer: the types of the bodies, and with GET of the query; no request, neither.
    """

    method: str
    path: str
    role: str
    handle: Callable[[Engine, Parameters, Any], Awaitable[Any]]
    request: Any
    answer: Any

    @property
    def summary(self) -> str:
        return (self.handle.__doc__ or "").rstrip(".")


class Form(NamedTuple):
    """How a request is written, and whether its answer is msgpack."""

    sent: bytes
    packed: bool


class EndpointApp:
    """One endpoint as an ASGI application."""

    def __init__(self, endpoint: Endpoint, engine: Engine, guard: Guard) -> None:
        self._endpoint = endpoint
        self._engine = engine
        self._guard = guard
        self._name = f"{endpoint.method} {endpoint.path}"
        # It may ask the store many times, so that there must be an end to all of it together.
        self._reads_much = endpoint.method == "GET" or endpoint.path.endswith(("/feedback", "/rollback"))
        self._creates = endpoint.request is m.CreateRequest  # what is new is answered with 201
        if endpoint.request is not None:
            self._from_json = msgspec.json.Decoder(endpoint.request).decode
            self._from_msgpack = msgspec.msgpack.Decoder(endpoint.request).decode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, receive, send, scope["path_params"])

    async def serve(self, scope: Scope, receive: Receive, send: Send, names: dict[str, str]) -> None:
        headers = headers_of(scope)
        form = form_of(headers)
        endpoint, limits = self._endpoint, self._engine.limits
        try:
            ranker = names.get("name")
            caller = self._guard.check(headers, endpoint.role, peer=peer_of(scope), ranker=ranker)
            check_name(ranker)
            body = None
            if endpoint.request is not None and endpoint.method == "GET":
                body = decoded(self._from_query, scope.get("query_string", b""))
            elif endpoint.request is not None:
                raw = await receive_body(headers, receive, limits.body_bytes, seconds=limits.body_seconds)
                body = self._decode(form.sent, raw)
                if isinstance(body, list):
                    self._guard.charge(caller, len(body) - 1)
            reach("after-decode")
            status, answer = await self._answer(Parameters(names, caller, headers), body, headers)
        except Exception as error:
            known = as_request_error(error, self._name)
            await send_error(send, known, packed=form.packed, foreign=endpoint.request is RerankRequest)
        else:
            if form.packed:
                await send_bytes(send, status, _msgpack(answer), b"application/msgpack")
            else:
                await send_bytes(send, status, _json(answer), _JSON)

    async def _answer(
        self, parameters: Parameters, body: Any, headers: dict[bytes, bytes]
    ) -> tuple[int, Any]:
        handle, seconds = self._endpoint.handle, self._engine.limits.store_seconds
        with tracing.request(self._name, headers, parameters.get("name")):
            if not self._reads_much:
                answer = await handle(self._engine, parameters, body)
            else:
                async with asyncio.timeout(seconds):
                    answer = await handle(self._engine, parameters, body)
        return (201 if self._creates and not answer.duplicate else 200), answer

    def _from_query(self, query: bytes) -> Any:
        told = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
        return msgspec.convert(told, self._endpoint.request, strict=False)

    def _decode(self, sent: bytes, body: bytes) -> Any:
        if sent == _TEXT and self._endpoint.role == "events":
            sent = _JSON  # as a beacon of a browser says
        if sent not in _SPOKEN:
            raise admission.Unsupported("Content-Type must be application/json or application/msgpack")
        if sent == _JSON:
            return decoded(self._from_json, body or b"{}")
        return decoded(self._from_msgpack, body or b"\x80")


class _Internal(admission.RequestError, status=500, code="internal"):
    pass


def check_name(ranker: str | None) -> None:
    """`NotFound` for a name that no ranker can have, before anything looks for it or keeps it."""
    if ranker is not None and len(ranker) > _LONGEST_NAME:
        raise admission.NotFound(f"there is no ranker {ranker[:_LONGEST_NAME]!r}...")


def decoded(decode: Callable[[bytes], Any], body: bytes) -> Any:
    """A body or a query as `decode` reads it; `RequestError` with the field where it is not what is expected."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        inside, named = _FIELD.search(str(error)), _NAMED.search(str(error))
        parts = [part[1] for part in (inside, named) if part and part[1]]
        raise admission.RequestError(_FIELD.sub("", str(error)), field=".".join(parts) or None) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise admission.Malformed(f"the body cannot be read: {error}") from None


def as_request_error(error: Exception, what: str) -> admission.RequestError:
    """What a caller is told of an error in `what`; one that nobody expected is logged."""
    if isinstance(error, admission.RequestError):
        return error
    if isinstance(error, StoreError | TimeoutError):
        return admission.Unavailable(str(error) or "the store did not answer in time")
    _log.error("%s failed", what, exc_info=error)
    return _Internal("internal error; the service's log has the details")


def peer_of(scope: Scope) -> str | None:
    """The address that the connection comes from, as the system says; None where there is none."""
    client = scope.get("client")
    return client[0] if client else None


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The headers, the last of each name; a key in the address, which a beacon needs, becomes one of them."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    query = scope.get("query_string", b"")
    if b"key=" in query and b"authorization" not in headers:
        key = dict(parse_qsl(query.decode("latin-1"))).get("key", "")
        headers |= {b"authorization": b"Bearer " + key.encode(), KEY_IN_ADDRESS: b"1"}
    return headers


def form_of(headers: dict[bytes, bytes]) -> Form:
    """How a request with these headers is written, and how it is answered."""
    sent = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    accept = headers.get(b"accept", b"*/*").lower()
    packed = any(kind in accept for kind in _MSGPACK) or (b"json" not in accept and sent in _MSGPACK)
    return Form(sent, packed)


async def receive_body(
    headers: dict[bytes, bytes], receive: Receive, most: int, *, seconds: float = 60.0
) -> bytes:
    """The body, as long as it is neither too long nor too slow."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > most:
        raise admission.TooLarge(f"a body may have {most} bytes, this one says {int(length)}")
    body, is_whole = await _part(receive)  # how long this may take, the server's connections say
    if is_whole and len(body) <= most:
        return body
    parts, size = [body], len(body)
    try:
        async with asyncio.timeout(seconds):
            while size <= most and not is_whole:
                body, is_whole = await _part(receive)
                parts.append(body)
                size += len(body)
    except TimeoutError:
        raise admission.TooSlow(f"the body did not arrive within {seconds:g} s") from None
    if size > most:
        raise admission.TooLarge(f"a body may have {most} bytes, this one has more")
    return b"".join(parts)


async def _part(receive: Receive) -> tuple[bytes, bool]:
    """The next part of a body, and whether it is the last."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise admission.Malformed("the caller closed the connection")
    return message.get("body", b""), not message.get("more_body", False)


async def send_bytes(send: Send, status: int, body: bytes, kind: bytes, more: Headers | None = None) -> None:
    """Send a whole answer."""
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), _NOSNIFF, *(more or ())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def error_headers(error: admission.RequestError) -> dict[str, str]:
    """What a caller is told about trying again."""
    more: dict[str, str] = {}
    if error.retry_after is not None:
        more["retry-after"] = str(error.retry_after)
    if isinstance(error, admission.Unauthorized):
        more["www-authenticate"] = "Bearer"
    return more


async def send_error(
    send: Send, error: admission.RequestError, *, packed: bool = False, foreign: bool = False
) -> None:
    """Send an error in the common form; foreign: where clients of other services look for it as well."""
    body = m.ErrorBody(error.code, error.message, error.field)
    answer = m.ErrorAnswer(body, error.message if foreign else "")
    more = [(name.encode(), value.encode()) for name, value in error_headers(error).items()]
    if packed:
        await send_bytes(send, error.status, _msgpack(answer), b"application/msgpack", more)
    else:
        await send_bytes(send, error.status, _json(answer), _JSON, more)


ENDPOINTS: list[Endpoint] = []
_RANKER = "/v1/rankers/{name}"
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])


def _endpoint(method: str, path: str, role: str) -> Callable[[Handler], Handler]:
    """Serve a function, whose annotations are the types of the bodies and whose first line is the summary."""

    def add(handle: Handler) -> Handler:
        hints = get_type_hints(handle, include_extras=True)
        request = None if hints["body"] is type(None) else hints["body"]
        ENDPOINTS.append(Endpoint(method, path, role, handle, request, hints["return"]))
        return handle

    return add


def _plain_call(
    action: str, role: str, call: Callable[[Engine, str, Any], Awaitable[Any]], summary: str
) -> None:
    """Serve a method of the engine that takes a ranker's name and a request, whose types are those of the bodies."""

    async def handle(engine: Engine, parameters: Parameters, body: Any) -> Any:
        return await call(engine, parameters["name"], body)

    handle.__name__, handle.__doc__ = action, summary
    hints = get_type_hints(call, include_extras=True)
    ENDPOINTS.append(Endpoint("POST", f"{_RANKER}/{action}", role, handle, hints["request"], hints["return"]))


for _action in (
    ("activate", "events", Engine.activate, "Report that the list was shown"),
    ("items", "admin", Engine.change_items, "Add or retire items"),
    ("freeze", "admin", Engine.freeze, "Freeze or resume learning"),
    (
        "promote",
        "admin",
        Engine.promote,
        "Show the ranker's lists to a share of the requests with a baseline, or one ranking of a comparison",
    ),
    ("stop", "admin", Engine.stop, "End a comparison"),
    ("rollback", "admin", Engine.rollback, "Roll back to a snapshot"),
    ("policy", "admin", Engine.change_policy, "Change the policy for lists from now on"),
    ("reset", "admin", Engine.reset, "Begin anew"),
):
    _plain_call(*_action)


@_endpoint("POST", "/v1/rankers", "admin")
async def _create(engine: Engine, parameters: Parameters, body: m.CreateRequest) -> m.RankerAnswer:
    """Create a ranker."""
    served, duplicate = await engine.create(body, permit=parameters.caller.check_new)
    engine.changed.set()  # those who watch may have looked before it was there
    return await views.ranker_answer(served, duplicate=duplicate)


@_endpoint("GET", "/v1/rankers", "reader")
async def _rankers(engine: Engine, parameters: Parameters, body: None) -> m.RankersAnswer:
    """All rankers."""
    mine = [served for served in await engine.find_all() if parameters.caller.covers(served.name)]
    answers = [await views.ranker_answer(served) for served in mine]
    return m.RankersAnswer(answers, [] if parameters.caller.rankers else engine.notices())


@_endpoint("GET", _RANKER, "reader")
async def _ranker(engine: Engine, parameters: Parameters, body: None) -> m.RankerAnswer:
    """The present state of one ranker."""
    return await views.ranker_answer(await engine.find(parameters["name"]))


@_endpoint("DELETE", _RANKER, "admin")
async def _archive(engine: Engine, parameters: Parameters, body: None) -> m.ArchivedAnswer:
    """Archive a ranker; its log stays."""
    return await engine.archive(parameters["name"])


@_endpoint("POST", f"{_RANKER}/rank", "writer")
async def _rank(
    engine: Engine, parameters: Parameters, body: m.RankRequest | list[m.RankRequest]
) -> m.RankAnswer | list[m.RankOutcome]:
    """A list to show, or several."""
    if isinstance(body, list):
        return await engine.rank_many(parameters["name"], body)
    return await engine.rank(parameters["name"], body)


@_endpoint("POST", "/v2/rerank", "writer")
@_endpoint("POST", "/v1/rerank", "writer")
@_endpoint("POST", "/rerank", "writer")
async def _rerank(engine: Engine, parameters: Parameters, body: RerankRequest) -> RerankAnswer:
    """Order documents, in the form of Cohere's API."""
    check_name(body.model)
    parameters.caller.check("writer", body.model)
    given = parameters.headers.get(b"x-decision-id", b"").decode("latin-1") or None
    try:
        decision_id = msgspec.convert(given, m.EventId | None)
    except msgspec.ValidationError as error:
        raise admission.RequestError(str(error), field="X-Decision-Id") from None
    key = parameters.headers.get(b"authorization", b"")
    return await rerank(engine, body, caller=key, decision_id=decision_id)


@_endpoint("POST", f"{_RANKER}/feedback", "events")
async def _feedback(
    engine: Engine, parameters: Parameters, body: m.FeedbackRequest | list[m.FeedbackRequest]
) -> m.EventAnswer | list[m.EventAnswer]:
    """Report feedback on one list or many."""
    if isinstance(body, list):
        return await engine.feedback(parameters["name"], body)
    (answer,) = await engine.feedback(parameters["name"], [body])
    if answer.status == "conflict":
        raise admission.Conflict(
            f"decision {body.decision_id!r} has another answer already, or the event id is taken (row {answer.seq})",
            field="event_id",
        )
    return answer


@_endpoint("POST", f"{_RANKER}/import", "admin")
async def _import(engine: Engine, parameters: Parameters, body: ImportRequest) -> m.ImportAnswer:
    """Learn from history: lists shown elsewhere, or a state."""
    return await import_history(engine, parameters["name"], body)


@_endpoint("GET", f"{_RANKER}/decisions/{{decision_id}}", "reader")
async def _decision(engine: Engine, parameters: Parameters, body: None) -> m.DecisionAnswer:
    """The history of one decision."""
    return await views.decision_answer(await engine.find(parameters["name"]), parameters["decision_id"])


@_endpoint("GET", f"{_RANKER}/explain/{{decision_id}}", "reader")
async def _explain(engine: Engine, parameters: Parameters, body: None) -> m.ExplainAnswer:
    """Why each item of a list stood where it stood."""
    return await views.explain_answer(await engine.find(parameters["name"]), parameters["decision_id"])


@_endpoint("GET", f"{_RANKER}/decisions", "reader")
async def _decisions(engine: Engine, parameters: Parameters, body: None) -> m.DecisionsAnswer:
    """The newest lists."""
    return await views.decisions_answer(await engine.find(parameters["name"]))


@_endpoint("GET", "/v1/access", "reader")
async def _access(engine: Engine, parameters: Parameters, body: None) -> m.AccessAnswer:
    """What the caller's key permits."""
    caller = parameters.caller
    return m.AccessAnswer(caller.role, list(caller.rankers), caller.most_rankers, caller.rate)


@_endpoint("GET", "/v1/sparks", "reader")
async def _sparks(engine: Engine, parameters: Parameters, body: None) -> m.SparksAnswer:
    """A sparkline for each ranker."""
    mine = [served for served in await engine.find_all() if parameters.caller.covers(served.name)]
    return m.SparksAnswer({one.name: views.sparkline(one.fold.series) for one in mine})


@_endpoint("GET", f"{_RANKER}/snapshots", "reader")
async def _snapshots(engine: Engine, parameters: Parameters, body: None) -> m.SnapshotsAnswer:
    """All snapshots."""
    return await views.snapshots_answer(await engine.find(parameters["name"]))


@_endpoint("POST", f"{_RANKER}/snapshots", "admin")
async def _snapshot(engine: Engine, parameters: Parameters, body: None) -> m.SnapshotsAnswer:
    """Take a snapshot now."""
    await engine.snapshot(parameters["name"])
    return await views.snapshots_answer(await engine.find(parameters["name"]))


class _SeriesQuery(msgspec.Struct, forbid_unknown_fields=True):
    window: Literal["all", "hour", "day"] = "all"


@_endpoint("GET", f"{_RANKER}/series", "reader")
async def _series(engine: Engine, parameters: Parameters, body: _SeriesQuery) -> m.SeriesAnswer:
    """Statistics over time."""
    served = await engine.find(parameters["name"])
    return views.series_answer(served, window=body.window, now=engine.now())


class _ItemsQuery(msgspec.Struct, forbid_unknown_fields=True):
    search: Annotated[str, Meta(description="Part of the names that are wanted")] = ""
    sort: Literal["order", "name", "shown", "observed", "positive", "estimate"] = "order"
    limit: Annotated[int, Meta(ge=1, le=10_000, description="How many at most")] = 100


@_endpoint("GET", f"{_RANKER}/items", "reader")
async def _item_table(engine: Engine, parameters: Parameters, body: _ItemsQuery) -> m.ItemTableAnswer:
    """What each item was shown and got back."""
    return item_table(await engine.find(parameters["name"]), **msgspec.structs.asdict(body))


@_endpoint("GET", f"{_RANKER}/features/{{item}}", "reader")
async def _item_features(engine: Engine, parameters: Parameters, body: None) -> m.ItemFeatures:
    """The stored features of an item."""
    return item_features(await engine.find(parameters["name"]), parameters["item"])


class _EventsQuery(msgspec.Struct, forbid_unknown_fields=True):
    after: Annotated[
        int, Meta(ge=0, lt=1 << 40, description="The last row that is known already; 0 for none")
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000, description="How many rows to look at, at most")] = 500


@_endpoint("GET", f"{_RANKER}/events", "reader")
async def _events(engine: Engine, parameters: Parameters, body: _EventsQuery) -> m.EventsAnswer:
    """What was learnt and changed, in the order of the log."""
    return await views.events_answer(
        await engine.find(parameters["name"]), after=body.after, limit=body.limit
    )


@_endpoint("GET", f"{_RANKER}/dead-letters", "reader")
async def _dead_letters(engine: Engine, parameters: Parameters, body: None) -> m.DeadLettersAnswer:
    """Dead letters: feedback that could not be used."""
    return views.dead_letters_answer(await engine.find(parameters["name"]))


# The OpenAPI description, made from the same table and the same types that serve and check.


_ERRORS = {
    400: "The body cannot be read",
    401: "A key is needed",
    403: "The key's role does not allow this",
    404: "Not found",
    405: "Not with this method",
    408: "The body did not arrive in time",
    409: "The ID is used for something else",
    413: "Too large",
    415: "Not JSON and not msgpack",
    422: "The request is well-formed but not valid",
    429: "Too busy: try again after Retry-After seconds",
    503: "The store cannot write now",
}
_SECTION = re.compile(r"\n+Parameters\n-+\n")
_DOCUMENTED = re.compile(r"^(\w+(?:, \w+)*) : .*\n((?:    .*\n?)+)", re.MULTILINE)
_PLAIN = {
    "/livez": "The process is running",
    "/readyz": "It can rank and write",
    "/metrics": "Numbers for Prometheus",
}


def describe() -> dict[str, Any]:
    """The whole description."""
    types = [m.ErrorAnswer]
    for endpoint in ENDPOINTS:
        request = None if endpoint.method == "GET" else endpoint.request
        types += [one for one in (request, endpoint.answer) if one is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for component in components.values():
        _describe_fields(component)
    schema_of = {repr(one): schema for one, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    for path, summary in _PLAIN.items():
        paths[path] = {
            "get": {
                "summary": summary,
                "operationId": path.strip("/"),
                "security": [],
                "responses": {
                    "200": {
                        "description": summary,
                        "content": {"text/plain": {"schema": {"type": "string"}}},
                    },
                    **{str(code): _error(code) for code in (401, 403, 405, 503)},
                },
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rankloop",
            "version": __version__,
            "description": "Request a list, show it, and report the feedback; the ranker learns from it.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _describe_fields(component: dict[str, Any]) -> None:
    """Let what a docstring says of its fields stand beside them."""
    text, *section = _SECTION.split(inspect.cleandoc(component.get("description", "")), maxsplit=1)
    component["description"] = text
    for names, words in _DOCUMENTED.findall("".join(section)):
        for name in names.split(", "):
            component["properties"][name]["description"] = " ".join(words.split())


def _operation(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    name = endpoint.handle.__name__.strip("_")
    if sum(one.handle is endpoint.handle for one in ENDPOINTS) > 1:
        name += endpoint.path.replace("/", "_")
    told: dict[str, Any] = {
        "summary": endpoint.summary,
        "description": f"Needs the role {endpoint.role} where there are keys.",
        "operationId": name,
        "responses": {
            "200": {"description": "Done", "content": _content(schema_of[repr(endpoint.answer)])},
            **{str(code): _error(code) for code in _ERRORS},
        },
    }
    if endpoint.method == "POST" and endpoint.path == "/v1/rankers":
        told["responses"]["201"] = {
            "description": "Made",
            "content": _content(schema_of[repr(endpoint.answer)]),
        }
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    if endpoint.request is not None and endpoint.method == "GET":
        (schema,) = msgspec.json.schema(endpoint.request)["$defs"].values()
        parameters += [
            {"name": name, "in": "query", "schema": one} for name, one in schema["properties"].items()
        ]
    elif endpoint.request is not None:
        told["requestBody"] = {"required": True, "content": _content(schema_of[repr(endpoint.request)])}
    if parameters:
        told["parameters"] = parameters
    return told


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}, "application/msgpack": {"schema": schema}}


def _error(code: int) -> dict[str, Any]:
    return {
        "description": _ERRORS[code],
        "content": _content({"$ref": "#/components/schemas/ErrorAnswer"}),
    }
