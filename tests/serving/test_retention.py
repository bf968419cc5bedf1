"""Closed history in segments: nothing is lost, nothing is learnt twice, and what is damaged is found."""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.serving.admission import Conflict, Unavailable
from rankloop.serving.api import FreezeRequest, RankRequest
from rankloop.serving.engine import Engine
from rankloop.serving.log.export import answered_lists
from rankloop.serving.log.verify import verify
from rankloop.serving.retention import Retention, Trimming, close_history, read_retention
from rankloop.serving.stores import segments
from rankloop.serving.stores.backup import backup, restore
from rankloop.serving.stores.contract import Damaged, Store, StoreError
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.segments import read_manifest
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server
from tests.serving.service import Clock, adds_up, answer, create, play, rank, rounds, running

Make = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path, fresh_schema: Callable[[], str]) -> Make:
    """Stores on the same data, each time."""
    if request.param == "sqlite":
        return lambda: SQLiteStore(tmp_path / "live")
    url, schema = request.getfixturevalue("postgresql").url, fresh_schema()
    return lambda: PostgresStore(url, schema=schema, database_clock=False, segments=tmp_path / "segments")


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short log has several groups of rows."""
    monkeypatch.setattr(segments, "GROUP", 8)
    monkeypatch.setattr(segments, "_GROUPS", 2)


async def _close(engine: Engine, rows: int = 5, **more: Any) -> Any:
    """Expire what is due, and move all but the newest rows to a segment."""
    served = await engine.find("unwind")
    await engine.housekeeping.expire(served)
    cursor = served.fold.expire_cursor
    return await close_history(
        engine.store, "unwind", Retention(rows=rows), now=engine.now(), expired_through=cursor, **more
    )


async def _later(engine: Engine) -> None:
    """All deadlines pass."""
    engine.clock._steady.seconds += 100.0  # type: ignore[attr-defined]


SHORT = {"deadline_seconds": 50.0, "late": "learn", "parking_seconds": 10.0}


def test_a_policy_is_rows_or_time() -> None:
    assert read_retention("1_000") == Retention(rows=1_000)
    assert read_retention("12h") == Retention(milliseconds=43_200_000)
    for wrong in ("", "0", "7 days", "-1", "d", "1.5h"):
        with pytest.raises(ValueError, match="retain must be"):
            read_retention(wrong)


async def _story(engine: Engine, close: Callable[[Engine], Any]) -> list[Any]:
    """Requests of every kind, old and new; what each was answered. `close` comes in between, again and again."""
    told: list[Any] = []
    clock = engine.clock._steady  # type: ignore[attr-defined]
    rng = random.Random(5)
    await create(engine, policy=SHORT)
    early: list[str] = []
    for i in range(40):
        clock.seconds += 7.0
        if i % 9 == 4:
            told.append(await answer(engine, f"d{i}"))  # before its list: it waits
            early.append(f"d{i}")
        told.append(await rank(engine, f"d{i}"))
        if i % 3 and f"d{i}" not in early:
            told.append(await answer(engine, f"d{i}", float(i % 2)))
        if i == 15:
            told.append(await engine.freeze("unwind", FreezeRequest(True, "f")))
        if i == 18:
            told.append(await engine.freeze("unwind", FreezeRequest(False, "g")))
        if i % 5 == 0:
            # An old list again, an old answer again, a late first answer, another answer to an old list.
            old = rng.randrange(i + 1)
            told.append(await rank(engine, f"d{old}"))
            told.append(await answer(engine, f"d{old}", float(old % 2)))
            told.append(await answer(engine, f"d{old}", 0.5))
            told.append(await answer(engine, f"d{old}", 0.5, event_id=f"other {old}"))
            told.append(await answer(engine, f"nobody {i}"))
            with contextlib.suppress(Conflict):
                told.append(await rank(engine, f"d{old}", context={"other": 1}))
        if i % 8 == 7:
            await engine.housekeeping.expire(engine.rankers["unwind"])
            await close(engine)
    return told


@pytest.mark.usefixtures("small_groups")
def test_segments_change_no_answer_and_no_state(make: Make) -> None:
    """The same requests with and without segments: the same answers, the same rows, the same state."""

    async def story() -> None:
        async def nothing(engine: Engine) -> None:
            return

        async with running(MemoryStore()) as plain:
            expected = await _story(plain, nothing)
            lists = [(one.shown, one.values.tolist()) async for one in answered_lists(plain.store, "unwind")]
            rows = [
                (row.kind, row.event_id, row.at)
                for row in await plain.store.read("unwind", after=0, limit=999)
            ]
            state = plain.rankers["unwind"].fold.state_hash()
        made: list[Any] = []

        async def close(engine: Engine) -> None:
            made.append(await _close(engine, rows=6))

        async with running(make()) as engine:
            assert await _story(engine, close) == expected
            assert (await engine.find("unwind")).fold.state_hash() == state
            assert len([one for one in made if one]) >= 3
            found = await engine.store.read("unwind", after=0, limit=999)
            assert [(row.kind, row.event_id, row.at) for row in found] == rows
            assert [row.seq for row in found] == list(range(1, len(rows) + 1))
            assert lists == [
                (one.shown, one.values.tolist()) async for one in answered_lists(engine.store, "unwind")
            ]
            live = await engine.store.left_over("unwind", after=0, limit=999)
            assert {row.kind for row in live} <= {"config", "freeze", "feedback"}
            assert len(live) < 10
            await adds_up(engine)
        async with running(make()) as engine:  # from the beginning, and from the snapshot of the last segment
            assert (await engine.find("unwind")).fold.state_hash() == state
            assert engine.rankers["unwind"].snapshot_seq == [one for one in made if one][-1].last
            await rank(engine, "after")
            assert (await rank(engine, "d3")).duplicate
            assert (await answer(engine, "d1", 1.0)).duplicate
            await adds_up(engine)

    play(story)


def test_open_lists_stay_live_and_the_newest_row_too(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine, policy=SHORT)
            await rounds(engine, 5)
            await rank(engine, "open")
            await rounds(engine, 5, first=5)
            first = await _close(engine, rows=1)
            open_row = await engine.store.find("unwind", "decision", "open")
            assert first is None or first.last < open_row.seq
            await _later(engine)
            await _close(engine, rows=1)
            closed = await engine.store.history("unwind")
            assert closed.through == (await engine.store.head("unwind")).seq - 1
            assert (await answer(engine, "open")).learnt  # late, and learnt by policy, from its segment
            assert not (await answer(engine, "open")).learnt
            await adds_up(engine)

    play(story)


def test_time_decides_where_the_policy_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        clock = Clock()
        async with running(SQLiteStore(tmp_path), clock=clock) as engine:
            await create(engine)
            await rounds(engine, 10)
            clock.seconds += 3_600
            await rounds(engine, 10, first=10)
            cursor = await _all_expired(engine)
            policy = Retention(milliseconds=1_800_000)
            made = await close_history(
                engine.store, "unwind", policy, now=engine.now(), expired_through=cursor
            )
            assert made is not None
            assert (made.first, made.last) == (1, 21)
            again = await close_history(
                engine.store, "unwind", policy, now=engine.now(), expired_through=cursor
            )
            assert again is None
            await adds_up(engine)

    play(story)


async def _all_expired(engine: Engine) -> int:
    served = engine.rankers["unwind"]
    await engine.housekeeping.expire(served)
    return 1 << 40  # everything here was answered


def test_housekeeping_keeps_the_live_log_bounded(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path), snapshot_every=10) as engine:
            trimming = Trimming(engine, Retention(rows=10), at_least=5)
            engine.housekeeping.trimming = trimming
            await create(engine, policy={"deadline_seconds": 1.0})
            for i in range(8):
                await rounds(engine, 10, first=10 * i)
                engine.clock._steady.seconds += 10.0  # type: ignore[attr-defined]
                await engine.housekeeping.tick()
                assert await trimming.look() >= 1
                assert _live(engine) <= 1 + 10 + 5
            assert await trimming.look() == 0
            closed = await engine.store.history("unwind")
            assert len(list(closed.folder.glob("*.ids"))) <= 4  # joined, however many segments there are
            await adds_up(engine)

    play(story)


def _flip(path: Path, place: int = -40) -> None:
    told = bytearray(path.read_bytes())
    told[place] ^= 1
    path.write_bytes(bytes(told))


async def _problems(store: Store) -> list[str]:
    await store.open()
    try:
        return (await verify(store, "unwind")).problems
    finally:
        await store.close()


def test_verify_finds_what_is_wrong_with_segments(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path / "live")) as engine:
            await create(engine, policy=SHORT)
            for i in range(3):
                await rounds(engine, 8, first=8 * i)
                await _later(engine)
                await _close(engine, rows=2)
            folder = (await engine.store.history("unwind")).folder
            await adds_up(engine)
        first, second, third = read_manifest(folder)
        kept = tmp_path / "kept"
        shutil.copytree(folder, kept)

        async def complains(*words: str) -> None:
            problems = await _problems(SQLiteStore(tmp_path / "live", read_only=True))
            for word in words:
                assert any(word in one for one in problems), problems
            shutil.rmtree(folder)
            shutil.copytree(kept, folder)

        assert await _problems(SQLiteStore(tmp_path / "live", read_only=True)) == []
        for place in (10, len((folder / second.file).read_bytes()) // 2, -40):
            _flip(folder / second.file, place)
            await complains(f"{second.file} is not what was written")
        (folder / second.file).unlink()
        await complains(f"{second.file} cannot be read")
        shutil.copyfile(folder / first.file, folder / second.file)
        await complains(f"{second.file} is not what was written")
        (folder / first.file).rename(folder / "other")
        (folder / third.file).rename(folder / first.file)
        (folder / "other").rename(folder / third.file)
        await complains(f"{first.file} is not what was written", f"{third.file} is not what was written")
        _flip(folder / third.snapshot)
        await complains(f"{third.snapshot} is not what was written")
        _flip(next(iter(folder.glob("*.ids"))))
        await complains("delete it, and it is made again")
        (folder / "manifest.json").write_text("[]")
        await complains("another one than in the store")
        connection = SQLiteStore(tmp_path / "live")
        await connection.open()
        writer = connection._writer
        (told,) = next(iter(writer.execute("SELECT entry FROM segment WHERE last = ?", (second.last,))))
        writer.execute(
            "UPDATE segment SET entry = ? WHERE last = ?",
            (told.replace(second.state_hash[:6], "000000"), second.last),
        )
        await connection.close()
        await complains("is not what was written: its digest differs", "differs from a replay")

    play(story)


def test_a_row_cut_from_the_live_log_is_found_beside_segments(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine, policy=SHORT)
            await rounds(engine, 8)
            await _later(engine)
            made = await _close(engine, rows=6)
            writer = engine.store._writer  # type: ignore[attr-defined]
            writer.execute("DELETE FROM log WHERE id & 1099511627775 = ?", (made.last + 1,))
            verdict = await verify(engine.store, "unwind")
            assert any(f"after row {made.last} comes row {made.last + 2}" in one for one in verdict.problems)

    play(story)


def test_a_missing_index_is_made_again_and_missing_segments_are_said(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine, policy=SHORT)
            await rounds(engine, 8)
            await _later(engine)
            await _close(engine, rows=2)
            folder = (await engine.store.history("unwind")).folder
        for index in folder.glob("*.ids"):
            index.unlink()
        async with running(SQLiteStore(tmp_path)) as engine:
            assert (await rank(engine, "round 1")).duplicate
            assert list(folder.glob("*.ids"))
        shutil.rmtree(folder)
        async with running(SQLiteStore(tmp_path)) as engine:
            assert "is not there" in engine.loaded.absent["unwind"].reason
        store = SQLiteStore(tmp_path, read_only=True)
        await store.open()
        with pytest.raises(Damaged, match="is not there"):
            await store.read("unwind", after=2, limit=5)
        await store.close()

    play(story)


def test_copies_hold_the_segments(make: Make, tmp_path: Path) -> None:
    async def story() -> None:
        async with running(make()) as engine:
            await create(engine, policy=SHORT)
            await rounds(engine, 8)
            await _later(engine)
            await _close(engine, rows=2)
            state = engine.rankers["unwind"].fold.state_hash()
            await backup(engine.store, tmp_path / "copy")
        await restore(tmp_path / "copy", SQLiteStore(tmp_path / "again"))
        for folder in ("copy", "again"):
            async with running(SQLiteStore(tmp_path / folder)) as engine:
                assert (await engine.find("unwind")).fold.state_hash() == state
                assert (await rank(engine, "round 1")).duplicate
                await adds_up(engine)

    play(story)


def test_a_copy_goes_into_a_database_with_its_segments(
    postgresql: Server, fresh_schema: Callable[[], str], tmp_path: Path
) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path / "live")) as engine:
            await create(engine, policy=SHORT)
            await rounds(engine, 8)
            await _later(engine)
            await _close(engine, rows=2)
            await backup(engine.store, tmp_path / "copy")
        schema = fresh_schema()

        def store(segments: Path | None) -> Store:
            return PostgresStore(postgresql.url, schema=schema, database_clock=False, segments=segments)

        with pytest.raises(ValueError, match="--segments"):
            await restore(tmp_path / "copy", store(None))
        await restore(tmp_path / "copy", store(tmp_path / "shared"))
        async with running(store(tmp_path / "shared")) as engine:
            assert (await rank(engine, "round 1")).duplicate
            await adds_up(engine)
        async with running(store(None)) as engine:
            with pytest.raises(Unavailable, match="--segments"):
                await rank(engine, "round 1")

    play(story)


def test_a_replica_that_does_not_know_of_a_segment_looks_again(
    postgresql: Server, fresh_schema: Callable[[], str], tmp_path: Path
) -> None:
    """Otherwise an ID that was moved meanwhile would be taken for a new one."""

    async def story() -> None:
        schema = fresh_schema()
        stores = [
            PostgresStore(postgresql.url, schema=schema, database_clock=False, segments=tmp_path)
            for _ in range(2)
        ]
        async with running(stores[0]) as one, running(stores[1]) as other:
            await create(one, policy=SHORT)
            await rounds(one, 8)
            await other.find("unwind")
            await _later(one)
            assert await _close(one, rows=2)
            again = await other.rank("unwind", RankRequest("round 2"))
            assert again.duplicate
            liked = float(again.items[0] in ("walk", "tea"))
            assert (await answer(other, "round 2", liked)).duplicate
            await rank(other, "new")
            await one.find("unwind")
            await adds_up(one)
            segment = read_manifest((await stores[1].history("unwind")).folder)[0]
            with pytest.raises(StoreError, match="moved to a segment already"):
                await stores[1].add_segment("unwind", segment, links={})

    play(story)


_PLACES = ("after-segment", "after-manifest", "before-commit", "after-closing", "while-clearing")
# One process that forks: what is slow to import is imported once.
_CRASHING = """
import asyncio, os, sys
from pathlib import Path
from rankloop.serving import failpoints
from rankloop.serving.retention import Retention, close_history
from rankloop.serving.stores.sqlite import SQLiteStore

async def main(folder):
    store = SQLiteStore(folder)
    await store.open()
    await close_history(store, "unwind", Retention(rows=2), now=0, expired_through=1 << 40)
    await store.close()

for place in sys.argv[2:]:
    child = os.fork()
    if not child:
        failpoints._plan = failpoints._Plan(place)
        asyncio.run(main(Path(sys.argv[1]) / place))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == 9, (place, status)
"""


def test_a_kill_at_any_step_loses_nothing(tmp_path: Path) -> None:
    async def fill() -> None:
        async with running(SQLiteStore(tmp_path / "live")) as engine:
            await create(engine)
            await rounds(engine, 8)

    async def story(folder: Path) -> None:
        async with running(SQLiteStore(folder)) as engine:
            await adds_up(engine)
            rows = await engine.store.read("unwind", after=0, limit=999)
            assert [row.seq for row in rows] == list(range(1, 18))
            for i in range(8):
                assert (await rank(engine, f"round {i}")).duplicate
            for n in (3, 2):
                await close_history(engine.store, "unwind", Retention(rows=n), now=0, expired_through=1 << 40)
            assert _live(engine) == 3  # the configuration, and the newest two
            await adds_up(engine)

    play(fill)
    for place in _PLACES:
        shutil.copytree(tmp_path / "live", tmp_path / place)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CRASHING, str(tmp_path), *_PLACES], check=True, timeout=120
    )
    for place in _PLACES:
        play(lambda place=place: story(tmp_path / place))  # type: ignore[misc]


def _live(engine: Engine) -> int:
    """How many rows are in the live log."""
    store = engine.store
    assert isinstance(store, SQLiteStore)
    ((count,),) = store._rows(store._reader, "SELECT count(*) FROM log")
    return int(count)


def test_the_file_gives_its_space_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine)
            for i in range(60):
                await rank(engine, f"d{i}", context={"text": "x" * 4_000})
                await answer(engine, f"d{i}")

            def pages() -> int:
                ((count,),) = engine.store._rows(engine.store._writer, "PRAGMA page_count")  # type: ignore[attr-defined]
                return int(count)

            before = pages()
            await close_history(engine.store, "unwind", Retention(rows=4), now=0, expired_through=1 << 40)
            assert pages() < before / 3

    play(story)


def test_an_archived_ranker_keeps_its_segments(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine, policy=SHORT)
            await rounds(engine, 3)
            await _later(engine)
            await _close(engine, rows=2)
            old = (await engine.archive("unwind")).archived
            await create(engine)
            await rounds(engine, 2)  # the same IDs, and new lists
            assert (await verify(engine.store, old)).problems == []
            await adds_up(engine)

    play(story)


def test_the_command_moves_history_and_verify_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path / "live")) as engine:
            await create(engine, policy=SHORT)
            await rounds(engine, 6)
            await _later(engine)
            await engine.housekeeping.expire(engine.rankers["unwind"])
            await engine.snapshot("unwind")

    play(story)

    def command(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, "--data", str(tmp_path / "live")])
        assert done.exit_code == 0, done.output
        return done.output

    assert "12 rows moved to 1 segments, 1 rows stay live" in command("trim", "--retain", "1")
    assert "0 rows moved" in command("trim", "--retain", "1")
    assert "13 rows, 1 segments, 6 lists drawn again" in command("verify")
    assert "13 rows, 1 segments, nothing replayed" in command("verify", "--digests")
    assert "13 rows, every digest holds" in command("backup", str(tmp_path / "copy"))
    assert "6 rows" in command("export", "unwind", "--parquet", str(tmp_path / "table.parquet"))
    refused = CliRunner().invoke(app, ["serve", "--retain", "soon", "--memory", "--port", "0"])
    assert refused.exit_code != 0
    assert "retain must be a number of rows" in refused.output
