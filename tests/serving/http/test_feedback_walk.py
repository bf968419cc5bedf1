"""The way of one feedback through the service, traced: what `docs/howto/guarantees.md` says about it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import rankloop
from rankloop.serving.http.app import App
from tests.serving.service import create, play, rank, running

SERVING = str(Path(rankloop.__file__).parent / "serving") + "/"
# Look-ups and small values, not steps of the way; and the places where tests let a process crash.
NO_STEPS = {"confidence.py", "log/decision_state.py", "log/digests.py", "log/records.py", "failpoints.py"}


def test_feedback_is_decoded_once_and_enters_no_file_three_times() -> None:
    entered: dict[FrameType, str] = {}
    called: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(SERVING) or frame in entered:
            return  # a coroutine that goes on is a frame that was there before
        called[frame.f_code.co_qualname] += 1
        if frame.f_back is None or frame.f_back.f_code.co_filename != file:
            entered[frame] = file.removeprefix(SERVING)

    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine)
            await rank(engine, "d")
            sent: list[Any] = []
            body = json.dumps({"decision_id": "d", "relevance": [1.0]}).encode()
            scope = {
                "type": "http",
                "method": "POST",
                "path": "/v1/rankers/unwind/feedback",
                "client": ("127.0.0.1", 50_000),
                "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
            }

            async def receive() -> Any:
                return {"type": "http.request", "body": body, "more_body": False}

            async def send(message: Any) -> None:
                sent.append(message)

            sys.setprofile(watch)
            try:
                await app(scope, receive, send)
            finally:
                sys.setprofile(None)
            assert json.loads(sent[-1]["body"])["learnt"]

    play(story)
    assert called["ServedRanker.feedback_entry"] == 1  # checked in one place
    assert called["EndpointApp._decode"] == 1  # the request
    assert called["read_body"] == 0  # neither to see that it can be read, nor as a row of the log
    assert called["read_decision"] == 0  # the list was at hand when it was drawn
    steps = Counter(file for file in entered.values() if file not in NO_STEPS)
    assert len(steps) <= 16, steps  # with `http/connections.py`, and SQLite's two files instead of one, 18
    assert steps["engine.py"] == 2  # the request comes in, and its batch is written
    assert max(steps.values()) <= 2, steps
    assert len(steps) <= 20, sorted(steps)
