"""One flipped bit, or an end that is cut off: `verify` names it, and no start is silently wrong."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.serving.admission import Unavailable
from rankloop.serving.log.verify import verify
from rankloop.serving.retention import Retention, close_history
from rankloop.serving.stores.contract import SetBack, StoreError
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.faults import damage
from tests.serving.service import Clock, answer, create, play, rank, rounds, running

TRIES = int(os.environ.get("RANKLOOP_FLIPS", "40"))
EVERYWHERE = [(table, column) for table, columns in damage.COLUMNS.items() for column in columns]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two snapshots and rows after them."""
    folder = tmp_path_factory.mktemp("sound")

    async def story() -> None:
        async with running(SQLiteStore(folder)) as engine:
            await create(engine)
            await rounds(engine, 6)
            await engine.snapshot("unwind")
            await rounds(engine, 6, first=6)
            await engine.snapshot("unwind")
            await rounds(engine, 4, first=12)
            await rank(engine, "open", context={"hour": 3})

    play(story)
    damage.settle(folder)
    return folder


def _truth(folder: Path) -> bytes:
    """The whole state that a start comes to."""

    async def story() -> bytes:
        async with running(SQLiteStore(folder)) as engine:
            return msgspec.msgpack.encode(engine.rankers["unwind"].fold.save())

    return asyncio.run(story())


def _flips(sound: Path, tmp_path: Path, seed: int) -> Iterator[tuple[str, Path]]:
    rng = random.Random(seed)
    places = itertools.cycle(EVERYWHERE)
    done = 0
    while done < TRIES:
        folder = damage.copied(sound, tmp_path / "flipped")
        what = damage.flip_column(folder, *next(places), rng)
        if what is not None:
            done += 1
            yield what, folder


def test_verify_finds_every_flipped_bit(sound: Path, tmp_path: Path) -> None:
    assert asyncio.run(damage.problems(damage.copied(sound, tmp_path / "whole"))) == []
    unseen = [what for what, folder in _flips(sound, tmp_path, 1) if not asyncio.run(damage.problems(folder))]
    assert unseen == []


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two segments and live rows after them."""
    folder = tmp_path_factory.mktemp("closed")

    async def story() -> None:
        async with running(SQLiteStore(folder), clock=Clock(1e6)) as engine:
            await create(engine, policy={"deadline_seconds": 50.0, "parking_seconds": 10.0})
            for i in range(2):
                await rounds(engine, 20, first=20 * i)
                engine.clock._steady.seconds += 100.0  # type: ignore[attr-defined]
                served = engine.rankers["unwind"]
                await engine.housekeeping.expire(served)
                cursor, now = served.fold.expire_cursor, engine.now()
                assert await close_history(
                    engine.store, "unwind", Retention(rows=6), now=now, expired_through=cursor
                )

    play(story)
    damage.settle(folder)
    return folder


def test_verify_finds_every_flipped_bit_of_indexes_and_segments(
    sound: Path, closed: Path, tmp_path: Path
) -> None:
    """RANKLOOP_FLIPS=500 flips 500 here and 500 in columns."""
    packed = damage.copied(sound, tmp_path / "packed")
    cells = [one for index in ("log_event", "log_decision") for one in damage.index_cells(packed, index)]
    places = [(packed, "rankloop.db", where) for where in cells]
    places += [(closed, str(file.relative_to(closed)), None) for file in sorted(closed.rglob("segments/*/*"))]
    assert {Path(name).suffix for _, name, _ in places} >= {".parquet", ".snapshot", ".ids", ".json"}
    for whole in (packed, closed):
        assert asyncio.run(damage.problems(damage.copied(whole, tmp_path / "flipped"))) == []
    rng, unseen = random.Random(4), []
    for _, (store, name, where) in zip(range(TRIES), itertools.cycle(places), strict=False):
        folder = damage.copied(store, tmp_path / "flipped")
        what = damage.flip_file(folder, rng, name, where)
        if not asyncio.run(damage.problems(folder)):
            unseen.append(what)
    assert unseen == []


def _verdict(folder: Path) -> list[str]:
    """What `verify` says of the ranker, without a look at the file as a whole."""

    async def story() -> list[str]:
        store = SQLiteStore(folder, read_only=True)
        await store.open()
        try:
            return (await verify(store, "unwind", replay=False)).problems
        finally:
            await store.close()

    return asyncio.run(story())


def test_a_row_that_is_not_found_by_its_id_is_named(sound: Path, closed: Path, tmp_path: Path) -> None:
    packed, rng = damage.copied(sound, tmp_path / "packed"), random.Random(5)
    for index in ("log_event", "log_decision"):
        (cells, *_) = damage.index_cells(packed, index)
        folder = damage.copied(packed, tmp_path / "flipped")
        what = damage.flip_file(folder, rng, where=cells[-6:])  # within the last key
        assert any("by its ID: an index is damaged" in one for one in _verdict(folder)), what
    folder = damage.copied(sound, tmp_path / "flipped")
    connection = apsw.Connection(str(folder / "rankloop.db"))
    connection.execute("UPDATE log SET topic = topic + 32 WHERE id & 1099511627775 = 7")
    connection.close()
    assert "row 7 is not what was written: its digest differs" in _verdict(folder)
    # An index of segments that says it is of other rows.
    folder = damage.copied(closed, tmp_path / "flipped")
    index = next(folder.rglob("*.ids"))
    damage.flip_file(folder, rng, str(index.relative_to(folder)), range(8, 9))
    assert any("it says that it is of rows" in one for one in _verdict(folder))


def test_a_flipped_bit_in_the_file_is_found_or_is_in_nothing_that_is_read(
    sound: Path, tmp_path: Path
) -> None:
    rng = random.Random(2)
    truth = damage.contents(sound)
    found = 0
    for _ in range(TRIES):
        folder = damage.copied(sound, tmp_path / "flipped")
        what = damage.flip_file(folder, rng)
        if asyncio.run(damage.problems(folder)):
            found += 1
        else:
            assert damage.contents(folder) == truth, what
    assert found >= TRIES / 10


def test_no_start_is_silently_wrong(sound: Path, tmp_path: Path) -> None:
    truth = _truth(damage.copied(sound, tmp_path / "whole"))
    kinds = {"right": 0, "quarantined": 0, "refused": 0}

    async def start(folder: Path) -> str:
        try:
            async with running(SQLiteStore(folder)) as engine:
                served = engine.rankers.get("unwind")
                if served is None:
                    assert engine.loaded.absent or "unwind" not in await engine.store.rankers()
                    return "quarantined"
                assert msgspec.msgpack.encode(served.fold.save()) == truth
                return "right"
        except (StoreError, ValueError):
            return "refused"

    for what, folder in _flips(sound, tmp_path, 3):
        try:
            kinds[asyncio.run(start(folder))] += 1
        except AssertionError as error:
            raise AssertionError(f"a start with another state after a flip of {what}") from error
    assert kinds["right"] > TRIES / 4  # a bad snapshot is skipped, an old row is not needed
    assert kinds["quarantined"] > 0


def test_a_bad_snapshot_is_skipped_for_an_older_one(sound: Path, tmp_path: Path) -> None:
    folder = damage.copied(sound, tmp_path / "flipped")
    connection = apsw.Connection(str(folder / "rankloop.db"))
    (older, newer) = [seq for (seq,) in connection.execute("SELECT seq FROM snapshot ORDER BY seq")]
    connection.execute("UPDATE snapshot SET state = zeroblob(length(state)) WHERE seq = ?", (newer,))
    connection.close()

    async def story() -> None:
        async with running(SQLiteStore(folder)) as engine:
            assert engine.rankers["unwind"].snapshot_seq == older

    play(story)
    (problem,) = asyncio.run(damage.problems(folder))
    assert problem == f"the snapshot at {newer} is not what was written: its digest differs"


def test_a_bad_row_is_named_and_its_ranker_quarantined(sound: Path, tmp_path: Path) -> None:
    folder = damage.copied(sound, tmp_path / "flipped")
    connection = apsw.Connection(str(folder / "rankloop.db"))
    ((last,),) = connection.execute("SELECT max(id) FROM log")
    connection.execute("UPDATE log SET body = x'00' WHERE id = ?", (last,))
    connection.close()
    seq = last & (1 << 40) - 1

    async def story() -> None:
        async with running(SQLiteStore(folder)) as engine:
            with pytest.raises(
                Unavailable, match=f"quarantined: row {seq} of the log is not what was written"
            ):
                await rank(engine)
            await create(engine, "other")
            await rank(engine, "d", "other")
            assert (await answer(engine, "d", name="other")).learnt
            assert engine.loaded.notices()[0].startswith("ranker 'unwind' is quarantined: row")

    play(story)
    assert f"row {seq} is not what was written: its digest differs" in asyncio.run(damage.problems(folder))


@pytest.mark.parametrize("n", [1, 3, 12])
def test_rows_that_were_acknowledged_and_cut_off_are_missed(sound: Path, tmp_path: Path, n: int) -> None:
    folder = damage.copied(sound, tmp_path / "cut")
    damage.cut_rows(folder, n)
    last = 34 - n
    told = asyncio.run(damage.problems(folder))
    assert f"row 34 was acknowledged, and the log ends at row {last}" in told

    # No start overwrites what proves the loss: the store is refused until somebody gives the rows up.
    for _ in range(2):
        with pytest.raises(
            SetBack, match=f"not there: rows {last + 1} to 34 of 'unwind'.*rankloop accept-loss"
        ):
            play(lambda: SQLiteStore(folder).open())
        assert asyncio.run(damage.problems(folder)) == told
    said = CliRunner().invoke(app, ["accept-loss", "--data", str(folder)])
    assert (
        f"goes on without rows {last + 1} to 34 of 'unwind': acknowledged, lost, and given up on"
        in said.output
    )

    async def story() -> None:
        async with running(SQLiteStore(folder)) as engine:
            await rounds(engine, 3, first=50)

    play(story)
    # What stays behind is told for good; only snapshots of rows that are gone do not fit any more.
    after = CliRunner().invoke(app, ["verify", "--data", str(folder)])
    assert f"the store goes on without rows {last + 1} to 34 of 'unwind'" in after.output
    assert "was acknowledged" not in after.output


def test_a_store_put_back_to_an_earlier_moment_is_refused(tmp_path: Path) -> None:
    folder, older = tmp_path / "live", tmp_path / "older"

    async def story(name: str) -> None:
        async with running(SQLiteStore(folder)) as engine:
            await create(engine, name)
            await rank(engine, "one", name)

    play(lambda: story("first"))
    damage.settle(folder)
    damage.copied(folder, older)
    play(lambda: story("second"))
    for suffix in ("-wal", "-shm"):
        (folder / f"rankloop.db{suffix}").unlink(missing_ok=True)
    (folder / "rankloop.db").write_bytes((older / "rankloop.db").read_bytes())
    with pytest.raises(SetBack, match=r"not there: a ranker with 2 rows, the 2\. that was made"):
        play(lambda: SQLiteStore(folder).open())
    assert any("a ranker with 2 rows" in one for one in asyncio.run(damage.problems(folder)))
    # The newer file was not there at all: a new one is not begun in its place either.
    (folder / "rankloop.db").unlink()
    with pytest.raises(SetBack, match=r"the 1\. that was made"):
        play(lambda: SQLiteStore(folder).open())


def test_verify_beside_a_busy_service_is_content(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine)
            for i in range(5):
                await rounds(engine, 4, first=8 * i)
                looking = SQLiteStore(tmp_path, read_only=True)
                await looking.open()
                there = await looking.last_seq("unwind")
                # What comes now is not judged: rows, a mark of them, and a snapshot at them.
                await rounds(engine, 4, first=8 * i + 4)
                await engine.snapshot("unwind")
                assert await looking.problems() == []
                verdict = await verify(looking, "unwind")
                assert (verdict.problems, verdict.rows) == ([], there)
                await looking.close()

    play(story)


def test_a_file_that_was_cut_off_is_refused_or_missed(sound: Path, tmp_path: Path) -> None:
    size = (sound / "rankloop.db").stat().st_size
    for n_bytes in (1, 4096, size // 2, size - 100):
        folder = damage.copied(sound, tmp_path / "cut")
        damage.cut_file(folder, n_bytes)
        assert asyncio.run(damage.problems(folder)), n_bytes
