"""A ranker moves from one database to another, under load, with crashes at every step."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.serving.databases import moving
from rankloop.serving.databases.assembly import Assembly
from rankloop.serving.databases.moving import Moved, move
from rankloop.serving.failpoints import PLACES
from rankloop.serving.log.records import Entry
from rankloop.serving.log.verify import Verdict, verify
from rankloop.serving.stores.backup import backup
from rankloop.serving.stores.contract import Missing, Moving, StoreError
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.spread import SpreadStore
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.databases.cluster import call, create, names_for, play, run, serving
from tests.serving.shared_store import Crash

STEPS = [place for place in PLACES if place.startswith("move-")]


def databases(service: Assembly) -> list[PostgresStore]:
    return [engine.store for engine in service.engines if isinstance(engine.store, PostgresStore)]


async def adds_up(service: Assembly, name: str) -> Verdict:
    store = SpreadStore(databases(service))
    verdict = await verify(store, name)
    assert verdict.holds, verdict.problems
    assert await store.problems() == []
    return verdict


async def places(service: Assembly, name: str) -> list[bool | None]:
    """For each database whether the ranker is settled there; None where it is not there."""
    found = [await store.place(name) for store in databases(service)]
    return [None if one is None else not one.leaving for one in found]


def crash_at(monkeypatch: pytest.MonkeyPatch, step: str | None) -> None:
    def reach(place: str) -> None:
        if place == step:
            raise Crash

    monkeypatch.setattr(moving, "reach", reach)


def test_a_crash_at_every_step(new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    urls = [new_database(), new_database()]
    monkeypatch.setattr(moving, "_PAGE", 4)

    async def crash() -> None:
        async with serving(urls) as service:
            (name,) = names_for(service, 0, each=1)
            await create(service, name)
            await play(service, name, 3)
            await service.engines[0].snapshot(name)
            count, at = 3, 0
            for step in STEPS:
                crash_at(monkeypatch, step)
                before = await adds_up(service, name)
                with pytest.raises(Crash):
                    await move(name, databases(service), 1 - at)
                settled = await places(service, name)
                arrived = STEPS.index(step) >= STEPS.index("move-arrived")
                # One database has it, and no other: the old one, frozen or not, and then the new one.
                assert settled[1 - at] is (True if arrived else None)
                assert settled[at] is (None if step == "move-gone" else False if arrived else settled[at])
                frozen = settled[at] is False and not arrived
                status, told = await call(
                    service, "POST", f"/v1/rankers/{name}/rank", {"decision_id": f"{step}-1"}
                )
                assert (status, "on its way" in str(told)) == ((503, True) if frozen else (200, False))
                rows = before.rows + (status == 200)
                crash_at(monkeypatch, None)
                done = await move(name, databases(service), 1 - at)
                after = await adds_up(service, name)
                assert (done.rows, after.rows) == (rows, rows)
                assert after.snapshots == 1
                if frozen:  # nothing was written since
                    assert (after.state_hash, after.learnt) == (before.state_hash, before.learnt)
                at = 1 - at
                assert await places(service, name) == [True if number == at else None for number in (0, 1)]
                await play(service, name, 2, first=count)
                count += 2
            old = databases(service)[1 - at]
            with pytest.raises(Missing):
                await old.append([Entry(name, "config", name, b"", b"")], at=0)

    run(crash())


def test_going_back_and_what_is_refused(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    urls = [new_database(), new_database(), new_database()]

    async def go() -> None:
        async with serving(urls) as service:
            (name,) = names_for(service, 0, each=1)
            parts = databases(service)
            await create(service, name)
            await play(service, name, 2)
            before = await adds_up(service, name)
            crash_at(monkeypatch, "move-copied")
            with pytest.raises(Crash):
                await move(name, parts, 1)
            with pytest.raises(Moving):
                await parts[0].append([Entry(name, "freeze", "f", b"", b"")], at=0)
            with pytest.raises(Missing, match="on its way"):
                await parts[0].archive(name, at=0)
            crash_at(monkeypatch, None)
            assert (await move(name, parts, 0)).copied == 0  # back
            await play(service, name, 1, first=2)
            crash_at(monkeypatch, "move-frozen")
            with pytest.raises(Crash):
                await move(name, parts, 1)
            crash_at(monkeypatch, None)
            await move(name, parts, 2)  # somewhere else instead
            assert await places(service, name) == [None, None, True]
            assert (await adds_up(service, name)).rows == before.rows + 2
            with pytest.raises(Missing, match="there is no ranker 'nobody'"):
                await move("nobody", parts, 1)
            # A run that slept changes nothing after the ranker went back and another run has begun the same move.
            waits, goes_on = asyncio.Event(), asyncio.Event()
            bring = moving._Move._copy_snapshots

            async def slow(self: Any, source: Any) -> None:
                if not waits.is_set():
                    waits.set()
                    await goes_on.wait()
                await bring(self, source)

            monkeypatch.setattr(moving._Move, "_copy_snapshots", slow)
            sleeper = asyncio.create_task(move(name, parts, 0))
            await waits.wait()
            await move(name, parts, 2)
            crash_at(monkeypatch, "move-copying")
            with pytest.raises(Crash):
                await move(name, parts, 0)
            crash_at(monkeypatch, None)
            goes_on.set()
            with pytest.raises(StoreError, match="another command moves"):
                await sleeper
            assert await places(service, name) == [None, None, True]
            await move(name, parts, 1)
            await adds_up(service, name)
            # A copy of its new database has the same digests, and nothing of what has gone from the others.
            for number, count in ((1, 1), (2, 0)):
                await backup(parts[number], tmp_path / str(number))
                copy = SQLiteStore(tmp_path / str(number), read_only=True)
                await copy.open()
                assert len(await copy.rankers()) == count
                assert await copy.problems() == []
                if count:
                    verdict = await verify(copy, name)
                    assert verdict.holds, verdict.problems
                    assert verdict.state_hash == (await adds_up(service, name)).state_hash
                await copy.close()
            # Put away in its new place, the name is made there again.
            assert (await call(service, "DELETE", f"/v1/rankers/{name}"))[0] == 200
            assert await create(service, name) == 201
            assert await places(service, name) == [None, True, None]

    run(go())


def test_under_load_with_two_replicas(new_database: Callable[[], str]) -> None:
    urls = [new_database(), new_database()]

    async def load() -> None:
        async with serving(urls, housekeeping=True) as one, serving(urls, housekeeping=True) as two:
            (name,) = names_for(one, 0, each=1)
            await create(one, name)
            refused = 0

            async def ask(service: Assembly, decision: str) -> None:
                """As a client does: again, for as long as it is told to."""
                nonlocal refused
                for action, body in (
                    ("rank", {"decision_id": decision}),
                    ("feedback", {"decision_id": decision, "relevance": [1.0]}),
                ):
                    while True:
                        status, told = await call(service, "POST", f"/v1/rankers/{name}/{action}", body)
                        if status == 200:
                            break
                        assert status == 503, told
                        refused += 1
                        await asyncio.sleep(0.02)

            async def visit(service: Assembly, who: str, stop: asyncio.Event) -> int:
                count = 0
                while not stop.is_set():
                    await ask(service, f"{who}-{count}")
                    count += 1
                return count

            stop = asyncio.Event()
            visits = [
                asyncio.create_task(visit(service, who, stop)) for service, who in ((one, "a"), (two, "b"))
            ]
            moved: list[Moved] = []
            for to in (1, 0, 1):
                await asyncio.sleep(0.1)
                moved.append(await move(name, databases(one), to))
            await asyncio.sleep(0.1)
            stop.set()
            counts = [await task for task in visits]
            verdict = await adds_up(one, name)
            assert verdict.rows == 1 + 2 * sum(counts)
            assert verdict.learnt == sum(counts)
            assert [one.rows for one in moved] == sorted(one.rows for one in moved)

    run(load())


def test_the_command(new_database: Callable[[], str], tmp_path: Path) -> None:
    urls = [new_database(), new_database()]
    flags = [part for url in urls for part in ("--database", url)]

    async def make() -> tuple[str, Verdict]:
        async with serving(urls) as service:
            (name,) = names_for(service, 0, each=1)
            await create(service, name)
            await play(service, name, 2)
            return name, await adds_up(service, name)

    async def look(name: str) -> Verdict:
        async with serving(urls) as service:
            assert (await service.engines[1].find(name)).name == name
            return await adds_up(service, name)

    name, before = run(make())
    killed = subprocess.run(
        [sys.executable, "-m", "rankloop", "move", name, "--to", "2", *flags],
        env={**os.environ, "RANKLOOP_CRASH": "move-frozen"},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -9
    told = CliRunner().invoke(app, ["move", name, "--to", urls[1], *flags]).output
    assert re.search(r"in database 2 .*, 5 rows, \d copied, digest [0-9a-f]{32}$", " ".join(told.split())), (
        told
    )
    after = run(look(name))
    assert (after.state_hash, after.rows) == (before.state_hash, before.rows)
    copied = CliRunner().invoke(app, ["backup", str(tmp_path / "copy"), *flags]).output
    assert "1: 0 rankers, 0 rows" in " ".join(copied.split())
    assert "2: 1 ranker, 5 rows, every digest holds" in " ".join(copied.split())
    for wrong in ("3", "0", "postgresql://elsewhere"):
        told = CliRunner().invoke(app, ["move", name, "--to", wrong, *flags]).output
        assert "must be one of the 2 databases" in " ".join(told.split())
    assert "name all databases" in CliRunner().invoke(app, ["move", name, "--to", "1", *flags[:2]]).output
