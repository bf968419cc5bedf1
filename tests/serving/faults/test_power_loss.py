"""After a power loss everything that was acknowledged is there, and the log adds up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rankloop.serving.stores import sqlite_file
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.faults.power_loss import VolatileDisk, photographs
from tests.serving.service import adds_up, answer, create, play, rank, running

PHOTOGRAPHS = 12


@pytest.fixture
def disk() -> Iterator[VolatileDisk]:
    disk = VolatileDisk("volatile")
    yield disk
    disk.unregister()


def _lose_power(
    folder: Path, disk: VolatileDisk, *, survives: float, safe: bool
) -> list[tuple[Path, set[str]]]:
    """Serve, with photographs of the disk on the way."""
    acknowledged: set[str] = set()
    taken: list[tuple[Path, set[str]]] = []

    async def story() -> None:
        async with running(SQLiteStore(folder / "live", vfs="volatile"), snapshot_every=30) as engine:
            if not safe:
                engine.store._writer.execute("PRAGMA synchronous = OFF")
            await create(engine)

            async def asking(who: int) -> None:
                i = 0
                while not camera.done():
                    decision = f"d{who}-{i}"
                    await rank(engine, decision)
                    acknowledged.add(decision)
                    told = await answer(engine, decision, float(i % 2))
                    acknowledged.add(f"feedback {decision} {told.seq}")
                    i += 1

            with ThreadPoolExecutor(1) as pool:
                camera = pool.submit(
                    photographs,
                    disk,
                    folder,
                    acknowledged.copy,
                    rng=random.Random(1),
                    survives=survives,
                    most=PHOTOGRAPHS,
                )
                await asyncio.gather(*(asking(who) for who in range(3)))
            taken.extend(camera.result())

    play(story)
    return taken


def _lost(place: Path, acknowledged: set[str]) -> set[str]:
    """What had been acknowledged before the photograph and is not in it; everything, if it cannot be opened."""
    lost: set[str] = set()

    async def story() -> None:
        async with running(SQLiteStore(place)) as engine:
            rows = await engine.store.read("unwind", after=0, limit=100_000)
            there = {row.event_id for row in rows if row.kind == "decision"}
            there |= {f"feedback {row.decision} {row.seq}" for row in rows if row.kind == "feedback"}
            lost.update(acknowledged - there)
            if rows:
                await adds_up(engine)
                await rank(engine, "after the loss")

    play(story)
    return lost


@pytest.mark.parametrize("survives", [0.0, 0.5, 1.0])
def test_a_power_loss_takes_nothing_that_was_acknowledged(
    tmp_path: Path, disk: VolatileDisk, monkeypatch: pytest.MonkeyPatch, survives: float
) -> None:
    monkeypatch.setattr(sqlite_file, "EVERY", 20)  # photographs of rows on their way into the database too
    monkeypatch.setattr(sqlite_file, "RESTART_BYTES", 50_000)
    taken = _lose_power(tmp_path, disk, survives=survives, safe=True)
    assert len(taken) == PHOTOGRAPHS
    assert len(taken[-1][1]) > PHOTOGRAPHS
    for place, acknowledged in taken:
        assert _lost(place, acknowledged) == set()


def test_the_disk_finds_a_service_that_does_not_wait_for_fsync(tmp_path: Path, disk: VolatileDisk) -> None:
    place, acknowledged = _lose_power(tmp_path, disk, survives=0.0, safe=False)[-1]
    assert _lost(place, acknowledged)
