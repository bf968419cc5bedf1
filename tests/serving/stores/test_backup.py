"""Copies of a store, made while it is written to, and put back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.serving.auth import make_key
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.backup import backup, restore
from rankloop.serving.stores.contract import Missing, Store
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server
from tests.serving.service import adds_up, create, play, rounds, running


async def _copy(store: Store, folder: Path) -> None:
    await store.open()
    try:
        await backup(store, folder)
    finally:
        await store.close()


async def _state(store: Store, *, rows: int | None = None) -> str:
    """The state that a store's log replays to."""
    await store.open()
    try:
        assert await store.problems() == []
        verdict = await verify(store, "unwind")
        assert verdict.holds, verdict.problems
        assert rows is None or verdict.rows == rows
        return verdict.state_hash
    finally:
        await store.close()


def _command(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.output


def test_a_copy_is_made_while_the_service_writes(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path / "live")) as engine:
            await create(engine)
            await rounds(engine, 5)
            before = engine.rankers["unwind"].fold.state_hash()
            copying = asyncio.to_thread(
                lambda: asyncio.run(_copy(SQLiteStore(tmp_path / "live", read_only=True), tmp_path / "copy"))
            )
            await asyncio.gather(rounds(engine, 30, first=5), copying)
            await adds_up(engine)
            assert before != engine.rankers["unwind"].fold.state_hash()
        copy = SQLiteStore(tmp_path / "copy", read_only=True)
        await _state(copy)
        async with running(SQLiteStore(tmp_path / "copy")) as engine:
            fold = engine.rankers["unwind"].fold
            assert 5 <= fold.rounds <= 35
            await rounds(engine, 3, first=fold.rounds)
            await adds_up(engine)

    play(story)


def test_commands_copy_and_put_back(tmp_path: Path) -> None:
    live, copy, again = (tmp_path / name for name in ("live", "copy", "again"))

    async def story() -> str:
        async with running(SQLiteStore(live)) as engine:
            await create(engine)
            await rounds(engine, 4)
            await engine.housekeeping.snapshot(engine.rankers["unwind"])
            await make_key(engine.store, role="reader", at=1)
            told = await asyncio.to_thread(_command, "backup", str(copy), "--data", str(live))
            assert told == f"{copy}: 1 ranker, 9 rows, every digest holds\n"
            return engine.rankers["unwind"].fold.state_hash()

    state = asyncio.run(story())
    assert _command("restore", str(copy), "--data", str(again)).startswith(f"{again}: 1 ranker, 9 rows")
    assert asyncio.run(_state(SQLiteStore(again, read_only=True), rows=9)) == state
    assert "reader" in _command("keys", "list", "--data", str(again))
    assert (again / "rankloop.db").stat().st_mode & 0o777 == 0o600
    assert "1 snapshots" in _command("verify", "--data", str(again))
    assert not (tmp_path / "again.partial").exists()
    assert "is not empty" in _command("restore", str(copy), "--data", str(live), code=2)
    assert "is not empty" in _command("backup", str(copy), "--data", str(live), code=2)
    assert "there is no store" in _command("restore", str(tmp_path / "none"), "--data", str(again), code=2)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DELETE FROM log WHERE id & 1099511627775 = 9", "was acknowledged"),
        ("UPDATE log SET at = at + 1 WHERE id & 1099511627775 = 4", "row 4 is not what was written"),
        ("PRAGMA user_version = 4", "format 4 by a newer version"),
    ],
)
def test_a_damaged_copy_is_not_put_back(tmp_path: Path, damage: str, told: str) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path / "live")) as engine:
            await create(engine)
            await rounds(engine, 4)
        await _copy(SQLiteStore(tmp_path / "live", read_only=True), tmp_path / "copy")

    play(story)
    connection = apsw.Connection(str(tmp_path / "copy" / "rankloop.db"))
    connection.execute(damage)
    connection.close()
    assert told in _command("restore", str(tmp_path / "copy"), "--data", str(tmp_path / "new"), code=2)
    assert not (tmp_path / "new").exists()


def test_a_store_in_memory_and_a_missing_copy_are_refused(tmp_path: Path) -> None:
    async def story() -> None:
        with pytest.raises(ValueError, match="in memory cannot be copied"):
            await backup(MemoryStore(), tmp_path / "copy")
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(Missing, match="there is no store in"):
            await restore(tmp_path / "copy", SQLiteStore(tmp_path / "new"))

    play(story)


def test_a_database_goes_into_a_folder_and_a_folder_into_a_database(
    postgresql: Server, fresh_schema: Callable[[], str], tmp_path: Path
) -> None:
    def store(schema: str) -> PostgresStore:
        return PostgresStore(postgresql.url, schema=schema, database_clock=False)

    async def story() -> None:
        first, second = fresh_schema(), fresh_schema()
        async with running(store(first)) as engine:
            await create(engine)
            await create(engine, "old")
            await rounds(engine, 4)
            await engine.housekeeping.snapshot(engine.rankers["unwind"])
            await make_key(engine.store, role="admin", at=1)
            await engine.store.archive("old", at=5)
            state = engine.rankers["unwind"].fold.state_hash()
            await backup(engine.store, tmp_path / "copy")
            await rounds(engine, 1, first=4)
        assert await _state(SQLiteStore(tmp_path / "copy", read_only=True), rows=9) == state
        await restore(tmp_path / "copy", store(second))
        assert await _state(store(second), rows=9) == state
        with pytest.raises(ValueError, match="the database has rankers already"):
            await restore(tmp_path / "copy", store(first))
        async with running(store(second)) as engine:
            assert (await engine.find("unwind")).snapshot_seq == 9
            assert len(await engine.store.keys()) == 2
            await rounds(engine, 2, first=4)
            await create(engine, "newcomer")
            await adds_up(engine)
            await adds_up(engine, "newcomer")
            (archived,) = await engine.store.archived()
            assert (await verify(engine.store, archived)).holds

    play(story)
