"""A database fails over to a standby that had not received everything: the replicas notice, and stay one ranker."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankloop.serving.admission import Unavailable
from rankloop.serving.engine import Engine
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import StoreError
from rankloop.serving.stores.postgres import PostgresStore
from tests.serving.faults import standby
from tests.serving.postgresql import Server, start
from tests.serving.service import Clock, answer, create, play, rank, rounds


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    primary = start(tmp_path)
    follower = standby.follow(primary)
    yield primary, follower
    for server in (primary, follower):
        with contextlib.suppress(RuntimeError):  # the first one is down already
            server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


async def _until_it_answers(engine: Engine, decision: str) -> None:
    for _ in range(200):
        try:
            await rank(engine, decision)
        except (Unavailable, StoreError):
            await asyncio.sleep(0.1)
        else:
            return
    raise AssertionError("the replica did not come back")


def test_a_standby_that_lost_the_tail_takes_over(
    pair: tuple[Server, Server], caplog: pytest.LogCaptureFixture
) -> None:
    primary, follower = pair

    async def story() -> None:
        where = standby.address(primary, follower)
        engines = [
            Engine(PostgresStore(where, database_clock=False), clock=Clock(), housekeeping=False)
            for _ in range(2)
        ]
        for engine in engines:
            await engine.open()
        await create(engines[0])
        await rounds(engines[0], 5)
        await asyncio.to_thread(standby.caught_up, primary, follower)
        await asyncio.to_thread(standby.cut_off, follower)
        await rounds(engines[0], 3, first=5)  # acknowledged, and only on the first server
        await engines[1].find("unwind")
        lost = {engine.rankers["unwind"].fold.state_hash() for engine in engines}
        await asyncio.to_thread(standby.take_over, primary, follower)
        with caplog.at_level(logging.ERROR, "rankloop.serving"):
            for number, engine in enumerate(engines):
                await _until_it_answers(engine, f"after {number}")
        assert "folded anew" in caplog.text
        assert (await answer(engines[0], "after 0")).learnt
        for engine in engines:
            await engine.find("unwind")
        states = {engine.rankers["unwind"].fold.state_hash() for engine in engines}
        verdict = await verify(engines[0].store, "unwind")
        assert verdict.holds, verdict.problems
        assert states == {verdict.state_hash}
        assert states.isdisjoint(lost)
        for engine in engines:
            await engine.close()

    play(story)
