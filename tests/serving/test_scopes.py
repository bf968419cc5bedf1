"""Keys for some rankers only, and quotas of those who hold them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rankloop.cli import app as commands
from rankloop.serving.admission import Limits
from rankloop.serving.auth import Permission, delete_key, make_key, permission, read, write
from rankloop.serving.engine import Engine
from rankloop.serving.http import stream
from rankloop.serving.http.app import App
from rankloop.serving.http.endpoints import ENDPOINTS
from rankloop.serving.stores.postgres import PostgresStore
from tests.serving.in_process import ask
from tests.serving.postgresql import Server
from tests.serving.service import ITEMS, create, play, rank, running

NEW = {"algorithm": "RTop1F", "items": ITEMS, "seed": 1}


def test_a_key_for_some_rankers_reaches_no_other() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            for name in ("acme.home", "other.home", "acme"):
                await create(engine, name)
            key = await make_key(
                engine.store, role="admin", at=1, rankers=["acme.*"], most_rankers=2, rate=1_000.0
            )
            reader = await make_key(engine.store, role="reader", at=1, rankers=["acme.home"])
            everything = await make_key(engine.store, role="admin", at=1)
            await app.access.refresh(engine.store)

            assert (await ask(app, "POST", "/v1/rankers/acme.home/rank", {}, key=key))[0] == 200
            for other in ("other.home", "acme", "nowhere"):
                status, told = await ask(app, "POST", f"/v1/rankers/{other}/rank", {}, key=key)
                assert (status, told["error"]["message"]) == (403, "this key is for acme.* only")
            for path in ("", "/series", "/items", "/decisions", "/snapshots", "/dead-letters"):
                assert (await ask(app, "GET", f"/v1/rankers/acme.home{path}", key=reader))[0] == 200
                assert (await ask(app, "GET", f"/v1/rankers/other.home{path}", key=reader))[0] == 403
            assert (await ask(app, "POST", "/v1/rankers/acme.home/rank", {}, key=reader))[0] == 403
            assert (await ask(app, "DELETE", "/v1/rankers/other.home", key=key))[0] == 403

            listed = (await ask(app, "GET", "/v1/rankers", key=key))[1]
            assert [one["name"] for one in listed["rankers"]] == ["acme.home"]
            assert list((await ask(app, "GET", "/v1/sparks", key=key))[1]["sparks"]) == ["acme.home"]
            assert len((await ask(app, "GET", "/v1/rankers", key=everything))[1]["rankers"]) == 3
            assert (await ask(app, "GET", "/metrics", key=key))[0] == 403
            assert (await ask(app, "GET", "/metrics", key=everything))[0] == 200
            told = (await ask(app, "GET", "/v1/access", key=key))[1]
            assert told == {"role": "admin", "rankers": ["acme.*"], "most_rankers": 2, "rate": 1000.0}

            made = {**NEW, "name": "mine"}
            assert (await ask(app, "POST", "/v1/rankers", made, key=key))[0] == 403
            made = {**NEW, "name": "acme.two"}
            assert (await ask(app, "POST", "/v1/rankers", made, key=key))[0] == 201
            assert (await ask(app, "POST", "/v1/rankers", made, key=key))[0] == 200  # there already, just so
            status, told = await ask(app, "POST", "/v1/rankers", {**NEW, "name": "acme.three"}, key=key)
            assert (status, told["error"]["message"]) == (429, "limit reached: 2 rankers with this key")
            news = app.broadcast.listen(None, Permission("reader", ("acme.home",)))
            assert b'"rankers":1' in await anext(news)
            told = await anext(news)
            assert b"acme.home" in told
            assert b"other.home" not in told

    play(story)


def test_keys_for_the_same_rankers_share_their_rate() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, "acme.home")
            # So slow that no request comes back within this test.
            keys = [
                await make_key(engine.store, role="reader", at=1, rankers=["acme.*"], rate=1e-6)
                for _ in range(2)
            ]
            await app.access.refresh(engine.store)
            found = [(await ask(app, "GET", "/v1/rankers/acme.home", key=key))[0] for key in keys]
            assert found == [200, 429]

    play(story)


def test_a_batch_counts_its_lists_against_the_rate() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, "acme.home")
            key = await make_key(engine.store, role="writer", at=1, rate=50.0)
            await app.access.refresh(engine.store)
            rank = "/v1/rankers/acme.home/rank"
            assert (await ask(app, "POST", rank, [{}] * 40, key=key))[0] == 200
            assert (await ask(app, "POST", rank, [{}] * 400, key=key))[
                0
            ] == 200  # it had some left, and owes now
            status, told = await ask(app, "POST", rank, {}, key=key)
            assert (status, told["error"]["code"]) == (429, "busy")

    play(story)


def test_a_quota_of_rankers_holds_when_several_are_made_at_once() -> None:
    async def story() -> None:
        async with running(limits=Limits(rankers=4)) as engine:
            app = App(engine)
            key = await make_key(engine.store, role="admin", at=1, rankers=["acme.*"], most_rankers=2)
            everything = await make_key(engine.store, role="admin", at=1)
            await app.access.refresh(engine.store)
            for one, names in ((key, "abcde"), (everything, "vwxyz")):
                made = await asyncio.gather(
                    *(ask(app, "POST", "/v1/rankers", {**NEW, "name": f"acme.{n}"}, key=one) for n in names)
                )
                assert sorted(status for status, _ in made) == [201, 201, 429, 429, 429]
            assert len(engine.rankers) == 4

    play(story)


@pytest.mark.parametrize("attempt", range(3))
def test_a_quota_of_rankers_holds_over_replicas(
    postgresql: Server, fresh_schema: Callable[[], str], attempt: int
) -> None:
    async def story() -> None:
        schema = fresh_schema()
        stores = [PostgresStore(postgresql.url, schema=schema) for _ in range(3)]
        async with contextlib.AsyncExitStack() as open_ones:
            apps = []
            for store in stores:
                engine = Engine(store, housekeeping=False)
                await engine.open()
                open_ones.push_async_callback(engine.close)
                apps.append(App(engine))
            key = await make_key(stores[0], role="admin", at=1, rankers=["acme.*"], most_rankers=4)
            for app in apps:
                await app.access.refresh(stores[0])
            made = await asyncio.gather(
                *(
                    ask(app, "POST", "/v1/rankers", {**NEW, "name": f"acme.{i}-{k}"}, key=key)
                    for i in range(4)
                    for k, app in enumerate(apps)
                )
            )
            assert sorted(status for status, _ in made) == [201] * 4 + [429] * 8
            assert len(await stores[0].rankers()) == 4

    asyncio.run(story())


def test_a_key_for_events_reports_and_does_nothing_else() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine)
            await rank(engine, "one")
            key = await make_key(engine.store, role="events", at=1, rankers=["unwind"])
            await app.access.refresh(engine.store)
            about = "/v1/rankers/unwind"
            for path, body in (
                (f"{about}/activate", {"decision_id": "one"}),
                (f"{about}/feedback", {"decision_id": "one", "relevance": [1]}),
                (f"{about}/feedback", [{"decision_id": "one", "relevance": [1]}]),
            ):
                assert (await ask(app, "POST", path, body, key=key))[0] == 200
            for endpoint in ENDPOINTS:
                path = endpoint.path.format(name="unwind", decision_id="one", item="tea")
                if path not in (f"{about}/activate", f"{about}/feedback"):
                    assert (await ask(app, endpoint.method, path, {}, key=key))[0] == 403, path
            for path in ("/metrics", "/v1/stream?ranker=unwind", f"{about}/export"):
                assert (await ask(app, "GET", path, key=key))[0] == 403, path

    play(story)


def test_a_deleted_key_hears_no_more_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_HEARTBEAT", 0.01)

    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, "acme.home")
            key = await make_key(engine.store, role="reader", at=1)
            await app.access.refresh(engine.store)
            listening = asyncio.create_task(ask(app, "GET", "/v1/stream?ranker=acme.home", key=key))
            await asyncio.sleep(0.1)
            assert not listening.done()
            await delete_key(engine.store, key.split("_")[1], at=2)
            await app.access.refresh(engine.store)
            async with asyncio.timeout(20):
                assert (await listening)[0] == 200

    play(story)


def test_what_happens_after_a_key_was_deleted_is_not_told_to_its_holder() -> None:
    async def story() -> None:
        async with running() as engine:
            app = App(engine)
            await create(engine, "acme.home")
            may = True
            news = app.broadcast.listen(None, may=lambda: may)
            assert b"health" in await anext(news)
            assert b"acme.home" in await anext(news)
            waiting = asyncio.ensure_future(anext(news, b"over"))
            await asyncio.sleep(0)
            may = False
            app.broadcast.start()
            await rank(engine, "secret", name="acme.home")
            async with asyncio.timeout(20):
                assert await waiting == b"over"
            await app.broadcast.stop()

    play(story)


@pytest.mark.parametrize(
    "text", ["owner", "writer a b=1", "writer rate=x", "writer rankers=many", "", "admin new=1"]
)
def test_a_permission_that_cannot_be_read_permits_nothing(text: str) -> None:
    found = read(text)
    assert found.role == "reader"
    assert not found.covers("unwind")


def test_permissions_are_read_as_they_were_written() -> None:
    for one in (
        Permission("reader"),
        Permission("writer", ("unwind",)),
        Permission("admin", ("acme.*", "b"), 3, 2.5),
        Permission("admin", (), 7),
    ):
        assert read(write(one)) == one


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"rankers": ["a b"]}, "rankers must be names"),
        ({"rankers": ["a*b"]}, "rankers must be names"),
        ({"rankers": [""]}, "rankers must be names"),
        ({"most_rankers": -1}, "most_rankers must be 0 or more, got -1"),
        ({"rate": -1.0}, "rate must be 0 or more, got -1"),
        ({"role": "owner"}, "role must be"),
    ],
)
def test_wrong_permissions_are_refused(wrong: dict[str, Any], told: str) -> None:
    given = {"role": "writer", "rankers": [], "most_rankers": 0, "rate": 0.0} | wrong
    with pytest.raises(ValueError, match=told):
        permission(**given)


def test_the_command_makes_such_keys(tmp_path: Path) -> None:
    run = CliRunner()
    made = [
        "keys",
        "add",
        "--new-store",
        "--role",
        "writer",
        "--for",
        "acme.*",
        "--rate",
        "5",
        "--data",
        str(tmp_path),
    ]
    assert run.invoke(commands, made).exit_code == 0
    told = run.invoke(commands, ["keys", "list", "--data", str(tmp_path)]).output
    assert "writer acme.* rate=5" in told
