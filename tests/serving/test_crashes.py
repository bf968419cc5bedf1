"""Crashes, a selection of `make torture`; and disks that are full or fail, which need no kill."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from rankloop.serving.admission import Unavailable
from rankloop.serving.api import RankRequest
from rankloop.serving.log.verify import verify
from rankloop.serving.stores import sqlite_file
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving import torture
from tests.serving.postgresql import Server
from tests.serving.process import Service
from tests.serving.service import adds_up, answer, create, play, rank, running


def test_kills_on_sqlite(tmp_path: Path) -> None:
    plan = ["after-commit", "mid-batch", "during-snapshot", "anywhere"]
    killed, ledger, problems = torture.torture_sqlite(tmp_path, plan, seed=3)
    assert problems == []
    assert sum(killed.kills.values()) == len(plan)
    assert len(ledger.lists) > 50


def test_kills_on_postgresql_with_two_replicas(postgresql: Server, fresh_schema: Callable[[], str]) -> None:
    plan = ["after-commit", "while-tailing"]
    killed, ledger, problems = torture.torture_postgresql(postgresql, fresh_schema(), plan, seed=3)
    assert problems == []
    assert sum(killed.kills.values()) == len(plan)
    assert len(ledger.lists) > 10


class _FailingFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int]) -> None:
        self.kind = "main" if flags[0] & apsw.SQLITE_OPEN_MAIN_DB else "other"
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:
        if FailingDisk.fails in ("all", self.kind):
            raise apsw.IOError("the disk is gone")
        super().xSync(flags)


class FailingDisk(apsw.VFS):
    """The usual files, until fsync fails."""

    fails = "none"

    def __init__(self) -> None:
        super().__init__("failing", "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return _FailingFile(name, flags)


def test_after_a_failed_fsync_nothing_is_written_any_more(tmp_path: Path) -> None:
    disk = FailingDisk()

    async def story() -> None:
        FailingDisk.fails = "none"
        async with running(SQLiteStore(tmp_path, vfs="failing")) as engine:
            await create(engine)
            await rank(engine, "before")
            FailingDisk.fails = "all"
            with pytest.raises(Unavailable, match="read-only"):
                await rank(engine, "lost")
            FailingDisk.fails = "none"  # a second try may seem to succeed: it must not be made
            with pytest.raises(Unavailable, match="read-only"):
                await rank(engine, "after")
            with pytest.raises(Unavailable, match="read-only"):
                await answer(engine, "before")
            assert engine.broken
            assert (await engine.rankers["unwind"].decision_state("before")) is not None  # reading goes on
        async with running(SQLiteStore(tmp_path)) as engine:
            await answer(engine, "before")
            await rank(engine, "lost")
            await adds_up(engine)

    play(story)
    disk.unregister()


def test_a_disk_that_fails_while_rows_are_moved_is_not_trusted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are in the write-ahead log; only their way into the database fails: stopping there loses nothing."""
    monkeypatch.setattr(sqlite_file, "EVERY", 4)
    monkeypatch.setattr(sqlite_file, "RESTART_BYTES", 10_000)
    disk = FailingDisk()

    async def story() -> None:
        FailingDisk.fails = "none"
        kept = []
        async with running(SQLiteStore(tmp_path, vfs="failing")) as engine:
            await create(engine)
            FailingDisk.fails = "main"
            with contextlib.suppress(Unavailable):
                for i in range(20):
                    kept.append((await rank(engine, f"d{i}")).decision_id)  # noqa: PERF401 - those before it fails
            assert len(kept) < 20
            FailingDisk.fails = "none"
            with pytest.raises(Unavailable, match="read-only"):
                await rank(engine, "after")
        assert kept
        async with running(SQLiteStore(tmp_path)) as engine:
            assert await engine.store.last_seq("unwind") == 1 + len(kept)
            await adds_up(engine)

    play(story)
    disk.unregister()


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine)
            await rank(engine, "before")
            writer = engine.store._writer
            (pages,) = next(iter(writer.execute("PRAGMA page_count")))
            writer.execute(f"PRAGMA max_page_count = {pages}")
            refused, kept = 0, []
            for i in range(60):
                try:
                    kept.append((await rank(engine, f"d{i}")).decision_id)
                except Unavailable as error:
                    refused += "no room" in error.message
            assert refused == 60 - len(kept) > 0
            assert engine.broken is None
            writer.execute("PRAGMA max_page_count = 1000000")
            await rank(engine, "after")
            rows = await engine.store.read("unwind", after=0, limit=1_000)
            assert [row.event_id for row in rows] == ["unwind", "before", *kept, "after"]
            await adds_up(engine)

    play(story)


def test_connections_that_drop_after_commit_was_sent(
    postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    """The database's side of connections is ended under load: every list is there once, and can be asked for again."""
    schema = fresh_schema()

    async def story() -> None:
        async with running(PostgresStore(postgresql.url, schema=schema), clock=time.time) as engine:
            await create(engine)
            admin = await asyncpg.connect(postgresql.url)
            shown: dict[str, list[str]] = {}

            async def asking(number: int) -> None:
                for i in range(25):
                    one = await engine.rank("unwind", RankRequest(f"d{number}-{i}"))
                    shown[one.decision_id] = one.items

            async def dropping() -> int:
                dropped = 0
                for _ in range(8):
                    await asyncio.sleep(0.05)
                    dropped += await admin.fetchval(
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                        "WHERE application_name = 'rankloop'"
                    )
                return dropped

            *_, dropped = await asyncio.gather(*(asking(number) for number in range(6)), dropping())
            assert dropped
            await admin.close()
            assert await engine.store.last_seq("unwind") == 1 + 6 * 25
            for decision, items in list(shown.items())[::20]:
                again = await rank(engine, decision)
                assert (again.duplicate, again.items) == (True, items)
            await adds_up(engine)

    play(story)


def test_a_holder_that_slept_past_its_lease_writes_nothing(
    postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    """SIGSTOP of who looks after a ranker, another takes over, SIGCONT: the log and the states of both stay one."""
    schema = fresh_schema()
    settings = ["--database", postgresql.url, "--schema", schema, "--snapshot-every", "20"]
    with Service(*settings) as other, Service(*settings) as sleeper:
        sleeper.client().create("tortured", algorithm="RTop1F", items=torture.ITEMS)
        ledger = torture.Ledger()
        for i in range(15):
            ledger.do(sleeper.client(), "rank", {"decision_id": f"a{i}"})
        time.sleep(1.0)  # it has the lease by now
        sleeper.process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 20
        took_over = False
        i = 0
        while not took_over and time.monotonic() < end:
            i += 1
            ledger.do(other.client(retries=3), "rank", {"decision_id": f"b{i}"})
            ledger.do(other.client(retries=3), "feedback", {"decision_id": f"a{i % 15}", "relevance": [1.0]})
            took_over = bool(other.client(retries=3).snapshots("tortured"))  # the sleeper had taken none
            time.sleep(0.1)
        sleeper.process.send_signal(signal.SIGCONT)
        for j in range(40):
            for service in (sleeper, other):
                ledger.do(service.client(retries=3), "rank", {"decision_id": f"c{j}"})
        hashes = [torture._settled(one.client(), other.client()) for one in (sleeper, other)]
        assert took_over
        for service in (sleeper, other):
            service.stop()
    assert torture.check(PostgresStore(postgresql.url, schema=schema), ledger, hashes) == []


def test_two_replicas_are_one_ranker(postgresql: Server, fresh_schema: Callable[[], str]) -> None:
    schema = fresh_schema()

    async def story() -> None:
        stores = [PostgresStore(postgresql.url, schema=schema) for _ in range(2)]
        async with (
            running(stores[0], clock=time.time, housekeeping=True) as one,
            running(stores[1], clock=time.time, housekeeping=True) as other,
        ):
            await create(one)
            for i in range(60):
                shown = await rank((one, other)[i % 2], f"d{i}")
                again = await rank((other, one)[i % 2], f"d{i}")  # a retry that reaches the other replica
                assert (again.duplicate, again.items) == (True, shown.items)
                told = await answer((one, other)[i // 2 % 2], f"d{i}", float(i % 3 == 0))
                assert told.status == "accepted"
            twice = await asyncio.gather(
                *(answer(engine, "d0", 1.0, event_id="twin") for engine in (one, other))
            )
            assert {told.status for told in twice} == {"duplicate"}
            for engine in (one, other):
                await engine.rankers["unwind"].catch_up()
            folds = [engine.rankers["unwind"].fold for engine in (one, other)]
            assert folds[0].rounds == folds[1].rounds == 60
            assert folds[0].state_hash() == folds[1].state_hash()
            verdict = await verify(one.store, "unwind")
            assert verdict.holds, verdict.problems
            assert verdict.state_hash == folds[0].state_hash()

    play(story)


def test_replicas_are_killed_one_after_the_other(postgresql: Server, fresh_schema: Callable[[], str]) -> None:
    """Three replicas under load; who looks after the ranker is killed, another takes over and is killed as well."""
    schema = fresh_schema()
    settings = ["--database", postgresql.url, "--schema", schema, "--snapshot-every", "40"]
    ids, ledger = itertools.count(), torture.Ledger()
    with Service(*settings) as one, Service(*settings) as two, Service(*settings) as three:
        left = {service.url: service for service in (one, two, three)}
        one.client(retries=3).create(torture.NAME, algorithm="RTop1F", items=torture.ITEMS)
        while len(left) > 1:
            torture.under_load(ledger, list(left), 0.5, lambda: False, ids)
            left.pop(next(iter(left))).kill()
            torture.under_load(ledger, list(left), 0.5, lambda: False, ids)
        (last,) = left.values()
        while ledger.open:
            ledger.again(last.client(retries=5))
        hashes = [torture._settled(last.client(retries=5), last.client(retries=5))]
        last.stop()
    assert ledger.lists
    assert torture.check(PostgresStore(postgresql.url, schema=schema), ledger, hashes) == []
