"""Faults that need no process of their own: each is done again and again, and what became of it is counted."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from rankloop.serving.admission import RequestError
from rankloop.serving.engine import Engine
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import StoreError
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.faults import damage, standby
from tests.serving.faults.failing_disk import FailingDisk
from tests.serving.faults.outcome import Outcome, Users, count_on_disk, play
from tests.serving.faults.power_loss import VolatileDisk
from tests.serving.faults.slow_disk import SlowDisk, impatient
from tests.serving.postgresql import Server, start
from tests.serving.service import Clock, create, rank, rounds, running

DAY = 86_400.0


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rankloop-fault-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def failing_writes(n: int, *, error: str, seed: int = 1) -> Outcome:
    """One write, cut or fsync fails, somewhere in twenty rounds; then the disk is well, and the service restarts."""
    outcome = Outcome(
        {"full": "no space left at one write", "broken": "input/output error at one write"}[error]
    )
    rng = random.Random(seed)
    disk = FailingDisk("failing-at", error=error)
    for _ in range(n):
        with _folder() as folder:
            users, at = Users(), rng.randrange(60)

            async def story(folder: Path = folder, users: Users = users, at: int = at) -> None:
                async with running(SQLiteStore(folder, vfs="failing-at")) as engine:
                    await create(engine)
                    disk.left = at
                    for i in range(20):
                        await users.ask(engine, f"d{i}")
                    disk.left = None
                await count_on_disk(folder, users, outcome)

            play(story)
            outcome.tried += 1
    disk.unregister()
    return outcome


def power_losses(n: int, *, seed: int = 1) -> Outcome:
    """Power is lost at a random moment; half of what was not fsynced is there."""
    outcome = Outcome("power loss")
    rng = random.Random(seed)
    disk = VolatileDisk("volatile")
    with _folder() as folder:
        taken: list[tuple[Path, Users]] = []

        async def story() -> None:
            users = Users()
            async with running(SQLiteStore(folder / "live", vfs="volatile"), snapshot_every=30) as engine:
                await create(engine)
                for i in range(4 * n):
                    asking = asyncio.create_task(users.ask(engine, f"d{i}"))
                    for _ in range(rng.randrange(12)):
                        await asyncio.sleep(0)
                    if i % 4 == 0:
                        before = Users(set(users.decisions), dict(users.answers))
                        place = folder / f"photograph-{len(taken)}"
                        disk.photograph(place, rng=rng, survives=0.5)
                        taken.append((place, before))
                    await asking
            for place, before in taken:
                if before.decisions:
                    await count_on_disk(place, before, outcome)
                outcome.tried += 1

        play(story)
    disk.unregister()
    return outcome


def flipped_bits(n: int, *, seed: int = 1) -> Outcome:
    """One bit of one stored value, of every kind in turn."""
    outcome = Outcome("one bit flipped")
    rng = random.Random(seed)
    places = [(table, column) for table, columns in damage.COLUMNS.items() for column in columns]
    with _folder() as folder:
        _sound(folder / "sound")
        while outcome.tried < n:
            copy = damage.copied(folder / "sound", folder / "flipped")
            what = damage.flip_column(copy, *places[outcome.tried % len(places)], rng)
            if what is None:
                places.append(places.pop(0))
                continue
            outcome.tried += 1
            if not asyncio.run(damage.problems(copy)):
                outcome.undetected += 1
                outcome.notes.append(what)
            else:
                outcome.refused += 1
    return outcome


def cut_ends(n: int, *, seed: int = 1) -> Outcome:
    """Acknowledged rows are cut off at the end."""
    outcome = Outcome("end of the log cut off")
    rng = random.Random(seed)
    with _folder() as folder:
        _sound(folder / "sound")
        for _ in range(n):
            copy = damage.copied(folder / "sound", folder / "cut")
            damage.cut_rows(copy, rng.randint(1, 20))
            outcome.tried += 1
            found = asyncio.run(damage.problems(copy))
            outcome.undetected += not any("was acknowledged" in one for one in found)
            outcome.refused += bool(found)
    return outcome


def clock_jumps(n: int, *, seed: int = 1) -> Outcome:
    """The clock jumps, forward or back, by up to three days, while it runs or while it is down."""
    outcome = Outcome("clock set forward or back")
    rng = random.Random(seed)
    with _folder() as folder:
        users, clock, steady = Users(), Clock(100 * DAY), Clock(0.0)

        async def story() -> None:
            for life in range(max(1, n // 5)):
                async with running(SQLiteStore(folder), clock=clock, steady=steady) as engine:
                    if life == 0:
                        await create(engine, policy={"deadline_seconds": 60})
                    for i in range(5):
                        clock.seconds += rng.uniform(-3, 3) * DAY
                        outcome.tried += 1
                        before = engine.rankers["unwind"].fold.rounds
                        await users.ask(engine, f"d{life}-{i}")
                        # An answer within its deadline that is not learnt from is lost to the ranker.
                        outcome.lost += engine.rankers["unwind"].fold.rounds == before
                        steady.seconds += 5
                        clock.seconds += 5
                clock.seconds += rng.uniform(-3, 3) * DAY
            await count_on_disk(folder, users, outcome)

        play(story)
    return outcome


def locks(n: int, *, seed: int = 1) -> Outcome:
    """Another process holds the write lock of the database while users ask."""
    outcome = Outcome("write lock held by another process")
    rng = random.Random(seed)
    with _folder() as folder:
        users = Users()

        async def story() -> None:
            async with running(SQLiteStore(folder, busy_seconds=0.05)) as engine:
                await create(engine)
                for i in range(n):
                    other = apsw.Connection(str(folder / "rankloop.db"))
                    other.execute("BEGIN IMMEDIATE")
                    asking = asyncio.create_task(users.ask(engine, f"d{i}"))
                    await asyncio.sleep(rng.choice([0.0, 0.02, 0.3]))
                    other.execute("ROLLBACK")
                    other.close()
                    await asking
                    outcome.tried += 1
            await count_on_disk(folder, users, outcome)

        play(story)
    return outcome


def hanging_disks(n: int, *, seed: int = 1) -> Outcome:
    """The disk hangs at one read, write or fsync until everybody has been answered."""
    outcome = Outcome("disk that hangs")
    rng = random.Random(seed)
    disk = SlowDisk("hanging")
    with _folder() as folder:
        users = Users()

        async def story() -> None:
            async with running(SQLiteStore(folder, vfs="hanging")) as engine:
                await create(engine)
                for i in range(n):
                    disk.hang(rng.randrange(20))
                    with impatient(engine, 0.05):
                        await users.ask(engine, f"d{i}", forget=True)
                        # Either nothing hung, or somebody was refused and readiness says why.
                        told = engine.trouble is not None
                    outcome.undetected += disk.rescued or (disk.hanging.is_set() and not told)
                    disk.release()
                    await _until_ready(engine)
                    outcome.tried += 1
            await count_on_disk(folder, users, outcome)

        play(story)
    disk.unregister()
    return outcome


def slow_disks(n: int, *, seed: int = 1) -> Outcome:
    """Every operation of the disk takes some milliseconds more."""
    outcome = Outcome("slow disk")
    rng = random.Random(seed)
    disk = SlowDisk("slow")
    with _folder() as folder:
        users = Users()

        async def story() -> None:
            async with running(SQLiteStore(folder, vfs="slow")) as engine:
                await create(engine)
                for i in range(n):
                    disk.seconds = rng.uniform(0.0, 0.01)
                    await users.ask(engine, f"d{i}", forget=True)
                    outcome.tried += 1
                disk.seconds = 0.0
            await count_on_disk(folder, users, outcome)

        play(story)
    disk.unregister()
    return outcome


async def _until_ready(engine: Engine) -> None:
    async with asyncio.timeout(60):
        while engine.trouble is not None:
            await asyncio.sleep(0.01)


def failovers(n: int) -> Outcome:
    """PostgreSQL fails over to a standby that lacks the last rows: those are gone, and the replicas say so."""
    outcome = Outcome("failover to a standby that lags")
    for _ in range(n):
        with _folder() as folder:
            primary = start(folder)
            follower = standby.follow(primary)
            try:
                asyncio.run(_fail_over(primary, follower, outcome))
            finally:
                follower.stop()
                for server in (primary, follower):
                    shutil.rmtree(server.folder, ignore_errors=True)
            outcome.tried += 1
    return outcome


async def _fail_over(primary: Server, follower: Server, outcome: Outcome) -> None:
    users = Users()
    where = standby.address(primary, follower)
    async with running(PostgresStore(where, database_clock=False)) as engine:
        await create(engine)
        await rounds(engine, 4)
        await asyncio.to_thread(standby.caught_up, primary, follower)
        await asyncio.to_thread(standby.cut_off, follower)
        for i in range(3):
            await users.ask(engine, f"d{i}")
        lost = engine.rankers["unwind"].fold.state_hash()
        await asyncio.to_thread(standby.take_over, primary, follower)
        for i in range(100):
            before = users.refused
            await users.ask(engine, f"after {i}")
            if users.refused == before:
                break
            await asyncio.sleep(0.1)
        verdict = await verify(engine.store, "unwind")
        now = engine.rankers["unwind"].fold.state_hash()
        outcome.undetected += verdict.state_hash != now or now == lost
        await users.count(engine.store, outcome)


def hostile_requests(n: int, *, seed: int = 1) -> Outcome:
    """Contexts that are deep, large, or not what msgpack can say; each is refused, or kept and read again."""
    outcome = Outcome("hostile request")
    rng = random.Random(seed)
    with _folder() as folder:
        users = Users()

        async def story() -> None:
            async with running(SQLiteStore(folder)) as engine:
                await create(engine)
                for i in range(n):
                    outcome.tried += 1
                    try:
                        await _hostile(engine, f"h{i}", rng)
                    except (RequestError, StoreError):
                        outcome.refused += 1
                    await users.ask(engine, f"d{i}")
            await count_on_disk(folder, users, outcome)

        play(story)
    return outcome


async def _hostile(engine: Engine, decision: str, rng: random.Random) -> None:
    kind = rng.randrange(4)
    value: object = 1
    if kind == 0:
        for _ in range(rng.choice([50, 960, 980, 5_000])):
            value = [value] if rng.random() < 0.5 else {"a": value}
    elif kind == 1:
        value = rng.choice([2**63, 2**64, -(2**63) - 1, 10**30])
    elif kind == 2:
        value = {rng.choice([1, None, b"k", 2.5]): 1}
    else:
        value = "x" * rng.choice([10, 100_000, 5_000_000])
    await rank(engine, decision, context=value)


def _sound(folder: Path) -> None:
    """A store with two snapshots and rows after them."""

    async def story() -> None:
        async with running(SQLiteStore(folder)) as engine:
            await create(engine)
            for part in range(3):
                await rounds(engine, 6, first=6 * part)
                if part < 2:
                    await engine.snapshot("unwind")

    play(story)
    damage.settle(folder)
