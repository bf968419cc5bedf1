"""What a caller without a right to it gets: no body is read for it, and no name that it sends is looked for or kept."""

from __future__ import annotations

from typing import Any

import pytest

from rankloop.serving.auth import make_key
from rankloop.serving.http.app import App
from rankloop.serving.http.endpoints import ENDPOINTS
from tests.serving.in_process import ask
from tests.serving.service import create, play, running

OWN = {"host": "localhost:8000"}
OTHERS = [
    ("GET", "/v1/stream"),
    ("GET", "/v1/stream?ranker=unwind"),
    ("GET", "/v1/rankers/unwind/export"),
    ("GET", "/metrics"),
]


def test_no_body_is_read_without_a_right_to_send_it() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine)
            weak = await make_key(engine.store, role="reader", at=1, rankers=["other"])
            slow = await make_key(engine.store, role="admin", at=1, rate=1e-6)
            await app.access.refresh(engine.store)
            assert (await ask(app, "GET", "/v1/access", key=slow))[0] == 200
            every = [(one.method, one.path) for one in ENDPOINTS]
            for method, path in (*every, *OTHERS):
                path = path.format(name="unwind", decision_id="one", item="tea")
                for key, expected in (("", 401), ("rl_a_b", 401), (weak, 403), (slow, 429)):
                    if key == weak and method == "GET" and "unwind" not in path:
                        continue  # a reader may ask what it may do
                    app._guard._guesses.per_second = 1e9
                    status, error = await ask(app, method, path, key=key, unread=True)
                    assert status == expected, (method, path, key, error)

    play(story)


def test_a_name_that_no_ranker_can_have_is_neither_looked_for_nor_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)

            async def looked(name: str) -> Any:
                raise AssertionError(f"{name!r:.20} was looked for")

            for one in ("find", "at_hand", "find_to_write", "archive"):
                monkeypatch.setattr(engine, one, looked)
            for method, path in [(one.method, one.path) for one in ENDPOINTS if "{name}" in one.path]:
                path = path.format(name="n" * 65, decision_id="one", item="tea")
                status, error = await ask(app, method, path, unread=True)
                assert (status, error["error"]["code"]) == (404, "not_found"), path
                assert len(error["error"]["message"]) < 100

    play(story)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://localhost:1", "sec-fetch-site": "same-site"},
        {"origin": "http://localhost:1"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_a_page_from_another_port_can_post_nothing(headers: dict[str, str]) -> None:
    """Not even what needs no JSON, as a form could."""

    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine)
            for one in ENDPOINTS:
                path = one.path.format(name="unwind", decision_id="one", item="tea")
                for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json"):
                    said = OWN | {"content-type": kind} | headers
                    status, _ = await ask(app, one.method, path, headers=said, unread=True)
                    assert status == 403, (path, kind)
            for kind in (
                "text/plain",
                "application/x-www-form-urlencoded",
                "",
            ):  # from its own page, but no JSON
                said = OWN | {"content-type": kind}
                status, _ = await ask(app, "POST", "/v1/rankers/unwind/feedback", {}, headers=said)
                assert status == 415

    play(story)
