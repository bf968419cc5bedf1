"""Every store keeps the contract, and the checks notice stores that do not."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankloop.serving.log.records import Entry, Row
from rankloop.serving.stores import checks, sqlite, sqlite_file
from rankloop.serving.stores.contract import Appended, Owned, Snapshot, Store
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def make(
    request: pytest.FixtureRequest, tmp_path: Path, fresh_schema: Callable[[], str]
) -> Callable[[], Store]:
    fresh = itertools.count()
    if request.param == "memory":
        return MemoryStore
    if request.param == "sqlite":
        return lambda: SQLiteStore(tmp_path / str(next(fresh)))
    url = request.getfixturevalue("postgresql").url
    return lambda: PostgresStore(url, schema=fresh_schema(), database_clock=False)


def test_store_keeps_the_contract(make: Callable[[], Store]) -> None:
    checks.check_store(make)


def test_sqlite_is_durable(tmp_path: Path) -> None:
    checks.check_durable(lambda: SQLiteStore(tmp_path), lambda _: SQLiteStore(tmp_path))


def test_postgresql_is_durable(postgresql: Server, fresh_schema: Callable[[], str]) -> None:
    schema = fresh_schema()

    def store(_: Store | None = None) -> Store:
        return PostgresStore(postgresql.url, schema=schema, database_clock=False)

    checks.check_durable(store, store)


def test_the_database_keeps_the_time(postgresql: Server, fresh_schema: Callable[[], str]) -> None:
    async def story() -> None:
        store = PostgresStore(postgresql.url, schema=fresh_schema())
        await store.open()
        (made,) = await store.append([Entry("a", "config", "a", b"", b"")], at=5)
        assert abs(made.row.at / 1000 - time.time()) < 60
        await store.close()

    asyncio.run(story())


class _Forgets(MemoryStore):
    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        done = await super().append(entries, at=at, epoch=epoch)
        return [*done[:-1], Appended(Row(1, at, "config", "", b""), True)]


class _LearnsTwice(MemoryStore):
    def _append(self, entry: Entry, at: int) -> Appended:
        self._index.pop((entry.ranker, entry.kind, entry.event_id), None)
        return super()._append(entry, at)


class _Unfenced(MemoryStore):
    async def write_snapshot(self, ranker: str, snapshot: Snapshot, *, keep: int) -> None:
        lease = self._leases[ranker]
        self._leases[ranker] = lease._replace(epoch=snapshot.epoch)
        await super().write_snapshot(ranker, snapshot, keep=keep)
        self._leases[ranker] = lease


class _Generous(MemoryStore):
    shared = True

    async def take_leases(
        self, holder: str, rankers: Any, *, seconds: float, now: float, at_once: bool = False
    ) -> dict[str, int]:
        return await super().take_leases(holder, rankers, seconds=seconds, now=now, at_once=True)


class _LooksAway(MemoryStore):
    shared = True

    async def unattended(self, *, seconds: float, now: float, besides: Any = ()) -> list[str]:
        return []


class _TakesOldLists(MemoryStore):
    shared = True

    def _check_current(self, entry: Entry, drawn_from: int) -> None:
        return


class _LetsAllCreate(MemoryStore):
    shared = True


@pytest.mark.parametrize(
    "faulty", [_Forgets, _LearnsTwice, _Unfenced, _Generous, _LooksAway, _TakesOldLists, _LetsAllCreate]
)
def test_checks_notice(faulty: Callable[[], Store]) -> None:
    with pytest.raises((checks.StoreBroken, AttributeError)):
        checks.check_store(faulty)


def test_a_second_process_is_refused_and_told_why(tmp_path: Path) -> None:
    async def hold(work: Callable[[], Any]) -> Any:
        store = SQLiteStore(tmp_path)
        await store.open()
        try:
            return work()
        finally:
            await store.close()

    code = (
        "import asyncio; from rankloop.serving.stores.sqlite import SQLiteStore; "
        f"asyncio.run(SQLiteStore({str(tmp_path)!r}).open())"
    )

    def second() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    refused = asyncio.run(hold(second))
    assert refused.returncode != 0
    assert "is served by another process already" in refused.stderr
    assert second().returncode == 0  # once the first has let go


def test_two_in_one_process_are_refused_as_well(tmp_path: Path) -> None:
    async def story() -> None:
        store = SQLiteStore(tmp_path)
        await store.open()
        with pytest.raises(Owned):
            await SQLiteStore(tmp_path).open()
        looking = SQLiteStore(tmp_path, read_only=True)
        await looking.open()
        assert await looking.rankers() == []
        await looking.close()
        await store.close()

    asyncio.run(story())


def test_the_write_ahead_log_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "EVERY", 4)
    monkeypatch.setattr(sqlite_file, "MOVE_BYTES", 100_000)
    monkeypatch.setattr(sqlite_file, "RESTART_BYTES", 400_000)

    async def story() -> None:
        store = SQLiteStore(tmp_path)
        await store.open()
        await store.append([Entry("a", "config", "a", b"", b"")], at=1)
        largest = 0
        for i in range(150):
            await store.append([Entry("a", "decision", f"d{i}", b"x" * 20_000, b"")], at=1)
            largest = max(largest, (tmp_path / "rankloop.db-wal").stat().st_size)
        assert largest < 1_500_000  # of three million that were written
        assert await store.last_seq("a") == 151
        assert len(await store.read("a", after=0, limit=1_000)) == 151
        await store.close()

    asyncio.run(story())


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rankloop.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(ValueError, match="is not an SQLite file"):
        asyncio.run(SQLiteStore(tmp_path).open())


def test_a_store_that_is_gone_when_it_is_closed() -> None:
    checks.check_store(sqlite.MemoryStore)
    store = sqlite.MemoryStore()
    asyncio.run(_opened_and_closed(store))
    assert not store.folder.exists()


async def _opened_and_closed(store: sqlite.MemoryStore) -> None:
    await store.open()
    assert (store.folder / "rankloop.db").exists()
    await store.close()
