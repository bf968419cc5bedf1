"""Events for webhooks and files: in order, at least once, signed, and from where they stopped."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.serving import signatures
from rankloop.serving.engine import Engine
from rankloop.serving.importing import ImportRequest, ShownList, import_history
from rankloop.serving.schemas import ActivateRequest, FreezeRequest, ItemsRequest
from rankloop.serving.stores.memory import MemoryStore
from rankloop.serving.stores.sqlite import SQLiteStore
from rankloop.serving.streaming import Cursor, LinesFile, Refused, Stream, Webhook
from tests.serving.service import Clock, answer, create, play, rank, running

SECRET = b"0123456789abcdef"


class Receiver:
    """Takes what is posted, after a few failures, and checks signatures."""

    def __init__(self, *failures: int) -> None:
        self.failures = list(failures)
        self.events: list[dict[str, Any]] = []
        self.pauses: list[float] = []
        self.transport = httpx.MockTransport(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        signatures.check(SECRET, request.headers["rankloop-signature"], request.content, now=1_000)
        if self.failures:
            return httpx.Response(self.failures.pop(0), headers={"retry-after": "3"})
        self.events += json.loads(request.content)["events"]
        return httpx.Response(204)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def webhook(self) -> Webhook:
        return Webhook(
            "http://there/hook", SECRET, transport=self.transport, sleep=self.sleep, clock=lambda: 1_000.0
        )


async def happen(engine: Engine, clock: Clock) -> None:
    """Lists with feedback, without, and with feedback that came before; changes of the ranker."""
    await create(engine, algorithm="FTRLPBM", parameters={"n_positions": 2})
    await rank(engine, "a")
    await rank(engine, "unanswered")
    await answer(engine, "a", relevance=None, clicks=[1.0, 0.0])
    await answer(engine, "a", relevance=None, clicks=[1.0, 0.0])  # again
    await answer(engine, "early", relevance=None, clicks=[0.0, 1.0])
    await rank(engine, "early")
    await engine.change_items("unwind", ItemsRequest(add=["swim"]))
    await rank(engine, "silent")
    await engine.activate("unwind", ActivateRequest("silent"))
    clock.seconds += 90_000
    await engine.housekeeping.tick()
    await engine.freeze("unwind", FreezeRequest())
    await rank(engine, "frozen")
    await answer(engine, "frozen", relevance=None, clicks=[1.0, 1.0])
    await engine.freeze("unwind", FreezeRequest(frozen=False))
    await import_history(
        engine,
        "unwind",
        ImportRequest([ShownList(["swim", "tea"], clicks=[1, 0], propensities=[0.5, 0.5])], source="May"),
    )


def test_events_come_in_order_with_what_was_learnt_and_changed(tmp_path: Path) -> None:
    async def story() -> None:
        clock, receiver = Clock(), Receiver()
        async with running(clock=clock) as engine:
            await happen(engine, clock)
            stream = Stream(engine.store, receiver.webhook(), Cursor(tmp_path / "sent"))
            assert await stream.send_new() == len(receiver.events)
            told = receiver.events
            assert [one["seq"] for one in told] == sorted({one["seq"] for one in told})
            assert [one["kind"] for one in told] == [
                *("config", "learnt", "learnt", "items", "learnt", "freeze", "freeze", "import"),
            ]
            learnt = [one for one in told if one["kind"] == "learnt"]
            assert [(one["decision_id"], one["clicks"]) for one in learnt] == [
                ("a", [1.0, 0.0]),
                ("early", [0.0, 1.0]),
                ("silent", [0.0, 0.0]),
            ]
            shown = await rank(engine, "a")
            assert (learnt[0]["items"], learnt[0]["propensities"]) == (shown.items, shown.propensities)
            assert told[3]["add"] == ["swim"]
            assert len(learnt) == engine.rankers["unwind"].fold.counts.learnt
            assert await stream.send_new() == 0

    play(story)


def test_a_restart_goes_on_where_it_stopped_and_another_log_begins_anew(tmp_path: Path) -> None:
    async def story() -> None:
        clock, receiver = Clock(), Receiver()
        async with running(clock=clock) as engine:
            await happen(engine, clock)
            await Stream(engine.store, receiver.webhook(), Cursor(tmp_path / "sent")).send_new()
            before = len(receiver.events)
            await rank(engine, "next")
            await answer(engine, "next", relevance=None, clicks=[0.0, 1.0])
            stream = Stream(engine.store, receiver.webhook(), Cursor(tmp_path / "sent"))
            assert await stream.send_new() == 1
            assert receiver.events[before]["decision_id"] == "next"
            assert receiver.events[before]["items"] == (await rank(engine, "next")).items
            await engine.archive("unwind")
            await create(engine, "unwind")  # the same name, another log
            assert await stream.send_new() == 1
            assert receiver.events[-1]["kind"] == "config"
            assert (receiver.events[-1]["seq"], receiver.events[-1]["algorithm"]) == (1, "RTop1F")
            await engine.archive("unwind")
            await create(engine, "unwind", algorithm="FTPL")
            assert await Stream(engine.store, receiver.webhook(), Cursor(tmp_path / "sent")).send_new() == 1

    play(story)


def test_what_is_not_acknowledged_is_sent_again_and_nothing_is_skipped(tmp_path: Path) -> None:
    async def story() -> None:
        clock, receiver = Clock(), Receiver(503, 429, 500)
        async with running(clock=clock) as engine:
            await happen(engine, clock)
            await Stream(engine.store, receiver.webhook(), Cursor(tmp_path / "sent")).send_new()
            assert len(receiver.events) == 8
            assert receiver.pauses == [3.0, 3.0, 3.0]  # as asked, or longer

            class Dies(LinesFile):
                async def send(self, events: list[dict[str, Any]]) -> None:
                    await super().send(events)
                    raise KeyboardInterrupt  # after it was written, before that is remembered

            cursor, path = tmp_path / "lines.sent", tmp_path / "lines"
            with pytest.raises(KeyboardInterrupt):
                await Stream(engine.store, Dies(path), Cursor(cursor)).send_new()
            await Stream(engine.store, LinesFile(path), Cursor(cursor)).send_new()
            ids = [json.loads(line)["id"] for line in path.read_text().splitlines()]
            assert ids == 2 * [one["id"] for one in receiver.events]

            gone = Receiver(410)
            with pytest.raises(Refused, match="answered 410"):
                await Stream(engine.store, gone.webhook(), Cursor(tmp_path / "gone")).send_new()
            assert not (tmp_path / "gone").exists()

    play(story)


def test_alerts_are_told_when_they_begin_and_when_they_end(tmp_path: Path) -> None:
    async def story() -> None:
        now: list[str] = ["late"]

        async def alerts() -> list[str]:
            return list(now)

        store, receiver = MemoryStore(), Receiver()
        async with running(store):
            for there in (["late"], ["late"], ["late", "feedback"], ["feedback"]):
                now[:] = there
                # A new one each time: what was told survives a restart.
                cursor = Cursor(tmp_path / "sent")
                await Stream(store, receiver.webhook(), cursor, alerts=alerts).send_new()
        assert [(one["sentence"], one["begins"]) for one in receiver.events] == [
            ("late", True),
            ("feedback", True),
            ("late", False),
        ]

    play(story)


def test_the_command_appends_to_a_file_beside_the_service(tmp_path: Path) -> None:
    folder, out = tmp_path / "store", tmp_path / "events.jsonl"

    async def story() -> None:
        clock = Clock()
        async with running(SQLiteStore(folder), clock=clock) as engine:
            await happen(engine, clock)
            run = ["stream", "unwind", "--to", str(out), "--data", str(folder)]
            told = await asyncio.to_thread(CliRunner().invoke, app, run)
            assert "8 events sent" in told.output
            assert "0 events sent" in (await asyncio.to_thread(CliRunner().invoke, app, run)).output
            run[1] = "nobody"
            told = await asyncio.to_thread(CliRunner().invoke, app, run)
            assert (told.exit_code, told.output) == (
                2,
                "error: there is no ranker 'nobody'; there are unwind\n",
            )

    play(story)
    assert len(out.read_text().splitlines()) == 8
    (tmp_path / "broken").write_text("{")
    told = CliRunner().invoke(app, ["stream", "--to", str(out), "--cursor", str(tmp_path / "broken")])
    assert "--cursor" in CliRunner().invoke(app, ["stream"]).output
    assert told.exit_code != 0


def test_signatures_are_of_the_body_and_of_the_time() -> None:
    header = signatures.sign(SECRET, b"{}", at=1_000)
    signatures.check(SECRET, header, b"{}", now=1_299)
    for secret, sent, body, now in (
        (SECRET, header, b"{ }", 1_000.0),
        (b"another secret..", header, b"{}", 1_000.0),
        (SECRET, header.replace("t=1000", "t=1001"), b"{}", 1_000.0),
        (SECRET, header, b"{}", 1_301.0),
        (SECRET, "", b"{}", 1_000.0),
        (SECRET, "t=1000", b"{}", 1_000.0),
    ):
        with pytest.raises(ValueError, match="signature"):
            signatures.check(secret, sent, body, now=now)
