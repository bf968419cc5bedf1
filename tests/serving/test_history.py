"""A log that has lost rows under a running service: no replica goes on from a state that the log has not made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from rankloop.serving.admission import Unavailable
from rankloop.serving.engine import Engine
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import Diverged, StoreError
from rankloop.serving.stores.postgres import PostgresStore
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server
from tests.serving.service import Clock, answer, create, play, rank, rounds


class Forgetful(MemoryStore):
    """A store that replicas share, and that can lose its newest rows."""

    shared = True

    def forget(self, n: int) -> None:
        log = self._logs["unwind"]
        for row in log[-n:]:
            del self._index["unwind", row.kind, row.event_id]
        self._about = {
            about: [row for row in rows if row.seq <= len(log) - n] for about, rows in self._about.items()
        }
        del log[-n:]


async def _replicas(store: Any) -> list[Engine]:
    engines = [Engine(store, clock=Clock(), housekeeping=False) for _ in range(2)]
    await engines[0].open()
    await create(engines[0])
    await engines[1].open()
    await rounds(engines[0], 5)
    for engine in engines:
        await engine.find("unwind")
    return engines


def _hashes(engines: list[Engine]) -> set[str]:
    return {engine.rankers["unwind"].fold.state_hash() for engine in engines}


@pytest.mark.parametrize("grown", [0, 1, 4, 9])
def test_a_replica_that_is_ahead_of_the_log_folds_it_anew(
    grown: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The log loses four rows, and has grown again, by as many or more, when the other replica looks."""

    async def story() -> None:
        store = Forgetful()
        engines = await _replicas(store)
        store.forget(4)
        with caplog.at_level(logging.ERROR, "rankloop.serving"):
            await engines[0].find("unwind")
            for i in range(grown):
                await rank(engines[0], f"new {i}")
            await engines[1].find("unwind")
        assert caplog.text.count("its state is dropped, and the log folded anew") == 2
        assert [engine.rankers["unwind"].fold.applied for engine in engines] == [7 + grown] * 2
        assert len(_hashes(engines)) == 1
        verdict = await verify(store, "unwind")
        assert verdict.holds, verdict.problems
        assert _hashes(engines) == {verdict.state_hash}
        for engine in engines:
            await engine.close()

    play(story)


def test_nothing_is_written_from_a_state_that_the_log_has_not_made() -> None:
    async def story() -> None:
        store = Forgetful()
        engines = await _replicas(store)
        store.forget(4)
        leader = engines[0]
        await leader.housekeeping.hold_leases()
        with pytest.raises(Diverged):
            await leader.housekeeping.snapshot(leader.rankers["unwind"])
        assert await store.snapshots("unwind") == []
        for engine in engines:
            with pytest.raises(Unavailable, match="folded anew, try again"):
                await rank(engine, "drawn from lost rows")
        assert await store.last_seq("unwind") == 7
        for engine in engines:
            shown = await rank(engine, "drawn again")
            assert shown.model_seq == 7
        assert (await answer(engines[1], "drawn again")).learnt
        await engines[0].find("unwind")
        assert len(_hashes(engines)) == 1
        assert (await verify(store, "unwind")).holds
        for engine in engines:
            await engine.close()

    play(story)


def test_feedback_tells_a_replica_that_its_log_is_another_one() -> None:
    async def story() -> None:
        store = Forgetful()
        engines = await _replicas(store)
        store.forget(1)
        for engine in reversed(engines):
            with pytest.raises(Unavailable, match="was folded anew: ask again"):
                await answer(engine, "round 4", 0.0)
            assert engine.rankers["unwind"].fold.applied == 11
            assert (await answer(engine, "round 4", 0.0)).duplicate
        verdict = await verify(store, "unwind")
        assert verdict.holds, verdict.problems
        await engines[0].find("unwind")
        assert _hashes(engines) == {verdict.state_hash}
        for engine in engines:
            await engine.close()

    play(story)


def test_replicas_on_a_database_that_lost_rows(postgresql: Server, fresh_schema: Callable[[], str]) -> None:
    schema = fresh_schema()

    async def story() -> None:
        stores = [PostgresStore(postgresql.url, schema=schema, database_clock=False) for _ in range(2)]
        engines = [Engine(store, clock=Clock(), housekeeping=False) for store in stores]
        for engine in engines:
            await engine.open()
        await create(engines[0])
        await rounds(engines[0], 5)
        await engines[1].find("unwind")
        connection = await asyncpg.connect(postgresql.url)
        await connection.execute(f"SET search_path TO {schema}")
        await connection.execute("DELETE FROM log WHERE seq > 7")
        await connection.execute(
            "UPDATE ranker SET last_seq = 7, link = (SELECT link FROM log WHERE seq = 7 AND ranker = ranker.id)"
        )
        await connection.close()
        leader = engines[0]
        await leader.housekeeping.hold_leases()
        with pytest.raises(Diverged):
            await leader.housekeeping.snapshot(leader.rankers["unwind"])
        with pytest.raises(Unavailable, match="folded anew, try again"):
            await rank(engines[0], "drawn from lost rows")
        await rank(engines[0], "drawn again")
        await engines[1].find("unwind")
        verdict = await verify(stores[0], "unwind")
        assert verdict.holds, verdict.problems
        assert (verdict.rows, _hashes(engines)) == (8, {verdict.state_hash})
        for engine in engines:
            await engine.close()

    play(story)


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_database_that_can_lose_what_it_acknowledged_is_refused(
    postgresql: Server, fresh_schema: Callable[[], str], setting: str
) -> None:
    async def story() -> None:
        try:
            await _set(postgresql.url, f"ALTER SYSTEM SET {setting} = off")
            with pytest.raises(StoreError, match=rf"{setting} = off: .* start with --unsafe-database"):
                await PostgresStore(postgresql.url, schema=fresh_schema()).open()
            allowed = PostgresStore(postgresql.url, schema=fresh_schema(), allow_unsafe=True)
            await allowed.open()
            await allowed.close()
        finally:
            await _set(postgresql.url, f"ALTER SYSTEM RESET {setting}")

    asyncio.run(story())


def test_commits_wait_for_the_disk_whatever_the_database_is_set_to(
    postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    async def story() -> None:
        try:
            await _set(postgresql.url, "ALTER SYSTEM SET synchronous_commit = off")
            store = PostgresStore(postgresql.url, schema=fresh_schema())
            await store.open()
            async with store._pool.acquire() as one:
                assert await one.fetchval("SHOW synchronous_commit") == "on"
            await store.close()
        finally:
            await _set(postgresql.url, "ALTER SYSTEM RESET synchronous_commit")

    asyncio.run(story())


async def _set(url: str, statement: str) -> None:
    """Change a setting of the server, and wait until new connections have it."""
    name, wanted = statement.split()[3], "off" if statement.endswith("off") else "on"
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()
    for _ in range(1_000):
        connection = await asyncpg.connect(url)
        found = await connection.fetchval(f"SHOW {name}")
        await connection.close()
        if found == wanted:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{name} is still {found}")
