"""Events of other systems as feedback: signed, mapped by a file, counted once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankloop.serving import webhooks
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.log.records import GATHER_SECONDS
from rankloop.serving.webhooks import Webhooks, sign
from tests.serving.memory_store import MemoryStore
from tests.serving.service import Clock, adds_up, create, play, rank

SECRET = b"0123456789abcdef"
HOOKS = """
[shop]
ranker = "unwind"
secret_file = "secret"
decision_id = "data.list"
event_id = "id"
item = "data.item"

[table]
ranker = "unwind"
secret_file = "secret"
decision_id = "list"
clicks = "clicks"
"""


async def post(
    app: App,
    hook: str,
    event: Any,
    *,
    at: int = 1_000,
    secret: bytes = SECRET,
    signature: bytes | None = None,
) -> tuple[int, Any]:
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    sent: list[Any] = []
    path = f"/v1/rankers/{hook}"
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "client": ("127.0.0.1", 50_000),
        "headers": [(b"rankloop-signature", signature or sign(secret, body, at=at).encode())],
    }

    async def receive() -> Any:
        assert app.webhooks._hooks.get(hook.rpartition("/")[2]), "a body is read for no hook"
        assert signature is None or b"t=1000" in signature, "a body is read without a signature"
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_clock_that_was_wrong_at_the_start_and_is_right_now_is_believed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "hooks.toml").write_text(HOOKS)

    async def story() -> None:
        wall, steady = Clock(), Clock()
        app = App(Engine(MemoryStore(), housekeeping=False, clock=wall, steady=steady))
        app.webhooks.load(tmp_path / "hooks.toml")
        await app.engine.open()
        await create(app.engine, algorithm="FTRLPBM", parameters={"n_positions": 2})
        await rank(app.engine, "one")
        wall.seconds += 1_000_000
        now = int(wall.seconds)
        assert abs(app.engine.now() / 1000 - now) > 900_000  # the log's clock goes on evenly
        status, _ = await post(app, "unwind/webhooks/table", {"list": "one", "clicks": [1, 0]}, at=now)
        assert status == 200
        status, _ = await post(
            app, "unwind/webhooks/table", {"list": "one", "clicks": [1, 0]}, at=now - 1_000_000
        )
        assert status == 401
        await app.engine.close()

    play(story)


def test_signed_events_become_feedback_once(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    (tmp_path / "hooks.toml").write_text(HOOKS)

    async def story() -> None:
        clock = Clock()
        app = App(Engine(MemoryStore(), housekeeping=False, clock=clock))
        app.webhooks.load(tmp_path / "hooks.toml")
        await app.engine.open()
        await create(app.engine, algorithm="FTRLPBM", parameters={"n_positions": 2})
        shown = await rank(app.engine, "one")
        event = {"id": 7, "data": {"list": "one", "item": shown.items[1]}}
        status, told = await post(app, "unwind/webhooks/shop", event)
        assert (status, told["status"], told["learnt"]) == (200, "accepted", False)
        status, told = await post(app, "unwind/webhooks/shop", event)
        assert (status, told["duplicate"]) == (200, True)
        clock.seconds += GATHER_SECONDS + 1  # other clicks on the list might have followed
        await app.engine.housekeeping.tick()
        assert app.engine.rankers["unwind"].fold.counts.learnt == 1
        clock.seconds -= GATHER_SECONDS + 1
        row = await app.engine.store.find("unwind", "feedback", "7")
        assert row is not None
        assert row.decision == "one"

        await rank(app.engine, "two")
        status, told = await post(app, "unwind/webhooks/table", {"list": "two", "clicks": [0, 1]})
        assert (status, told["learnt"]) == (200, True)
        for hook, sent, expected in (
            ("unwind/webhooks/shop", {"id": 8, "data": {"list": "one", "item": "snow"}}, 422),
            ("unwind/webhooks/shop", {"id": 8, "data": {"list": "nowhere", "item": "tea"}}, 404),
            ("unwind/webhooks/shop", {"id": 8, "data": "text"}, 422),
            ("unwind/webhooks/shop", {"id": [8], "data": {"list": "one", "item": "tea"}}, 422),
            ("unwind/webhooks/table", {"list": "two", "clicks": "yes"}, 422),
            ("unwind/webhooks/shop", b"not JSON", 400),
            ("unwind/webhooks/none", event, 404),
            ("other/webhooks/shop", event, 404),
        ):
            assert (await post(app, hook, sent))[0] == expected, sent
        assert (await post(app, "unwind/webhooks/shop", event, secret=b"another secret.."))[0] == 401
        assert (await post(app, "unwind/webhooks/shop", event, at=1))[0] == 401
        for signature in (b"\xff", b"t=1,v1=00", b"t=1000,v1=\xc3\xa9", b"t=1000,v1=\xff\x00", b"t=1000"):
            assert (await post(app, "unwind/webhooks/shop", event, signature=signature))[0] == 401
        # Whoever made up a signature cannot fill the memory with a body.
        made_up = b"t=1000,v1=" + b"0" * 64
        assert (await post(app, "unwind/webhooks/shop", b" " * 100_001, signature=made_up))[0] == 413
        assert (await post(app, "unwind/webhooks/table", {"list": "two", "clicks": [0, 3]}))[0] == 422
        assert app.engine.rankers["unwind"].fold.counts.learnt == 2
        await adds_up(app.engine)
        await app.engine.close()

    play(story)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[a]\nranker = 'unwind'\n", "missing required field"),
        ("nonsense", "webhooks"),
        (HOOKS.replace('clicks = "clicks"', ""), "table must have one of clicks, relevance and item"),
        (HOOKS.replace('"secret"', '"short"'), "must have 16 bytes or more"),
        (HOOKS.replace('"secret"', '"nowhere"'), "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "short").write_bytes(b"short")
    (tmp_path / "hooks.toml").write_text(text)
    with pytest.raises(ValueError, match=told):
        Webhooks().load(tmp_path / "hooks.toml")
    with pytest.raises(ValueError, match="cannot be read"):
        Webhooks().load(tmp_path / "missing.toml")


def test_signatures_are_of_the_body_and_of_the_time() -> None:
    header = webhooks.sign(SECRET, b"{}", at=1_000)
    webhooks.check(SECRET, header, b"{}", now=1_299)
    for secret, sent, body, now in (
        (SECRET, header, b"{ }", 1_000.0),
        (b"another secret..", header, b"{}", 1_000.0),
        (SECRET, header.replace("t=1000", "t=1001"), b"{}", 1_000.0),
        (SECRET, header, b"{}", 1_301.0),
        (SECRET, "", b"{}", 1_000.0),
        (SECRET, "t=1000", b"{}", 1_000.0),
    ):
        with pytest.raises(ValueError, match="signature"):
            webhooks.check(secret, sent, body, now=now)
