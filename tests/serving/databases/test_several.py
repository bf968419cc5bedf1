"""Rankers on two databases of one server: where they go, what is seen of all, and what is left when one is away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rankloop.serving.errors import Unavailable
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import StoreError
from rankloop.serving.stores.spread import SpreadStore
from tests.serving.databases.cluster import call, create, names_for, play, run, serving, stores
from tests.serving.postgresql import Server


def test_rankers_are_spread_and_seen_together(new_database: Callable[[], str]) -> None:
    urls = [new_database(), new_database()]
    names: list[str] = []

    async def spread() -> None:
        async with serving(urls) as service:
            homes = [names_for(service, 0), names_for(service, 1)]
            names.extend(homes[0] + homes[1])
            assert {await create(service, name) for name in names} == {201}
            assert await create(service, names[0]) == 200  # asked for again
            assert [sorted(engine.rankers) for engine in service.engines] == homes
            for name in names:
                await play(service, name, 2)
            _, told = await call(service, "GET", "/v1/rankers")
            assert {one["name"]: one["rounds"] for one in told["rankers"]} == dict.fromkeys(names, 2)
            assert set((await call(service, "GET", "/v1/sparks"))[1]["sparks"]) == set(names)
            metrics = (await call(service, "GET", "/metrics"))[1]
            assert all(f'rankloop_rounds{{ranker="{name}"}} 2.0' in metrics for name in names)
            assert f"rankloop_events_total {5 * len(names) + 1}.0" in metrics
            assert await call(service, "GET", "/readyz") == (200, "ok\n")
            assert (await call(service, "GET", "/v1/rankers/nobody"))[0] == 404
            assert (await call(service, "POST", "/v1/rankers", {"name": 3}))[0] == 422
        # Another process with the databases in another order finds everything where it is.
        async with serving(urls[::-1]) as service:
            await play(service, names[0], 1, first=2)
            assert await create(service, names[1]) == 200

    run(spread())

    async def look() -> None:
        store = SpreadStore(stores(urls))
        await store.open()
        assert sorted(await store.rankers()) == sorted(names)
        assert await store.problems() == []
        for name in names:
            verdict = await verify(store, name)
            assert verdict.holds, verdict.problems
        await store.close()

    run(look())


def test_one_database_away_leaves_the_others(postgresql: Server, new_database: Callable[[], str]) -> None:
    urls = [new_database(), new_database()]
    name = urls[1].partition("?")[0].rpartition("/")[2]

    def close(*, closed: bool) -> None:
        postgresql.sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {not closed}")
        if closed:
            postgresql.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")

    async def lose_one() -> None:
        async with serving(urls, seconds=3.0) as service:
            here, away = names_for(service, 0, each=1) + names_for(service, 1, each=1)
            assert [await create(service, one) for one in (here, away)] == [201, 201]
            close(closed=True)
            await play(service, here, 2)
            status, told = await call(service, "POST", f"/v1/rankers/{away}/rank", {})
            assert (status, told["error"]["code"]) == (503, "unavailable")
            status, told = await call(service, "GET", "/readyz")
            assert status == 200
            assert "database 2: the database cannot be reached" in told
            _, told = await call(service, "GET", "/v1/rankers")
            assert {one["name"] for one in told["rankers"]} == set(service.engines[0].rankers)
            assert any("database 2" in notice for notice in told["notices"])
            assert (
                'rankloop_database_ready{database="database 2"} 0.0'
                in (await call(service, "GET", "/metrics"))[1]
            )
            status, told = await call(service, "GET", f"/v1/rankers/{away}/snapshots")
            assert status == 503
            # A name that nobody here knows may be there.
            assert (await call(service, "GET", "/v1/rankers/nobody"))[0] == 503
        # A service that starts meanwhile has the rankers of the other database, and takes this one in when it is back.
        async with serving(urls, seconds=3.0) as service:
            await play(service, here, 1, first=2)
            status, told = await call(service, "POST", f"/v1/rankers/{away}/rank", {})
            assert status == 503
            assert "database 2" in told["error"]["message"]
            with pytest.raises(Unavailable, match="before database 2 was there once"):
                await service._directory.claim("new")
            close(closed=False)
            for task in service._opening:
                await task
            await service.folded()
            await play(service, away, 1)

    run(lose_one())


def test_what_is_refused(new_database: Callable[[], str]) -> None:
    url = new_database()

    async def refuse() -> None:
        with pytest.raises(ValueError, match="database 1 and database 2 are the same database"):
            async with serving([url, url + "&application_name=other"]):
                pass
        with pytest.raises(StoreError, match="cannot connect"):
            async with serving([url.replace("spread", "missing"), url]):
                pass

    run(refuse())
