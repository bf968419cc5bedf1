"""What a caller without a right to it gets: no body is read for it, and no name that it sends is looked for or kept."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rankloop.serving.api import RankRequest
from rankloop.serving.auth import Access, Guard, make_key
from rankloop.serving.http.app import App
from rankloop.serving.http.endpoints import ENDPOINTS
from rankloop.serving.ubi import PATHS
from tests.serving.in_process import ask, ask_with_headers
from tests.serving.service import create, play, running

OWN = {"host": "localhost:8000"}
OTHERS = [
    ("GET", "/v1/stream"),
    ("GET", "/v1/stream?ranker=unwind"),
    ("GET", "/v1/rankers/unwind/export"),
    ("GET", "/metrics"),
    *[("POST", f"{path}?ranker=unwind") for path in PATHS],
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
            for method, where in [*((one.method, one.path) for one in ENDPOINTS), *OTHERS[4:]]:
                path = where.format(name="unwind", decision_id="one", item="tea")
                for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json"):
                    said = OWN | {"content-type": kind} | headers
                    status, _ = await ask(app, method, path, headers=said, unread=True)
                    assert status == 403, (path, kind)
            for kind in (
                "text/plain",
                "application/x-www-form-urlencoded",
                "",
            ):  # from its own page, but no JSON
                said = OWN | {"content-type": kind}
                for path in ("/v1/rankers/unwind/rank", "/v1/rankers/unwind/feedback", "/ubi_events"):
                    status, _ = await ask(app, "POST", path, {}, headers=said)
                    beacon = kind == "text/plain" and not path.endswith("/rank")  # as beacons say of JSON
                    assert status == (422 if beacon else 415), path

    play(story)


SHOP = "https://shop.example"


def test_pages_of_allowed_origins_may_call_the_service_and_others_may_not() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine, origins=[SHOP, "http://localhost:3000"])
            await create(engine)
            cross = OWN | {"sec-fetch-site": "cross-site"}
            wanted = {
                "access-control-request-method": "POST",
                "access-control-request-headers": "content-type",
            }
            for origin, status in ((SHOP, 204), ("https://evil.example", 405), ("null", 405)):
                told = await ask_with_headers(
                    app, "OPTIONS", "/v1/rankers/unwind/rank", headers=cross | wanted | {"origin": origin}
                )
                assert told[0] == status
                assert told[2].get("access-control-allow-origin") == (origin if status == 204 else None)
            for origin, status in (
                (SHOP, 200),
                ("https://evil.example", 403),
                ("https://shop.example.evil", 403),
            ):
                said = cross | {"origin": origin}
                told = await ask_with_headers(app, "POST", "/v1/rankers/unwind/rank", {}, headers=said)
                assert (told[0], told[2].get("access-control-allow-origin")) == (
                    status,
                    origin if status == 200 else None,
                )
            said = cross | {"origin": SHOP}  # an error can be read too
            told = await ask_with_headers(app, "POST", "/v1/rankers/other/rank", {}, headers=said)
            assert (told[0], told[2]["access-control-allow-origin"], told[2]["vary"]) == (404, SHOP, "origin")

    play(story)


def test_a_key_in_the_address_reports_events_and_nothing_else() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine, origins=[SHOP])
            await create(engine)
            keys = {
                role: await make_key(engine.store, role=role, at=1, rankers=["unwind"])
                for role in ("events", "writer", "admin", "reader")
            }
            await app.access.refresh(engine.store)
            await engine.rank("unwind", RankRequest("d1"))
            click = {"decision_id": "d1", "clicked": []}
            plain = {
                "content-type": "text/plain;charset=UTF-8",
                "origin": SHOP,
                "sec-fetch-site": "cross-site",
            }

            async def sent(path: str, role: str, body: Any = None, **more: str) -> int:
                address = f"{path}?key={keys[role]}"
                return (await ask(app, "POST", address, body or {}, headers=OWN | plain | more))[0]

            feedback = "/v1/rankers/unwind/feedback"
            assert await sent(feedback, "events", click, origin="https://evil.example") == 403
            assert await sent(feedback, "events", click) == 200
            seen = {"action_name": "impression", "query_id": "d1", "timestamp": 1_717_200_000_000}
            seen["event_attributes"] = {"object": {"object_id": "tea"}}
            assert await sent("/ubi_events", "events", [seen]) == 200
            assert engine.rankers["unwind"].fold.counts.activated == 1
            assert await sent("/v1/rankers/unwind/rank", "events") == 403
            for role in ("writer", "admin", "reader"):
                assert await sent(feedback, role, click) == 403
                assert (await ask(app, "GET", f"/v1/rankers/unwind?key={keys[role]}"))[0] == 403
            assert (await ask(app, "POST", f"{feedback}?key=rl_a_b", click))[0] == 401

    play(story)


@pytest.mark.parametrize("wrong", ["*", "shop.example", "https://shop.example/", "ftp://shop.example", ""])
def test_an_origin_is_written_as_browsers_do(wrong: str) -> None:
    with pytest.raises(
        ValueError, match=f"origin must be as browsers write it.*got {re.escape(repr(wrong))}"
    ):
        Guard(Access(), host="127.0.0.1", origins=[wrong])
