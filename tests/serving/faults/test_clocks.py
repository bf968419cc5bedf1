"""Clocks that jump forward and back, and clocks of replicas that differ from their database's."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from rankloop.serving.api import ActivateRequest
from rankloop.serving.clock import LogClock
from rankloop.serving.engine import Engine
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server
from tests.serving.service import Clock, adds_up, answer, create, play, rank, running

DAY = 86_400.0


def test_a_list_of_two_days_ahead_does_not_make_the_rest_late() -> None:
    async def story() -> None:
        clock = Clock(1_000 + 2 * DAY)  # started while the clock was wrong
        store = MemoryStore()
        async with running(store, clock=clock) as engine:
            await create(engine)
            await rank(engine, "ahead")
        clock.seconds -= 2 * DAY
        async with running(store, clock=clock) as engine:
            assert (await answer(engine, "ahead")).status == "accepted"
            clock.seconds += 10
            await rank(engine, "after")
            clock.seconds += 100
            assert (await answer(engine, "after")).learnt
            clock.seconds += DAY  # and what is really late stays late
            await rank(engine, "next")
            clock.seconds += DAY + 1
            assert (await answer(engine, "next")).status == "late"
            await adds_up(engine)

    play(story)


@pytest.mark.parametrize("jump", [2 * DAY, -2 * DAY])
def test_a_jump_while_it_runs_is_left_out_and_told(jump: float, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        wall, steady = Clock(10 * DAY), Clock(500.0)

        def passes(seconds: float) -> None:
            wall.seconds += seconds
            steady.seconds += seconds

        async with running(clock=wall, steady=steady) as engine:
            await create(engine, policy={"deadline_seconds": 60})
            await rank(engine, "before")
            wall.seconds += jump
            passes(5)
            with caplog.at_level(logging.WARNING, "rankloop.serving"):
                assert (await answer(engine, "before")).learnt
            assert "the clock of this machine jumped" in caplog.text
            assert (engine.clock.jumps, engine.clock.offset) == (1, jump)
            await rank(engine, "while it is wrong")
            passes(61)
            assert (await answer(engine, "while it is wrong")).status == "late"
            wall.seconds -= jump
            await rank(engine, "when it is right again")
            assert (engine.clock.jumps, engine.clock.offset) == (2, 0.0)
            rows = await engine.store.read("unwind", after=0, limit=99)
            assert rows[-1].at - rows[0].at == 66_000
            await adds_up(engine)

    play(story)


def test_small_corrections_are_followed() -> None:
    wall, steady = Clock(1_000.0), Clock(0.0)
    clock = LogClock(wall, steady)
    for _ in range(1_000):  # a hundredth of a percent slow, corrected all the time
        wall.seconds += 10.001
        steady.seconds += 10.0
        clock.now()
    assert (clock.now(), clock.jumps) == (round(wall.seconds * 1000), 0)


def test_lists_expire_by_the_clock_of_the_log() -> None:
    """The clock is set back by two days while the service is down: lists still expire after their deadline."""

    async def story() -> None:
        clock, store = Clock(1_000 + 2 * DAY), MemoryStore()
        async with running(store, clock=clock) as engine:
            await create(engine, algorithm="FTRLPBM", policy={"deadline_seconds": 60})
            await rank(engine, "d")
            await engine.activate("unwind", ActivateRequest("d"))
        clock.seconds -= 2 * DAY
        async with running(store, clock=clock) as engine:
            await engine.housekeeping.tick()
            clock.seconds += 59
            await engine.housekeeping.tick()
            assert engine.rankers["unwind"].fold.counts.expired == 0
            clock.seconds += 3
            await engine.housekeeping.tick()
            assert engine.rankers["unwind"].fold.counts.expired == 1
            await adds_up(engine)

    play(story)


def test_a_clock_set_back_before_the_start_does_not_block_snapshots(tmp_path: Path) -> None:
    async def story() -> None:
        clock = Clock(10 * DAY)
        async with running(SQLiteStore(tmp_path), clock=clock) as engine:
            await create(engine)
            await rank(engine, "d")
        clock.seconds -= 2 * DAY
        async with running(SQLiteStore(tmp_path), clock=clock) as engine:
            await answer(engine, "d")
            assert await engine.snapshot("unwind") == 3

    play(story)


@pytest.mark.parametrize("skew", [-90.0, 90.0])
def test_a_replica_whose_clock_differs_from_the_database_learns(
    skew: float, postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    async def story() -> None:
        import time

        store = PostgresStore(postgresql.url, schema=fresh_schema())
        engine = Engine(store, clock=lambda: time.time() + skew, housekeeping=False)
        await engine.open()
        try:
            await create(engine, policy={"deadline_seconds": 60})
            await rank(engine, "d")
            await engine.housekeeping.tick()
            assert engine.rankers["unwind"].fold.counts.expired == 0
            assert (await answer(engine, "d")).learnt
        finally:
            await engine.close()

    play(story)


@pytest.mark.parametrize("jump", [2 * DAY, -2 * DAY])
def test_a_jump_of_the_clock_of_the_database_is_left_out_and_told(
    jump: float,
    postgresql: Server,
    fresh_schema: Callable[[], str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        schema = fresh_schema()
        one, other = (
            Engine(PostgresStore(postgresql.url, schema=schema), housekeeping=False) for _ in range(2)
        )
        await one.open()
        await create(one, policy={"deadline_seconds": 3_600})
        await other.open()
        try:
            await rank(one, "before")
            await rank(one, "waits")
            await _set_clock(postgresql, schema, jump)
            assert (await answer(other, "before")).learnt  # the first to notice
            assert (await answer(one, "waits")).learnt
            await rank(one, "after")
            with caplog.at_level(logging.WARNING, "rankloop.serving"):
                for engine in (one, other):
                    await engine.housekeeping.tick()
            assert caplog.text.count("the clock of the database jumped") == 2
            assert f"it is {'+' if jump > 0 else '-'}1" in one.remarks()[0]  # 172,800 s, and some
            assert (one.store.clock_jumps, other.store.clock_jumps) == (1, 1)
            assert one.rankers["unwind"].fold.counts.expired == 0
            await _set_clock(postgresql, schema, 0.0)
            assert (await answer(other, "after")).learnt
            await one.housekeeping.tick()
            assert one.remarks() == []
            rows = await one.store.read("unwind", after=0, limit=99)
            assert rows[-1].at - rows[0].at < 1_800_000
            await one.rankers["unwind"].catch_up()
            await adds_up(one)
        finally:
            await other.close()
            await one.close()

    play(story)


async def _set_clock(server: Server, schema: str, ahead: float) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute(
        f"CREATE OR REPLACE FUNCTION {schema}.clock_of_database() RETURNS bigint LANGUAGE sql AS "
        f"'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + {round(1000 * ahead)}'"
    )
    await connection.close()
