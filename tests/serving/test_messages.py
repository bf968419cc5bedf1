"""Messages as JSON lines, and spans around requests and commits."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import propagate
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.serving.http.app import App
from rankloop.serving.messages import JsonLines, start_tracing, tracing
from tests.serving.process import Service
from tests.serving.service import create, play, running


def test_a_message_is_one_json_object() -> None:
    try:
        raise ValueError("no room")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("rankloop.serving", logging.WARNING, "", 1, 'a "%s"\nline', ("b",), info)
    told = JsonLines().format(record)
    assert "\n" not in told
    found = json.loads(told)
    assert (found["level"], found["logger"], found["message"]) == (
        "warning",
        "rankloop.serving",
        'a "b"\nline',
    )
    assert "ValueError: no room" in found["exception"]
    assert found["time"].endswith("+00:00")


def test_a_service_speaks_json(tmp_path: Path) -> None:
    service = Service("--data", str(tmp_path), "--log-format", "json", "--seconds", "0.1")
    out, err = service.process.communicate(timeout=60)
    assert json.loads(out.splitlines()[-1])["message"].startswith("rankloop stopped")
    assert [json.loads(line)["level"] for line in err.splitlines()] == []


def test_traces_without_their_libraries_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    done = CliRunner().invoke(app, ["serve", "--traces"])
    assert done.exit_code == 2
    assert 'needs opentelemetry: pip install "rankloop[traces]"' in done.output


def test_spans_around_requests_and_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(tracing, "tracer", provider.get_tracer("test"))
    monkeypatch.setattr(tracing, "_extract", propagate.extract)

    async def story() -> None:
        async with running() as engine:
            await create(engine)
            spans.clear()
            served = App(engine)
            sent: list[Any] = []

            async def receive() -> Any:
                return {"type": "http.request", "body": b"{}"}

            async def send(message: Any) -> None:
                sent.append(message)

            scope = {
                "type": "http",
                "method": "POST",
                "path": "/v1/rankers/unwind/rank",
                "client": ("127.0.0.1", 1),
                "headers": [
                    (b"host", b"localhost"),
                    (b"content-type", b"application/json"),
                    (b"traceparent", b"00-" + 31 * b"0" + b"a-" + 15 * b"0" + b"b-01"),
                ],
            }
            await served(scope, receive, send)
            assert sent[0]["status"] == 200

    play(story)
    found = {one.name: one for one in spans.get_finished_spans()}
    assert set(found) == {"POST /v1/rankers/{name}/rank", "commit"}
    asked, commit = found["POST /v1/rankers/{name}/rank"], found["commit"]
    assert dict(asked.attributes or {}) == {"rankloop.ranker": "unwind"}
    assert asked.parent is not None
    assert (asked.context.trace_id, asked.parent.span_id) == (10, 11)
    assert dict(commit.attributes or {}) == {"rankloop.events": 1}
    assert asked.start_time <= commit.start_time <= commit.end_time <= asked.end_time  # type: ignore[operator]


def test_tracing_starts_with_an_exporter_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "tracer", None)
    monkeypatch.setattr(tracing, "_extract", None)
    given: list[Any] = []
    monkeypatch.setattr("opentelemetry.trace.set_tracer_provider", given.append)
    start_tracing()
    assert given[0].resource.attributes["service.name"] == "rankloop"
    assert tracing.tracer is not None
    given[0].shutdown()
