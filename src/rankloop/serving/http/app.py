"""The application: Starlette for the routes, but for the calls that come by the thousand, which need no search.

With them the page, and the numbers for Prometheus.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Collection, Iterator
from importlib import resources
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from rankloop.serving import ubi
from rankloop.serving.admission import Forbidden, RequestError
from rankloop.serving.api import ErrorAnswer, ErrorBody
from rankloop.serving.auth import Access, Guard, Permission
from rankloop.serving.engine import Engine
from rankloop.serving.housekeeping import KINDS as ALERTS
from rankloop.serving.http import endpoints
from rankloop.serving.http.stream import EXPORTS, Broadcast
from rankloop.serving.webhooks import HEADER, Webhooks

_CODES = {404: "not_found", 405: "method_not_allowed"}
_REFRESH_SECONDS = 2.0
_PREFIX = "/v1/rankers/"


class App:
    """An ASGI application on an engine. Starting it opens the engine, stopping it closes it."""

    def __init__(self, engine: Engine, *, host: str = "127.0.0.1", origins: Collection[str] = ()) -> None:
        self.engine = engine
        self.access = Access()
        self.broadcast = Broadcast(engine)
        self.webhooks = Webhooks()
        rate = engine.limits.requests_per_second
        self._guard = Guard(self.access, host=host, requests_per_second=rate, origins=origins)
        self._description = msgspec.json.encode(endpoints.describe())
        routes: list[BaseRoute] = []
        self._about_one: dict[str, endpoints.EndpointApp] = {}  # what a POST about one ranker does
        for endpoint in endpoints.ENDPOINTS:
            endpoint_app = endpoints.EndpointApp(endpoint, engine, self._guard)
            path = endpoint.path.replace("{decision_id}", "{decision_id:path}").replace(
                "{item}", "{item:path}"
            )
            routes.append(Route(path, endpoint_app, methods=[endpoint.method]))
            if endpoint.method == "POST" and endpoint.path.startswith(_PREFIX):
                self._about_one[endpoint.path.rpartition("/")[2]] = endpoint_app
        routes += [
            Route("/v1/stream", self._stream),
            Route("/v1/rankers/{name}/export", self._export),
            Route("/v1/rankers/{name}/webhooks/{hook}", self._webhook, methods=["POST"]),
            *[Route(path, self._ubi, methods=["POST"]) for path in ubi.PATHS],
            Route("/livez", self._livez),
            Route("/readyz", self._readyz),
            Route("/metrics", self._metrics),
            Route("/openapi.json", self._openapi),
            *_page_routes(),
        ]
        self._starlette = Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _http_error, RequestError: _request_error},
        )

    async def __call__(
        self, scope: endpoints.Scope, receive: endpoints.Receive, send: endpoints.Send
    ) -> None:
        if scope["type"] == "http" and self._guard.origins:
            headers = dict(scope["headers"])
            if (origin := headers.get(b"origin", b"")) in self._guard.origins:
                send = _allowing(send, origin)
                if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
                    await send({"type": "http.response.start", "status": 204, "headers": _PREFLIGHT})
                    await send({"type": "http.response.body", "body": b""})
                    return
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"].startswith(_PREFIX):
            name, _, action = scope["path"][len(_PREFIX) :].partition("/")
            endpoint = self._about_one.get(action)
            if endpoint is not None:
                await endpoint.serve(scope, receive, send, {"name": name})
                return
        await self._starlette(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        await self.engine.open()
        await self.access.refresh(self.engine.store)
        self.broadcast.start()
        refreshing = asyncio.create_task(self._refresh())
        try:
            yield
        finally:
            refreshing.cancel()
            await self.broadcast.stop()
            await self.engine.close()

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            with contextlib.suppress(Exception):  # a store that cannot be read now keeps the keys as they are
                await self.access.refresh(self.engine.store)

    async def _stream(self, request: Request) -> Response:
        ranker = request.query_params.get("ranker")
        caller = self._may_read(request, ranker)
        if ranker is not None:
            await self.engine.find(ranker)
        headers = endpoints.headers_of(request.scope)
        messages = self.broadcast.listen(
            ranker, caller, lambda: self._guard.still_permits(headers, "reader", ranker)
        )
        first = await anext(messages)  # refused here, before anything is sent

        return StreamingResponse(
            _after(first, messages), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def _export(self, request: Request) -> Response:
        name = request.path_params["name"]
        self._may_read(request, name)
        served = await self.engine.find(name)
        form = request.query_params.get("format", "csv")
        if form not in EXPORTS:
            raise RequestError(f"format must be one of {', '.join(EXPORTS)}, got {form!r}", field="format")
        write, media_type = EXPORTS[form]
        pieces = write(self.engine.store, served.name)
        first = await anext(pieces)  # refused here, before anything is sent
        headers = {
            "content-disposition": f'attachment; filename="export.{form}"',
            "cache-control": "no-store",
        }
        return StreamingResponse(_after(first, pieces), media_type=media_type, headers=headers)

    async def _webhook(self, request: Request) -> Response:
        headers, limits = endpoints.headers_of(request.scope), self.engine.limits
        ranker, name = request.path_params["name"], request.path_params["hook"]
        signature = headers.get(HEADER.encode(), b"").decode("latin-1")
        hook, secret = self.webhooks.find(self.engine, ranker, name, signature)
        body = await endpoints.receive_body(
            headers, request.receive, limits.webhook_bytes, seconds=limits.body_seconds
        )
        answer = await self.webhooks.take(self.engine, hook, secret, signature, body)
        return Response(msgspec.json.encode(answer), media_type="application/json")

    async def _ubi(self, request: Request) -> Response:
        scope, limits = request.scope, self.engine.limits
        headers, named = endpoints.headers_of(scope), request.query_params.get("ranker")
        caller = self._guard.check(headers, "events", peer=endpoints.peer_of(scope), ranker=named)
        endpoints.check_name(named)
        body = await endpoints.receive_body(
            headers, request.receive, limits.body_bytes, seconds=limits.body_seconds
        )
        lines, single = ubi.read_lines(endpoints.form_of(headers).sent, body, limits)
        self._guard.charge(caller, len(lines) - 1)
        own = tuple(name for name in caller.rankers if not name.endswith("*"))
        route = ubi.Route(named, own, lambda name: caller.check("events", name))
        try:
            async with asyncio.timeout(limits.store_seconds):
                answer = await ubi.take(self.engine, lines, route, single=single)
        except Exception as error:
            return await _request_error(
                request, endpoints.as_request_error(error, f"POST {request.url.path}")
            )
        return Response(msgspec.json.encode(answer), media_type="application/json")

    def _may_read(self, request: Request, ranker: str | None = None) -> Permission:
        headers = endpoints.headers_of(request.scope)
        caller = self._guard.check(headers, "reader", peer=endpoints.peer_of(request.scope), ranker=ranker)
        endpoints.check_name(ranker)
        return caller

    def _may_read_all(self, request: Request) -> None:
        if self._may_read(request).rankers:
            raise Forbidden("this is about all rankers, and the key is for some only")

    async def _livez(self, request: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def _readyz(self, request: Request) -> Response:
        why, more = self.engine.trouble, self._remarks(request)
        if why is None:
            return Response("\n".join(["ok", *more, ""]), media_type="text/plain")
        return _error(503, "unavailable", "; ".join([why, *more]), {"retry-after": "1"})

    def _remarks(self, request: Request) -> list[str]:
        """What is not as usual: for readers in words, for others how much there is."""
        found = self.engine.remarks()
        try:
            self._may_read_all(request)
        except RequestError:
            return [f"remarks, for readers: {len(found)}"] if found else []
        return found

    async def _metrics(self, request: Request) -> Response:
        self._may_read_all(request)
        return Response(exposition(self.engine), media_type="text/plain; version=0.0.4")

    async def _openapi(self, request: Request) -> Response:
        return Response(self._description, media_type="application/json")


_PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST, DELETE"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"7200"),
]


def _allowing(send: endpoints.Send, origin: bytes) -> endpoints.Send:
    """The same, telling the browser that pages of this origin may read the answer."""
    told = [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"retry-after"),
        (b"vary", b"origin"),
    ]

    async def send_on(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = message | {"headers": [*message["headers"], *told]}
        await send(message)

    return send_on


async def _after(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for one in others:
        yield one


async def _http_error(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    detail = getattr(error, "detail", str(error))
    return _error(status, _CODES.get(status, "invalid"), detail, getattr(error, "headers", None))


async def _request_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestError):
        raise error
    return _error(error.status, error.code, error.message, endpoints.error_headers(error), error.field)


def _error(status: int, code: str, message: str, headers: Any = None, field: str | None = None) -> Response:
    body = msgspec.json.encode(ErrorAnswer(ErrorBody(code, message, field)))
    return Response(body, status, headers, "application/json")


# The page at `/`, the one about the API at `/docs`, and their files, which use the public API only.

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Nothing from elsewhere, nothing inline, no frames: a name that somebody gave to an item can never become code.
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def _page_routes() -> list[BaseRoute]:
    files = {
        entry.name: (entry.read_bytes(), _KINDS[kind])
        for entry in resources.files("rankloop.serving.dashboard").iterdir()
        if (kind := entry.name.rpartition(".")[2]) in _KINDS
    }
    tags = {
        name: f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"' for name, (body, _) in files.items()
    }

    async def serve(request: Request) -> Response:
        first = "docs.html" if request.url.path == "/docs" else "index.html"
        name = request.path_params.get("file", first)
        if name not in files:
            raise HTTPException(404, "there is no such page")
        (body, kind), headers = files[name], _HEADERS | {"etag": tags[name]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=kind, headers=headers)

    return [Route(path, serve) for path in ("/", "/docs", "/page/{file}")]


# Numbers for Prometheus, gathered on request: serving keeps plain integers at no further cost.


class _Collector:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        engine, commit = self._engine, self._engine.commit
        of_database = "Jumps of the database's clock since the store was made"
        for name, text, value in (
            ("rankloop_commits", "Batches that were made durable", commit.batches),
            ("rankloop_events", "Events that were made durable", commit.events),
            ("rankloop_commit_seconds", "Seconds spent on making batches durable", commit.seconds),
            ("rankloop_clock_jumps", "Jumps of this machine's clock since the start", engine.clock.jumps),
            ("rankloop_database_clock_jumps", of_database, engine.store.clock_jumps),
        ):
            yield CounterMetricFamily(name, text, value=value)
        for name, text, value in (
            ("rankloop_waiting", "Events that wait for the disk", commit.waiting),
            ("rankloop_ready", "Whether it can rank and write", float(engine.trouble is None)),
            ("rankloop_cache_bytes", "Lists at hand, of all rankers", engine.loaded.cache.n_bytes),
            ("rankloop_clock_offset_seconds", "This machine's clock minus the log's", engine.clock.offset),
            (
                "rankloop_degraded_waiting",
                "Lists shown without the store, not logged yet",
                len(engine.degraded),
            ),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        counts = CounterMetricFamily(
            "rankloop_ranker_events", "What happened, by kind", labels=["ranker", "kind"]
        )
        gauges = {
            name: GaugeMetricFamily(f"rankloop_{name}", text, labels=["ranker", *labels])
            for name, text, *labels in (
                ("model_seq", "How far the state has folded the log"),
                ("rounds", "Rounds that the present state has learnt from"),
                ("parked", "Feedback that waits for its decision"),
                ("snapshot_seq", "The seq of the newest snapshot"),
                (
                    "estimate",
                    "Mean value of a shown list, where its bounds say something",
                    "measure",
                    "bound",
                ),
                ("alert", "Whether something is not as it should be", "alert"),
                (
                    "lift",
                    "Mean reward of the ranker's lists less that of the baseline's at the same time",
                    "bound",
                ),
            )
        }
        for served in engine.rankers.values():
            name, fold = served.name, served.fold
            for kind, count in msgspec.structs.asdict(fold.counts).items():
                counts.add_metric([name, kind], count)
            gauges["model_seq"].add_metric([name], fold.applied)
            gauges["rounds"].add_metric([name], fold.rounds)
            gauges["parked"].add_metric([name], sum(map(len, fold.parked.values())) + fold.waiting.n)
            gauges["snapshot_seq"].add_metric([name], served.snapshot_seq)
            for kind in ALERTS:
                gauges["alert"].add_metric([name, kind], (name, kind) in engine.housekeeping.alerts.active)
            intervals: list[tuple[str, list[str], Any]] = [("lift", [], fold.trial.lift())]
            intervals += [("estimate", [one], fold.estimates.value(one)) for one in fold.estimates.measures]
            for family, labels, found in intervals:
                for bound in () if found is None else ("mean", "low", "high"):
                    gauges[family].add_metric([name, *labels, bound], getattr(found, bound))
        yield from (counts, *gauges.values())


def exposition(engine: Engine) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(_Collector(engine))
    text: bytes = generate_latest(registry)
    return text
