"""A ranker that is deleted is archived: its rows stay, its name is free, and nobody else notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.serving.admission import NotFound
from rankloop.serving.engine import Engine
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import Store
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server
from tests.serving.service import Clock, adds_up, answer, create, play, rank, rounds, running


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def make(
    request: pytest.FixtureRequest, tmp_path: Path, fresh_schema: Callable[[], str]
) -> Callable[[], Store]:
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "sqlite":
        return lambda: SQLiteStore(tmp_path)
    url, schema = request.getfixturevalue("postgresql").url, fresh_schema()
    return lambda: PostgresStore(url, schema=schema, database_clock=False)


def test_rows_stay_and_the_name_is_free(make: Callable[[], Store]) -> None:
    async def story() -> None:
        clock = Clock(1_790_000_000.5)
        async with running(make(), clock=clock) as engine:
            await create(engine)
            await rounds(engine, 3)
            await engine.snapshot("unwind")
            told = await engine.archive("unwind")
            assert (told.name, told.archived) == ("unwind", "unwind~20260921T141320.500")
            assert (await engine.store.rankers(), await engine.store.archived()) == ([], [told.archived])
            for call in (rank(engine, "d"), answer(engine, "round 1"), engine.archive("unwind")):
                with pytest.raises(NotFound):
                    await call
            await create(engine, algorithm="FTPL")
            await rank(engine, "d")
            await adds_up(engine)
        async with running(make(), clock=clock) as engine:
            assert (await engine.find("unwind")).fold.config.algorithm == "FTPL"
            verdict = await verify(engine.store, told.archived)
            assert (verdict.holds, verdict.rows, verdict.snapshots) == (True, 7, 1), verdict.problems
            await adds_up(engine)

    play(story)


def test_a_request_for_an_archived_ranker_does_not_spoil_the_batch_of_others() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await create(engine, "other")
            served = engine.rankers["unwind"]
            await engine.archive("unwind")
            engine.rankers["unwind"] = served  # as a request sees it that came just before
            told = await asyncio.gather(
                rank(engine, "d"), rank(engine, "d", name="other"), return_exceptions=True
            )
            assert isinstance(told[0], NotFound)
            assert told[1].decision_id == "d"
            await adds_up(engine, "other")

    play(story)


@pytest.mark.parametrize("rows", [0, 3])
def test_other_replicas_notice(postgresql: Server, fresh_schema: Callable[[], str], rows: int) -> None:
    schema = fresh_schema()

    async def story() -> None:
        engines = [Engine(PostgresStore(postgresql.url, schema=schema)) for _ in range(2)]
        for engine in engines:
            await engine.open()
        try:
            one, other = engines
            await create(one)
            await rank(other, "d")
            await one.archive("unwind")
            await create(one, algorithm="FTPL")
            await rounds(one, rows)  # the new log is as long as the old one, or longer
            assert (await other.find("unwind")).fold.config.algorithm == "FTPL"
            await rank(other, "d")
            assert (await verify(one.store, "unwind")).holds
            await one.archive("unwind")
            with pytest.raises(NotFound):
                await rank(other, "e")
            with pytest.raises(NotFound):
                await other.find("unwind")
            async with asyncio.timeout(60):
                while other.rankers:
                    await asyncio.sleep(0.05)
        finally:
            for engine in engines:
                await engine.close()

    play(story)


def test_the_command_line_archives_and_still_verifies(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine)
            await rank(engine, "d")

    play(story)
    run = CliRunner()
    told = run.invoke(app, ["delete", "unwind", "--data", str(tmp_path)])
    assert told.exit_code == 0, told.output
    name = told.output.split()[-1]
    assert name.startswith("unwind~")
    assert "There are no rankers yet" in run.invoke(app, ["rankers", "--data", str(tmp_path)]).output
    assert f"{name}: adds up" in run.invoke(app, ["verify", name, "--data", str(tmp_path)]).output
    again = run.invoke(app, ["delete", "unwind", "--data", str(tmp_path)])
    assert (again.exit_code, "there is no ranker 'unwind'" in again.output) == (2, True)
