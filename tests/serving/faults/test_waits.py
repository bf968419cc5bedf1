"""Stores that do not answer: a lock of another process, a disk that hangs or is full, a database that hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from rankloop.serving.admission import Limits, Unavailable
from rankloop.serving.engine import Engine
from rankloop.serving.group_commit import GroupCommit
from rankloop.serving.http.app import App
from rankloop.serving.loaded_rankers import Absent
from rankloop.serving.log.records import Entry
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import Appended, Full, StoreError
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from rankloop.serving.stores.sqlite_file import check_version
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server
from tests.serving.service import adds_up, answer, create, play, rank, running


class Flaky(MemoryStore):
    """A store that fails or hangs as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.error: StoreError | None = None
        self.hang = asyncio.Event()
        self.hang.set()

    async def _ask(self) -> None:
        await self.hang.wait()
        if self.error is not None:
            raise self.error

    async def append(self, entries: list[Entry], *, at: int, epoch: int | None = None) -> list[Appended]:
        await self._ask()
        return await super().append(entries, at=at, epoch=epoch)

    async def take_leases(
        self, holder: str, rankers: Any, *, seconds: float, now: float, at_once: bool = False
    ) -> dict[str, int]:
        await self._ask()
        return await super().take_leases(holder, rankers, seconds=seconds, now=now, at_once=at_once)


async def _ready(engine: Engine) -> tuple[int, str]:
    transport = httpx.ASGITransport(App(engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        told = await client.get("/readyz")
        return told.status_code, told.text


def test_a_write_lock_of_another_process_does_not_stop_the_loop(tmp_path: Path) -> None:
    async def story() -> None:
        store = SQLiteStore(tmp_path, busy_seconds=0.4)
        async with running(store) as engine:
            await create(engine)
            other = apsw.Connection(str(store.path))
            other.execute("BEGIN IMMEDIATE")
            turns, asking = 0, asyncio.create_task(rank(engine, "d"))
            while not asking.done():
                await asyncio.sleep(0.01)
                turns += 1
            assert turns > 3  # the loop went on: a wait on it would have left one
            with pytest.raises(Unavailable, match="another process holds the write lock") as refused:
                await asking
            assert refused.value.retry_after == 1
            assert (await _ready(engine))[0] == 503
            other.execute("ROLLBACK")
            assert (await rank(engine, "d")).duplicate is False
            assert (await _ready(engine))[0] == 200
            await adds_up(engine)

    play(story)


def test_a_short_lock_of_another_process_is_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        store = SQLiteStore(tmp_path, busy_seconds=60)
        async with running(store) as engine:
            await create(engine)
            other = apsw.Connection(str(store.path))
            other.execute("BEGIN IMMEDIATE")
            threading.Timer(0.2, lambda: other.execute("ROLLBACK")).start()
            await rank(engine, "d")
            await adds_up(engine)

    play(story)


def test_a_store_that_hangs_ends_the_wait_of_everybody_and_is_not_ready() -> None:
    async def story() -> None:
        store = Flaky()
        async with running(store, limits=Limits(store_seconds=0.2)) as engine:
            await create(engine)
            store.hang.clear()
            asked = [asyncio.create_task(rank(engine, f"d{i}")) for i in range(3)]
            await asyncio.sleep(0.05)
            asked.append(asyncio.create_task(rank(engine, "queued")))
            done = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 30)
            assert all(isinstance(one, Unavailable) for one in done)
            with pytest.raises(Unavailable, match="has not answered"):  # at once
                await rank(engine, "another")
            assert await _ready(engine) == (503, (await _ready(engine))[1])
            store.hang.set()
            async with asyncio.timeout(30):
                while engine.commit.overdue:
                    await asyncio.sleep(0.01)
            assert engine.commit.waiting == 0
            assert (await _ready(engine))[0] == 200
            for name in ("d0", "d1", "d2", "queued"):
                await rank(engine, name)
            assert await store.last_seq("unwind") == 5
            await adds_up(engine)

    play(story)


def test_readiness_tells_of_a_full_disk_and_of_its_end() -> None:
    async def story() -> None:
        store = Flaky()
        async with running(store) as engine:
            await create(engine)
            store.error = Full("no room to write")
            with pytest.raises(Unavailable, match="nothing was written"):
                await rank(engine, "d")
            status, told = await _ready(engine)
            assert (status, "no room to write" in told) == (503, True)
            with pytest.raises(Full):
                await engine.housekeeping.tick()
            assert engine.trouble == "no room to write"
            store.error = None
            await engine.housekeeping.tick()
            assert await _ready(engine) == (200, "ok\n")

    play(story)


def test_a_disk_without_room_is_not_ready_before_anything_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            assert engine.trouble is None
            full = os.statvfs_result((4096, 4096, 10**6, 100, 100, 0, 0, 0, 0, 255))
            monkeypatch.setattr(os, "statvfs", lambda _: full)
            await engine.housekeeping.tick()
            assert "no room" in (engine.trouble or "")

    play(story)


def test_without_its_store_a_ranker_shows_lists_where_its_policy_allows() -> None:
    async def story() -> None:
        store = Flaky()
        async with running(store, limits=Limits(degraded=2)) as engine:
            await create(engine, policy={"degraded": True})
            await create(engine, "strict")
            before = await rank(engine, "before")
            assert not before.degraded
            store.error = StoreError("the database cannot be reached")
            shown = await rank(engine, "d")
            assert (shown.degraded, shown.duplicate) == (True, False)
            assert (await rank(engine, "d")).items == shown.items  # asked again
            await rank(engine, "e")
            with pytest.raises(Unavailable, match="limit reached: 2 lists"):
                await rank(engine, "f")
            with pytest.raises(Unavailable):
                await rank(engine, "d", name="strict")
            with pytest.raises(Unavailable):
                await answer(engine, "before")
            assert "2 lists were shown without the store" in (await _ready(engine))[1]
            store.error = None
            await engine.housekeeping.tick()
            kinds = [row.kind for row in await store.read("unwind", after=0, limit=99)]
            assert kinds == ["config", "decision", "degraded", "degraded"]
            assert (await answer(engine, "d")).status == "parked"  # it cannot be learnt from
            assert (await answer(engine, "before")).learnt
            fold = engine.rankers["unwind"].fold
            assert (fold.counts.degraded, fold.counts.learnt, len(engine.degraded)) == (2, 1, 0)
            await adds_up(engine)

    play(story)


def test_a_batch_that_fails_after_the_wait_was_given_up_hurts_nobody() -> None:
    async def story() -> None:
        gate = asyncio.Event()

        async def write(entries: list[Entry]) -> list[Any]:
            await gate.wait()
            raise StoreError("gone")

        commit = GroupCommit(write, most_waiting=9, seconds=0.05)
        commit.start()
        with pytest.raises(Unavailable):
            await commit.submit([Entry("a", "decision", "d", b"")])
        gate.set()
        async with asyncio.timeout(30):
            while commit.waiting:
                await asyncio.sleep(0.01)
        assert not commit.overdue
        await commit.stop()

    asyncio.run(story())


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    """All processes of the database stand still: connections stay, nothing answers."""
    main = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    children = [
        int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _parent(path) == main
    ]
    _signal((main, *children), signal.SIGSTOP)
    try:
        yield
    finally:
        _signal((main, *children), signal.SIGCONT)


def _signal(processes: Iterable[int], what: signal.Signals) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):  # a worker of the database may have ended since
            os.kill(pid, what)


def _parent(path: Path) -> int:
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_a_database_that_hangs_ends_every_wait_and_is_told(
    postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    async def story() -> None:
        store = PostgresStore(postgresql.url, schema=fresh_schema(), seconds=1.0)
        engine = Engine(store)
        await engine.open()
        try:
            await create(engine, policy={"degraded": True})
            await create(engine, "strict")
            with stopped(postgresql):
                with pytest.raises(Unavailable):
                    await asyncio.wait_for(rank(engine, "d", name="strict"), 60)
                async with asyncio.timeout(60):
                    while engine.trouble is None:
                        await asyncio.sleep(0.05)
                assert (await asyncio.wait_for(rank(engine, "d"), 60)).degraded
                with pytest.raises((Unavailable, StoreError)):
                    await asyncio.wait_for(answer(engine, "unknown"), 60)
            async with asyncio.timeout(60):
                while engine.trouble is not None or len(engine.degraded):
                    await asyncio.sleep(0.05)
            await rank(engine, "d", name="strict")
            assert (await verify(store, "unwind")).holds
            assert [row.kind for row in await store.read("unwind", after=0, limit=9)] == [
                "config",
                "degraded",
            ]
        finally:
            await engine.close()

    play(story)


@pytest.mark.parametrize("version", ["3.7.0", "3.44.5", "3.45.0", "3.50.6", "3.51.0", "3.51.2"])
def test_a_version_that_corrupts_is_refused(version: str) -> None:
    with pytest.raises(StoreError, match=f"SQLite {version} can corrupt"):
        check_version(version)


@pytest.mark.parametrize("version", ["3.44.6", "3.50.7", "3.51.3", "3.53.0", "3.54.1", "4.0.0"])
def test_a_version_with_the_fix_is_taken(version: str) -> None:
    check_version(version)


def test_the_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    async def story() -> None:
        before = os.umask(0o022)
        try:
            (tmp_path / "data").mkdir()
            (tmp_path / "data" / "rankloop.db").touch(0o644)
            async with running(SQLiteStore(tmp_path / "data")) as engine:
                await create(engine)
                rights = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "data").iterdir()}
        finally:
            os.umask(before)
        assert {"rankloop.db", "rankloop.db-wal", "rankloop.db-shm", "owner.lock"} <= set(rights)
        assert set(rights.values()) == {0o600}

    play(story)


def test_readiness_stays_short_however_many_rankers_there_are() -> None:
    async def story() -> None:
        async with running() as engine:
            for i in range(1_000):
                engine.loaded.absent[f"r{i}"] = Absent("quarantined", "its log cannot be read")
            status, told = await _ready(engine)
            assert status == 200
            assert len(told.splitlines()) == 22
            assert "and 980 more" in told

    play(story)
