"""Over the wire: fixed shapes, one error shape, JSON and msgpack, keys and roles, and nothing changed by nonsense."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pytest

from tests.serving.process import Service

JSON = {"Content-Type": "application/json"}
PACKED = {"Content-Type": "application/msgpack"}


class Wire:
    """Requests as bytes, answers as they come."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, Any]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        given = JSON | (headers or {}) if body is not None else headers or {}
        connection.request(method, path, body, given)
        response = connection.getresponse()
        told = response.read()
        connection.close()
        kind = response.headers.get("content-type", "")
        if "json" in kind:
            told = json.loads(told)
        elif "msgpack" in kind:
            told = msgspec.msgpack.decode(told)
        return response.status, told, response.headers


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with Service("--data", str(tmp_path_factory.mktemp("http"))) as service:
        wire = Wire(service.url)
        made = {"name": "unwind", "algorithm": "RTop1F", "items": ["walk", "tea", "nap"]}
        assert wire.ask("POST", "/v1/rankers", made)[0] == 201
        made = {"name": "search", "algorithm": "RTopKF", "parameters": {"n_features": 2}}
        assert wire.ask("POST", "/v1/rankers", made)[0] == 201
        yield wire


def test_the_fixed_shapes(wire: Wire) -> None:
    status, shown, _ = wire.ask("POST", "/v1/rankers/unwind/rank", {"decision_id": "shape"})
    assert status == 200
    assert {"decision_id", "items", "propensities", "model_seq", "duplicate", "degraded"} == set(shown)
    assert (shown["decision_id"], sorted(shown["items"]), shown["duplicate"]) == (
        "shape",
        ["nap", "tea", "walk"],
        False,
    )
    again = wire.ask("POST", "/v1/rankers/unwind/rank", {"decision_id": "shape"})[1]
    assert again == shown | {"duplicate": True}
    status, told, _ = wire.ask(
        "POST", "/v1/rankers/unwind/feedback", {"decision_id": "shape", "relevance": [1]}
    )
    assert (status, told["status"]) == (200, "accepted")
    assert isinstance(told["seq"], int)
    status, told, _ = wire.ask(
        "POST", "/v1/rankers/unwind/feedback", {"decision_id": "shape", "relevance": [1]}
    )
    assert (status, told["status"], told["duplicate"]) == (200, "duplicate", True)
    status, told, _ = wire.ask(
        "POST", "/v1/rankers/unwind/feedback", {"decision_id": "shape", "relevance": [0]}
    )
    assert (status, told["error"]["code"]) == (409, "conflict")
    status, told, _ = wire.ask(
        "POST", "/v1/rankers/unwind/feedback", [{"decision_id": "early", "event_id": "e", "relevance": [1]}]
    )
    assert (status, [one["status"] for one in told]) == (200, ["parked"])
    status, told, _ = wire.ask("GET", "/v1/rankers/unwind")
    assert status == 200
    assert {"name", "algorithm", "rounds", "model_seq", "state_hash", "current"} <= set(told)
    assert (told["name"], told["algorithm"], sorted(told["current"])) == (
        "unwind",
        "RTop1F",
        ["nap", "tea", "walk"],
    )


def test_the_rest_of_the_api(wire: Wire) -> None:
    base = "/v1/rankers/unwind"
    wire.ask("POST", f"{base}/rank", {"decision_id": "whole/story?", "context": {"hour": 3}})
    assert wire.ask("POST", f"{base}/activate", {"decision_id": "whole/story?"})[1]["status"] == "accepted"
    wire.ask("POST", f"{base}/feedback", {"decision_id": "whole/story?", "relevance": [0]})
    status, story, _ = wire.ask("GET", f"{base}/decisions/whole%2Fstory%3F")
    assert status == 200
    assert [row["kind"] for row in story["rows"]] == ["decision", "activate", "feedback"]
    assert (story["activated"], story["answered"], story["context"]) == (True, True, {"hour": 3})
    newest = wire.ask("GET", f"{base}/decisions")[1]["decisions"][0]
    assert (newest["decision_id"], newest["values"]) == ("whole/story?", [0.0])
    assert wire.ask("POST", f"{base}/snapshots")[0] == 200
    seq = wire.ask("GET", f"{base}/snapshots")[1]["snapshots"][-1]["seq"]
    assert wire.ask("POST", f"{base}/rollback", {"to_seq": seq})[1]["status"] == "accepted"
    assert wire.ask("POST", f"{base}/freeze", {})[1]["status"] == "accepted"
    assert wire.ask("GET", base)[1]["frozen"] is True
    assert wire.ask("POST", f"{base}/freeze", {"frozen": False})[0] == 200
    assert wire.ask("POST", f"{base}/items", {"add": ["swim"], "retire": ["nap"]})[0] == 200
    assert sorted(wire.ask("GET", base)[1]["current"]) == ["swim", "tea", "walk"]
    assert wire.ask("POST", f"{base}/items", {"add": ["nap"], "retire": ["swim"]})[0] == 200
    assert {one["name"] for one in wire.ask("GET", "/v1/rankers")[1]["rankers"]} >= {"unwind", "search"}
    series = wire.ask("GET", f"{base}/series")[1]["series"]
    assert len({len(column) for column in series.values()}) == 1
    assert wire.ask("GET", f"{base}/dead-letters")[0] == 200
    assert wire.ask("GET", "/livez")[0] == wire.ask("GET", "/readyz")[0] == wire.ask("GET", "/")[0] == 200
    status, text, _ = wire.ask("GET", "/metrics")
    assert status == 200
    assert b'rankloop_model_seq{ranker="unwind"}' in text
    assert wire.ask("GET", "/openapi.json")[1]["openapi"].startswith("3.")


def test_candidates_in_json_and_in_msgpack(wire: Wire) -> None:
    asked: dict[str, Any] = {"decision_id": "some", "items": ["walk", "tea"], "pinned": {"1": "nap"}}
    status, shown, _ = wire.ask("POST", "/v1/rankers/unwind/rank", asked)
    assert (status, shown["items"][1], shown["duplicate"]) == (200, "nap", False)
    packed = msgspec.msgpack.encode(asked | {"pinned": {1: "nap"}})
    status, again, _ = wire.ask("POST", "/v1/rankers/unwind/rank", packed, PACKED)
    assert (status, again["items"], again["duplicate"]) == (200, shown["items"], True)
    told = wire.ask("GET", "/v1/rankers/unwind/decisions/some")[1]
    assert (sorted(told["candidates"]), told["pinned"]) == (["tea", "walk"], {"1": "nap"})
    for wrong, field in (
        ({"items": ["golf"]}, "items"),
        ({"pinned": {"9": "tea"}}, "pinned"),
        ({"pinned": {"first": "tea"}}, None),
        ({"n_positions": 0}, "n_positions"),
        ({"exclude": ["walk", "tea", "nap"]}, "exclude"),
    ):
        status, told, _ = wire.ask("POST", "/v1/rankers/unwind/rank", wrong)
        assert status == 422, wrong
        if field is not None:
            assert field in (told["error"]["field"] or told["error"]["message"])


def test_an_error_names_the_field_in_the_words_of_the_request(wire: Wire) -> None:
    made = {"name": "unwind", "algorithm": "RTop1F", "items": ["walk", "tea", "nap"]}
    for path, body, status, field, words in (
        ("", {"algorithm": "RTop1F"}, 422, "name", "missing required field"),
        ("", made | {"params": {}}, 422, "params", "unknown field"),
        ("", made | {"policy": {"deadline": 5}}, 422, "policy.deadline", "unknown field"),
        ("", made | {"name": "other", "items": []}, 422, "items", "RTop1F needs items"),
        ("", made | {"items": ["walk", "tea"]}, 409, "name", "ranker 'unwind' is there already"),
        ("/unwind/feedback", [{"relevance": [1]}], 422, "[0].decision_id", "missing required field"),
    ):
        found, told, _ = wire.ask("POST", f"/v1/rankers{path}", body)
        assert (found, told["error"]["field"]) == (status, field), body
        assert words in told["error"]["message"]


def test_msgpack_with_packed_features(wire: Wire) -> None:
    features = np.array([[0.1, 0.2], [0.3, 0.4]], "<f4")
    body = {"decision_id": "packed", "features": {"shape": [2, 2], "data": features.tobytes()}}
    sent = msgspec.msgpack.encode(body)
    status, shown, headers = wire.ask("POST", "/v1/rankers/search/rank", sent, PACKED)
    assert (status, headers["content-type"]) == (200, "application/msgpack")
    assert sorted(shown["items"]) == ["0", "1"]
    same = {"decision_id": "packed", "features": features.tolist()}
    status, shown, headers = wire.ask("POST", "/v1/rankers/search/rank", same)  # the same list, said in JSON
    assert (status, shown["duplicate"], headers["content-type"]) == (200, True, "application/json")
    status, told, _ = wire.ask("GET", "/v1/rankers/search", None, {"Accept": "application/msgpack"})
    assert (status, told["name"], told["current"]) == (200, "search", [])
    status, told, _ = wire.ask("POST", "/v1/rankers/search/rank", b"\xc1", PACKED)
    assert (status, told["error"]["code"]) == (400, "malformed")


def test_the_stream_tells_what_changes(wire: Wire) -> None:
    connection = http.client.HTTPConnection(wire.host, wire.port, timeout=60)
    connection.request("GET", "/v1/stream?ranker=unwind")
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    health = _next_event(response, b"health")
    assert (health["ready"], health["why"]) == (True, None)
    first = _next_event(response)
    wire.ask("POST", "/v1/rankers/unwind/rank", {})
    second = _next_event(response)
    if second["model_seq"] == first["model_seq"]:  # what changed just before may be told once more
        second = _next_event(response)
    assert second["name"] == "unwind"
    assert second["model_seq"] == first["model_seq"] + 1
    connection.close()


def _next_event(response: http.client.HTTPResponse, kind: bytes = b"ranker") -> dict:
    while True:
        line = response.readline()
        if line == b"event: " + kind + b"\n":
            return json.loads(response.readline().removeprefix(b"data: "))


RANK, FEEDBACK = "/v1/rankers/unwind/rank", "/v1/rankers/unwind/feedback"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("POST", RANK, b"{", {}, 400),
        ("POST", RANK, b'{"decision_id": NaN}', {}, 400),
        ("POST", RANK, b"\xff\xfe", {}, 400),
        ("POST", RANK, b'{"context": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", {}, 400),
        ("POST", RANK, b"7", {}, 422),
        ("POST", RANK, {"decision_id": 7}, {}, 422),
        ("POST", RANK, {"decision_id": ""}, {}, 422),
        ("POST", RANK, {"decision_id": "a\u0000b"}, {}, 422),
        ("POST", RANK, {"decision_id": "x" * 129}, {}, 422),
        ("POST", RANK, {"colour": "red"}, {}, 422),
        ("POST", RANK, {"items": ["golf"]}, {}, 422),
        ("POST", RANK, {"features": [[1.0]]}, {}, 422),
        ("POST", RANK, {"context": "x" * 20_000}, {}, 413),
        ("POST", RANK, b"{}", {"Content-Type": "text/plain"}, 415),
        ("POST", RANK, b" " * 9_000_000, {}, 413),
        ("POST", "/v1/rankers/search/rank", {}, {}, 422),
        ("POST", "/v1/rankers/search/rank", {"features": [[1.0, 2.0], [1.0]]}, {}, 422),
        ("POST", "/v1/rankers/search/rank", {"features": [[1.0]]}, {}, 422),
        ("POST", "/v1/rankers/search/rank", {"features": [[1e39, 0.0]]}, {}, 422),
        ("POST", "/v1/rankers/search/rank", {"features": [], "items": []}, {}, 422),
        ("POST", "/v1/rankers/search/rank", {"features": [[1, 2]], "items": ["a", "b"]}, {}, 422),
        ("POST", "/v1/rankers/search/rank", {"features": [[1, 2], [1, 2]], "items": ["a", "a"]}, {}, 422),
        ("POST", "/v1/rankers/search/rank", {"features": {"shape": [-1, 2], "data": ""}}, {}, 422),
        (
            "POST",
            "/v1/rankers/search/rank",
            msgspec.msgpack.encode({"features": [[float("nan"), 0.0]]}),
            PACKED,
            422,
        ),
        ("POST", FEEDBACK, {}, {}, 422),
        ("POST", FEEDBACK, {"decision_id": "known"}, {}, 422),
        ("POST", FEEDBACK, {"decision_id": "known", "relevance": [1, 1]}, {}, 422),
        ("POST", FEEDBACK, {"decision_id": "known", "relevance": [9]}, {}, 422),
        ("POST", FEEDBACK, {"decision_id": "known", "relevance": [-1]}, {}, 422),
        ("POST", FEEDBACK, {"decision_id": "known", "clicks": [1]}, {}, 422),
        ("POST", FEEDBACK, b'{"decision_id": "known", "relevance": [1e999]}', {}, 422),
        (
            "POST",
            FEEDBACK,
            msgspec.msgpack.encode({"decision_id": "known", "relevance": [float("inf")]}),
            PACKED,
            422,
        ),
        ("POST", FEEDBACK, [{"decision_id": "known", "relevance": [1]}] * 1_001, {}, 422),
        ("POST", FEEDBACK, [{"decision_id": "known", "relevance": [1]}, {"decision_id": "known"}], {}, 422),
        ("POST", "/v1/rankers/unwind/activate", {"decision_id": "nobody"}, {}, 404),
        ("POST", "/v1/rankers/unwind/rollback", {"to_seq": 10**9}, {}, 404),
        ("POST", "/v1/rankers/unwind/rollback", {"to_seq": 0}, {}, 422),
        ("POST", "/v1/rankers/unwind/items", {"retire": ["walk", "tea", "nap"]}, {}, 422),
        ("POST", "/v1/rankers/unwind/items", {"add": ["walk"]}, {}, 422),
        ("POST", "/v1/rankers/unwind/reset", {"parameters": {"measure": "ndcg"}}, {}, 422),
        ("POST", "/v1/rankers", {"name": "../etc", "algorithm": "RTop1F", "items": ["a"]}, {}, 422),
        ("POST", "/v1/rankers", {"name": "x", "algorithm": "os.system", "items": ["a"]}, {}, 422),
        (
            "POST",
            "/v1/rankers",
            {"name": "x", "algorithm": "RTopKF", "parameters": {"n_features": 10**12}},
            {},
            422,
        ),
        (
            "POST",
            "/v1/rankers",
            {"name": "x", "algorithm": "FTRLPBM", "items": [f"{i}" for i in range(5000)]},
            {},
            422,
        ),
        ("POST", "/v1/rankers", {"name": "unwind", "algorithm": "FTPL", "items": ["a"]}, {}, 409),
        ("POST", "/v1/rankers", {"name": "x", "algorithm": "RTop1F", "items": ["a"] * 3}, {}, 422),
        (
            "POST",
            "/v1/rankers",
            {"name": "x", "algorithm": "RTop1F", "items": [f"i{i}" for i in range(10_001)]},
            {},
            422,
        ),
        ("GET", "/v1/rankers/nobody", None, {}, 404),
        ("GET", "/v1/rankers/..%2f..%2fetc%2fpasswd", None, {}, 404),
        ("GET", "/v1/rankers/unwind/decisions/nobody", None, {}, 404),
        ("GET", "/../../etc/passwd", None, {}, 404),
        ("GET", "/v1/stream?ranker=nobody", None, {}, 404),
        ("DELETE", "/v1/rankers/nobody", None, {}, 404),
        ("PUT", "/v1/rankers/unwind", None, {}, 405),
        ("GET", "/v1/rankers", None, {"Host": "evil.example"}, 403),
        ("GET", f"/v1/rankers/{'x' * 5_000}", None, {}, 404),
        ("POST", f"/v1/rankers/{'x' * 5_000}/rank", {}, {}, 404),
        ("GET", f"/v1/stream?ranker={'x' * 5_000}", None, {}, 404),
        ("POST", RANK, {}, {"Sec-Fetch-Site": "cross-site"}, 403),
        # A page from another port of this machine: without a body it needs to ask nobody first.
        ("POST", "/v1/rankers/unwind/snapshots", None, {"Sec-Fetch-Site": "same-site"}, 403),
        ("POST", "/v1/rankers/unwind/snapshots", None, {"Origin": "http://127.0.0.1:1"}, 403),
        ("POST", "/v1/rankers/unwind/snapshots", None, {"Origin": "null"}, 403),
        ("POST", RANK, {"items": 7}, {"Accept": "\xe9" * 300, "traceparent": "\xff"}, 422),
        ("POST", "/v1/rankers/unwind/webhooks/shop", {}, {"Rankloop-Signature": "t=1,v1=\xe9"}, 404),
    ],
)
def test_nonsense_gets_a_clean_refusal_and_changes_nothing(
    wire: Wire, method: str, path: str, body: Any, headers: dict[str, str], status: int
) -> None:
    wire.ask("POST", RANK, {"decision_id": "known"})
    before = [wire.ask("GET", f"/v1/rankers/{name}")[1] for name in ("unwind", "search")]
    got, told, _ = wire.ask(method, path, body, headers)
    assert got == status, told
    assert set(told) == {"error"}
    assert {"code", "message", "field"} == set(told["error"])
    after = [wire.ask("GET", f"/v1/rankers/{name}")[1] for name in ("unwind", "search")]
    if status != 409:  # a conflict is logged; it is never learnt
        assert after == before
    assert [one["state_hash"] for one in after] == [one["state_hash"] for one in before]


def test_keys_and_roles(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from rankloop.cli import app

    def keys(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["keys", *arguments, "--data", str(tmp_path)])
        assert result.exit_code == 0, result.output
        return result.output.splitlines()[0]

    made = {role: keys("add", "--role", role, "--new-store") for role in ("reader", "writer", "admin")}
    ranker = {"name": "r", "algorithm": "RTop1F", "items": ["a", "b"]}
    with Service("--data", str(tmp_path)) as service:
        wire = Wire(service.url)

        def ask(method: str, path: str, body: Any, key: str | None) -> int:
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            return wire.ask(method, path, body, headers)[0]

        for path in ("/v1/rankers", "/metrics", "/v1/stream"):
            assert ask("GET", path, None, None) == 401
            assert ask("GET", path, None, "rl_nobody_nothing") == 401
        assert ask("GET", "/livez", None, None) == 200
        for role, allowed in (("reader", 403), ("writer", 403), ("admin", 201)):
            assert ask("POST", "/v1/rankers", ranker, made[role]) == allowed
        for role, allowed in (("reader", 403), ("writer", 200), ("admin", 200)):
            assert ask("POST", "/v1/rankers/r/rank", {}, made[role]) == allowed
        assert ask("GET", "/v1/rankers/r", None, made["reader"]) == 200
        wrong = made["admin"][:-1] + ("A" if made["admin"][-1] != "A" else "B")
        assert ask("GET", "/v1/rankers/r", None, wrong) == 401
        told = service.stop()
    assert not any(secret.rpartition("_")[2] in told for secret in made.values())
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(secret.split("_", 2)[2].encode() in stored for secret in made.values())
    listed = CliRunner().invoke(app, ["keys", "list", "--data", str(tmp_path)]).output
    assert listed.count("\n") == 3
    keys("delete", listed.split()[0])


def test_another_address_needs_keys(tmp_path: Path) -> None:
    with Service("--data", str(tmp_path), "--host", "0.0.0.0") as service:
        assert service.url == ""
        assert "no API keys" in service.process.stderr.read()


def test_an_owned_folder_is_refused(tmp_path: Path) -> None:
    with Service("--data", str(tmp_path)) as first, Service("--data", str(tmp_path)) as second:
        assert first.url
        assert second.url == ""
        assert "is served by another process already" in second.process.stderr.read()
