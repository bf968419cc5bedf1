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

from rankloop.serving.errors import Unavailable
from rankloop.serving.stores.contract import StoreError
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.faults import damage
from tests.serving.service import answer, create, play, rank, rounds, running

TRIES = int(os.environ.get("RANKLOOP_FLIPS", "40"))  # a thousand were tried
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
            return msgspec.msgpack.encode(engine.rankers["unwind"].fold.save(), order="deterministic")

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
    assert found > TRIES / 10


def test_no_start_is_silently_wrong(sound: Path, tmp_path: Path) -> None:
    truth = _truth(damage.copied(sound, tmp_path / "whole"))
    kinds = {"right": 0, "quarantined": 0, "refused": 0, "said": 0}

    async def start(folder: Path) -> str:
        try:
            async with running(SQLiteStore(folder)) as engine:
                served = engine.rankers.get("unwind")
                if served is None:
                    assert engine.roster.absent or "unwind" not in await engine.store.rankers()
                    return "quarantined"
                if engine.roster.lost:  # the last row was moved elsewhere
                    return "said"
                assert msgspec.msgpack.encode(served.fold.save(), order="deterministic") == truth
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
            assert engine.roster.notices()[0].startswith("ranker 'unwind' is quarantined: row")

    play(story)
    assert f"row {seq} is not what was written: its digest differs" in asyncio.run(damage.problems(folder))


@pytest.mark.parametrize("n", [1, 3, 12])
def test_rows_that_were_acknowledged_and_cut_off_are_missed(sound: Path, tmp_path: Path, n: int) -> None:
    folder = damage.copied(sound, tmp_path / "cut")
    damage.cut_rows(folder, n)
    last = 34 - n
    told = asyncio.run(damage.problems(folder))
    assert f"row 34 was acknowledged, and the log ends at row {last}" in told

    async def story() -> None:
        async with running(SQLiteStore(folder)) as engine:
            lost = engine.roster.lost["unwind"]
            assert lost == f"rows {last + 1} to 34 were acknowledged and are not in the log any more"

    play(story)


def test_a_file_that_was_cut_off_is_refused_or_missed(sound: Path, tmp_path: Path) -> None:
    size = (sound / "rankloop.db").stat().st_size
    for n_bytes in (1, 4096, size // 2, size - 100):
        folder = damage.copied(sound, tmp_path / "cut")
        damage.cut_file(folder, n_bytes)
        assert asyncio.run(damage.problems(folder)), n_bytes
