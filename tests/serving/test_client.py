"""The client, sync and async alike: against a service that was really started, and against failures made to order."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

from rankloop.serving.client import (
    AsyncClient,
    Client,
    Policy,
    RankloopError,
    Unreachable,
)
from rankloop.serving.client import client as client_module
from tests.serving.process import Service

ITEMS = ["walk", "meditate", "music"]
CALLS = sorted(
    name
    for name, value in vars(Client).items()
    if inspect.isfunction(value) and not name.startswith("_") and name != "close"
)
PATIENT = {"timeout": 120.0}  # a ranker may have to be compiled first
SHOWN = {"decision_id": "a", "items": ITEMS, "propensities": None, "model_seq": 3, "duplicate": False}
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service("--memory") as service:
        yield service


def _async(url: str, name: str, *args: Any, settings: dict[str, Any], **kwargs: Any) -> Any:
    async def go() -> Any:
        async with AsyncClient(url, **settings) as client:
            return await getattr(client, name)(*args, **kwargs)

    return asyncio.run(go())


def _sync(url: str, name: str, *args: Any, settings: dict[str, Any], **kwargs: Any) -> Any:
    with Client(url, **settings) as client:
        return getattr(client, name)(*args, **kwargs)


@pytest.fixture(params=[_sync, _async], ids=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Call:
    """`call(url, method, ..., settings={...})` by a client of either kind, made for it and closed after it."""
    made: Call = request.param
    return made


class Asked:
    """An httpx transport that answers from a list, and remembers the requests."""

    def __init__(self, *given: httpx.Response | Exception) -> None:
        self.given = list(given)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.given.pop(0) if len(self.given) > 1 else self.given[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"transport": httpx.MockTransport(self)} | more


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the clients would have slept."""
    slept: list[float] = []

    async def pause(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("time.sleep", slept.append)
    monkeypatch.setattr("rankloop.serving.client.client.asyncio.sleep", pause)
    return slept


def test_every_call_against_a_real_service(
    service: Service, call: Call, request: pytest.FixtureRequest
) -> None:
    name = f"every.{request.node.callspec.id}"

    def do(method: str, *args: Any, **kwargs: Any) -> Any:
        return call(service.url, method, *args, settings=PATIENT, **kwargs)

    made = do("create", name, algorithm="RTop1F", items=ITEMS, policy={"deadline_seconds": 60}, seed=3)
    assert (made.name, made.policy.deadline_seconds, made.duplicate) == (name, 60.0, False)
    assert do(
        "create", name, algorithm="RTop1F", items=ITEMS, policy={"deadline_seconds": 60}, seed=3
    ).duplicate
    shown = do("rank", name, decision_id="a/b %", context={"hour": 7})
    assert sorted(shown.items) == sorted(ITEMS)
    assert do("rank", name, decision_id="a/b %", context={"hour": 7}).duplicate
    assert do("activate", name, "a/b %").status == "accepted"
    assert do("feedback", name, "a/b %", relevance=[1]).learnt
    assert do("feedback", name, "a/b %", relevance=[1]).status == "duplicate"
    told = do("decision", name, "a/b %")
    assert (told.items, told.context, told.activated, told.answered) == (shown.items, {"hour": 7}, True, True)
    assert [row.kind for row in told.rows] == ["decision", "activate", "feedback"]
    assert told.rows[-1].values == [1.0]
    ids = [do("rank", name).decision_id for _ in range(3)]
    many = do("feedback_many", name, [{"decision_id": one, "relevance": np.array([0.0])} for one in ids])
    assert [one.status for one in many] == ["accepted"] * 3
    seq = do("take_snapshot", name)[-1].seq
    assert do("snapshots", name)[-1].seq == seq
    assert do("change_items", name, add=["swim"], retire=["music"]).status == "accepted"
    assert "swim" in do("ranker", name).current
    assert do("freeze", name).status == "accepted"
    assert do("ranker", name).frozen
    assert do("freeze", name, False).status == "accepted"
    assert do("rollback", name, seq).status == "accepted"
    assert do("ranker", name).rounds == 4
    assert do("reset", name, parameters={"k": 2}).status == "accepted"
    assert (do("ranker", name).rounds, do("ranker", name).parameters["k"]) == (0, 2)
    assert sum(do("series", name).series["learnt"]) == 4
    assert name in [one.name for one in do("rankers")]


def test_candidates_over_the_wire(service: Service, call: Call, request: pytest.FixtureRequest) -> None:
    name = f"some.{request.node.callspec.id}"

    def do(method: str, *args: Any, **kwargs: Any) -> Any:
        return call(service.url, method, *args, settings=PATIENT, **kwargs)

    made = do("create", name, algorithm="RTop1F", items=[*ITEMS, "tea", "nap"], seed=3)
    assert made.candidates == "yes"
    shown = do(
        "rank",
        name,
        decision_id="d",
        items=[*ITEMS, "tea"],
        exclude=["walk"],
        n_positions=3,
        pinned={1: "nap"},
    )
    assert (len(shown.items), shown.items[1]) == (3, "nap")
    assert {shown.items[0], shown.items[2]} <= {"meditate", "music", "tea"}
    assert do("feedback", name, "d", relevance=[1]).learnt
    told = do("decision", name, "d")
    assert (sorted(told.candidates), told.pinned) == (["meditate", "music", "tea"], {"1": "nap"})
    own = [*ITEMS, "tea", "nap"]
    do("create", f"{name}.trial", algorithm="RTop1F", items=own, policy={"apprentice": True}, seed=3)
    assert do("rank", f"{name}.trial", decision_id="d", baseline=own).items == own
    assert do("decision", f"{name}.trial", "d").shown_by == "baseline"
    assert do("feedback", f"{name}.trial", "d", relevance=[1]).status == "accepted"
    why = do("explain", f"{name}.trial", "d").items[0]
    assert (why.item, why.reason, why.words) == (own[0], "baseline", "The application's own list was shown.")
    assert do("promote", f"{name}.trial", 0.5).status == "accepted"
    trial = do("ranker", f"{name}.trial").trial
    assert (trial.live, trial.baseline_lists, trial.baseline_mean, trial.lift) == (0.5, 1, 1.0, None)
    do("create", f"{name}.vs", algorithm="Comparison", parameters={"rankings": ["today", "new"]})
    orders = {"today": own, "new": own[::-1]}
    shown = do("rank", f"{name}.vs", decision_id="d", rankings=orders, unit="session")
    assert do("feedback", f"{name}.vs", "d", clicked=shown.items[:1]).learnt
    assert do("stop", f"{name}.vs").status == "accepted"
    assert do("rank", f"{name}.vs", rankings=orders).items == own
    assert do("promote", f"{name}.vs", ranking="new").status == "accepted"
    compared = do("ranker", f"{name}.vs").comparison
    assert (compared.lists, compared.shown, compared.winner) == (1, "new", None)
    with pytest.raises(RankloopError, match="'golf' is not an item") as refused:
        do("rank", name, items=["golf"])
    assert (refused.value.status, refused.value.field) == (422, "items")
    do("change_items", name, add=["golf"], retire=["walk"])
    assert do("rank", name, items=["golf"]).items == ["golf"]
    whole = do("create", f"{name}.whole", algorithm="RTop1F", items=ITEMS, parameters={"k": 2}, seed=3)
    assert whole.candidates.startswith("with k > 1")


@pytest.mark.parametrize("kind", [list, np.array], ids=["list", "array"])
def test_features_are_packed(service: Service, call: Call, kind: Callable[[Any], Any]) -> None:
    call(service.url, "create", "docs", algorithm="RTopKF", parameters={"n_features": 2}, settings=PATIENT)
    features = kind([[1.0, 0.5], [0.25, 0.0], [0.5, 1e-3]])
    first = call(service.url, "rank", "docs", items=ITEMS, features=features, settings=PATIENT)
    assert sorted(first.items) == sorted(ITEMS)
    again = {
        "decision_id": first.decision_id,
        "items": ITEMS,
        "features": [[1.0, 0.5], [0.25, 0.0], [0.5, 1e-3]],
    }
    assert call(service.url, "rank", "docs", settings=PATIENT, **again).duplicate
    for wrong in ([1.0, 2.0], [[1.0], [2.0, 3.0]], [[1.0, np.inf]], [[1.0, 1e39]]):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            call(service.url, "rank", "docs", items=ITEMS, features=wrong, settings=PATIENT)


def test_mistakes_are_told_with_status_code_and_field(service: Service, call: Call) -> None:
    call(service.url, "create", "mistakes", algorithm="RTop1F", items=ITEMS, seed=1, settings=PATIENT)
    call(service.url, "rank", "mistakes", decision_id="m", settings=PATIENT)
    with pytest.raises(RankloopError, match=r"404 not_found: .*nobody") as caught:
        call(service.url, "ranker", "nobody", settings=PATIENT)
    assert pickle.loads(pickle.dumps(caught.value)).code == "not_found"
    with pytest.raises(RankloopError) as caught:
        call(service.url, "feedback", "mistakes", "m", relevance=[7], settings=PATIENT)
    assert (caught.value.status, caught.value.field) == (422, "relevance")
    assert str(caught.value).endswith("(relevance)")
    with pytest.raises(RankloopError, match="409 conflict"):
        call(service.url, "create", "mistakes", algorithm="FTPL", items=ITEMS, settings=PATIENT)


def test_a_key_is_sent(call: Call) -> None:
    asked = Asked(httpx.Response(200, json=SHOWN))
    call("https://example.org/ranks/", "rank", "unwind", settings=asked.settings(key="secret"))
    (request,) = asked.requests
    assert str(request.url) == "https://example.org/ranks/v1/rankers/unwind/rank"
    assert request.headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_service_is_asked_again_with_the_same_id(call: Call, pauses: list[float], status: int) -> None:
    busy = httpx.Response(status, headers={"Retry-After": "3"}, json={})
    asked = Asked(busy, httpx.ReadTimeout("slow"), httpx.Response(200, json=SHOWN))
    assert call("http://service", "rank", "unwind", settings=asked.settings()).items == ITEMS
    assert pauses == [3.0, 2.0]  # what the service asked for, then at most two seconds
    assert len({json.loads(request.content)["decision_id"] for request in asked.requests}) == 1


def test_other_mistakes_are_not_repeated(call: Call, pauses: list[float]) -> None:
    asked = Asked(httpx.Response(409, json={"error": {"code": "conflict", "message": "taken"}}))
    with pytest.raises(RankloopError, match="409 conflict: taken"):
        call("http://service", "rank", "unwind", settings=asked.settings())
    assert (len(asked.requests), pauses) == (1, [])


def test_it_gives_up(call: Call, pauses: list[float]) -> None:
    error = {"error": {"code": "busy", "message": "the queue is full", "field": None}}
    asked = Asked(httpx.Response(429, json=error))
    with pytest.raises(RankloopError, match="429 busy: the queue is full"):
        call("http://service", "rank", "unwind", settings=asked.settings(retries=3))
    assert pauses == [0.05, 0.1, 0.2]
    assert len(asked.requests) == 4


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (httpx.ReadTimeout("x"), r"^http://service:1 did not answer within 7 seconds$"),
        (httpx.ConnectTimeout("x"), r"^http://service:1 did not answer within 7 seconds$"),
        (httpx.RemoteProtocolError("gone"), r"^http://service:1 broke the connection off: gone$"),
        (httpx.ReadError(""), r"^http://service:1 broke the connection off: ReadError$"),
    ],
)
def test_no_answer_is_told_in_a_sentence(
    call: Call, pauses: list[float], failure: Exception, sentence: str
) -> None:
    asked = Asked(failure)
    with pytest.raises(Unreachable, match=sentence) as caught:
        call("http://service:1", "rank", "unwind", settings=asked.settings(timeout=7.0, retries=2))
    assert (caught.value.status, caught.value.code, len(asked.requests)) == (0, "unreachable", 3)


def test_a_refused_connection_names_the_url(call: Call) -> None:
    with pytest.raises(
        Unreachable, match=r"^http://127\.0\.0\.1:1 cannot be reached: .*Is the service running"
    ):
        call("http://127.0.0.1:1", "rankers", settings={"retries": 0})


@pytest.mark.parametrize(
    "content",
    [b"<html>", b"[]", b'{"decision_id": 1}', b'{"decision_id": "a", "items": "walk"}', b"\xff"],
)
def test_an_answer_that_cannot_be_read(call: Call, content: bytes) -> None:
    asked = Asked(httpx.Response(200, content=content))
    with pytest.raises(
        RankloopError, match=r"http://service/.* did not answer as a rankloop service does"
    ) as caught:
        call("http://service", "rank", "unwind", settings=asked.settings())
    assert (caught.value.status, caught.value.code) == (200, "unreadable")


def test_an_error_of_somebody_between(call: Call) -> None:
    asked = Asked(httpx.Response(404, content=b"<h1>nginx</h1>"))
    with pytest.raises(RankloopError, match="404 unknown: <h1>nginx</h1>"):
        call("http://service", "rank", "unwind", settings=asked.settings())


def test_what_cannot_be_sent_is_refused_here(call: Call) -> None:
    asked = Asked(httpx.Response(200, json=SHOWN))
    with pytest.raises(TypeError, match="JSON cannot hold"):
        call("http://service", "rank", "unwind", context=object(), settings=asked.settings())
    with pytest.raises(ValueError, match=r"relevance must be finite, got \[nan\]"):
        call("http://service", "feedback", "unwind", "a", relevance=[float("nan")], settings=asked.settings())
    many = [{"decision_id": "a", "clicks": [1.0]}, {"decision_id": "b", "clicks": [float("inf")]}]
    with pytest.raises(ValueError, match=r"clicks must be finite, got \[inf\]"):
        call("http://service", "feedback_many", "unwind", many, settings=asked.settings())
    assert asked.requests == []


def test_when_one_address_dies_the_next_is_asked(call: Call, pauses: list[float]) -> None:
    """Without a pause, and never twice in a round; the key goes to the given addresses and nowhere else."""
    urls = ["http://one", "http://two/ranks/"]
    answered = httpx.Response(200, json=SHOWN)
    for failure in (httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.Response(503, json={})):
        asked = Asked(failure, answered)
        assert call(urls, "rank", "unwind", settings=asked.settings(key="secret", retries=0)).items == ITEMS
        assert [str(one.url) for one in asked.requests] == [
            "http://one/v1/rankers/unwind/rank",
            "http://two/ranks/v1/rankers/unwind/rank",
        ]
        assert {one.headers["Authorization"] for one in asked.requests} == {"Bearer secret"}
        assert len({json.loads(one.content)["decision_id"] for one in asked.requests}) == 1
        assert not any(pauses)


def test_all_addresses_are_asked_before_it_pauses_and_before_it_gives_up(
    call: Call, pauses: list[float]
) -> None:
    asked = Asked(httpx.ConnectError("refused"))
    with pytest.raises(Unreachable, match=r"^http://(one|two|three) cannot be reached: refused"):
        call(["http://one", "http://two", "http://three"], "rankers", settings=asked.settings(retries=2))
    assert [one.url.host for one in asked.requests] == ["one", "two", "three"] * 3
    assert [pause for pause in pauses if pause] == [0.05, 0.1]
    busy = Asked(httpx.Response(429, json={}))  # as busy for all: another replica is not asked instead
    with pytest.raises(RankloopError, match="429"):
        call(["http://one", "http://two"], "rankers", settings=busy.settings(retries=1))
    assert [one.url.host for one in busy.requests] == ["one", "one"]


def test_it_stays_with_the_address_that_answered() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        if request.url.host in dead:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json=SHOWN)

    hosts: list[str] = []
    dead = {"one"}
    client = Client(["http://one", "http://two"], transport=httpx.MockTransport(answer))
    for _ in range(3):
        client.rank("unwind")
    assert hosts == ["one", "two", "two", "two"]
    dead.add("two")
    dead.remove("one")
    client.rank("unwind")
    client.rank("unwind")
    assert hosts[4:] == ["two", "one", "one"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_answer_can_send_the_key_elsewhere(call: Call, pauses: list[float], status: int) -> None:
    elsewhere = {"location": "http://evil/v1/rankers/unwind/rank", "x-rankloop-owner": "http://evil"}
    asked = Asked(httpx.Response(status, headers=elsewhere))
    with pytest.raises(RankloopError, match=str(status)):
        call(["http://one", "http://two"], "rank", "unwind", settings=asked.settings(key="secret"))
    named = Asked(httpx.Response(200, headers=elsewhere, json=SHOWN))
    for _ in range(2):
        call("http://one", "rank", "unwind", settings=named.settings(key="secret"))
    assert {one.url.host for one in (*asked.requests, *named.requests)} == {"one"}


@pytest.mark.parametrize("make", [Client, AsyncClient])
def test_arguments_are_checked(make: Callable[..., Any]) -> None:
    for url in ("localhost:8000", "ftp://host", "http://"):
        with pytest.raises(ValueError, match="url must be http"):
            make(url)
        with pytest.raises(ValueError, match="url must be http"):
            make(["http://host", url])
    with pytest.raises(ValueError, match="url must be an address or several, got none"):
        make([])
    for retries in (-1, 1.5, True):
        with pytest.raises(ValueError, match="retries must be"):
            make(retries=retries)
    with pytest.raises(ValueError, match="connections must be"):
        AsyncClient(connections=0)


def test_connections_are_reused(service: Service) -> None:
    with Client(service.url, timeout=60.0) as client:
        for _ in range(10):
            client.rankers()
        assert len(_connections(client)) == 1
        threads = [threading.Thread(target=client.rankers) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1 <= len(_connections(client)) <= 8


def _connections(client: Client | AsyncClient) -> list[Any]:
    transport: Any = client._http._transport
    connections: list[Any] = transport._pool.connections
    return connections


def test_many_at_once_on_few_connections(service: Service) -> None:
    async def many() -> None:
        async with AsyncClient(service.url, timeout=60.0, connections=4) as client:
            await client.create("pages", algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 2})
            shown = await asyncio.gather(*(client.rank("pages", decision_id=f"a{i}") for i in range(50)))
            assert [one.decision_id for one in shown] == [f"a{i}" for i in range(50)]
            assert 1 <= len(_connections(client)) <= 4

    asyncio.run(many())


def test_a_closed_client_holds_no_connection(service: Service) -> None:
    with Client(service.url) as client:
        client.rankers()
    assert client._http.is_closed
    with pytest.raises(RuntimeError, match="closed"):
        client.rankers()


def test_both_kinds_have_the_same_calls() -> None:
    assert len(CALLS) == 25
    for name in CALLS:
        one, other = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.signature(one) == inspect.signature(other)
        assert (one.__doc__, one.__qualname__) == (other.__doc__, f"Client.{name}")
        assert inspect.iscoroutinefunction(other)


def test_an_answer_of_a_later_service_is_understood(call: Call) -> None:
    """Fields that it adds are left out, and words that it adds are taken as they are."""
    told = {"status": "postponed", "seq": 7, "new_in_a_later_version": 1}
    asked = Asked(httpx.Response(200, json=told))
    answer = call("http://service", "feedback", "unwind", "a", clicks=[1], settings=asked.settings())
    assert (answer.status, answer.seq, answer.learnt) == ("postponed", 7, False)
    policy = {"deadline_seconds": 5, "parking_seconds": 1, "late": "perhaps", "answers": "median", "new": 1}
    assert msgspec.convert(policy, Policy).answers == "median"
    story = {"shown_by": "a third", "guard_rail": "bent", "pinned": {"1": "nap"}, "context": None}
    names = {"decision_id": "a", "key": "", "items": [], "rows": [], "candidates": None, "propensities": None}
    flags = dict.fromkeys(("explored", "activated", "answered", "expired"), False)
    numbers = dict.fromkeys(("model_seq", "seq", "at", "deadline", "generation"), 1)
    asked = Asked(httpx.Response(200, json=story | names | flags | numbers))
    decision = call("http://service", "decision", "unwind", "a", settings=asked.settings())
    assert (decision.shown_by, decision.guard_rail, decision.pinned) == ("a third", "bent", {"1": "nap"})


def test_it_needs_neither_numpy_nor_the_service() -> None:
    heavy = ["numpy", "numba", "starlette", "scipy", "rankloop.base", "rankloop.serving.log"]
    code = (
        f"import sys\nfor name in {heavy}: sys.modules[name] = None\n"
        "from rankloop import AsyncClient, Client\n"
        "Client().close()\n"
        "from rankloop.serving.client.calls import rank\n"
        "print(rank('a', features=[[1.0, 2.0]]).path)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("/v1/rankers/a/rank\n", "")


def test_without_httpx_it_names_the_extra() -> None:
    code = "import sys; sys.modules['httpx'] = None\nimport rankloop.serving.client"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "rankloop[client]"' in done.stderr.splitlines()[-1]


def test_plain_http_loads_no_certificates() -> None:
    assert not client_module.Connection("http://a", key=None, timeout=1, retries=0).context.get_ca_certs()
