"""A disk that hangs: the event loop goes on, waits end, readiness says so; and all is well when it answers again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rankloop.serving.admission import RequestError
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.stores.contract import StoreError
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.faults.slow_disk import SlowDisk, impatient
from tests.serving.service import adds_up, answer, create, play, rank, running


@pytest.fixture
def disk() -> Iterator[SlowDisk]:
    made = SlowDisk("slow")
    yield made
    made.release()
    made.unregister()


async def _get(engine: Engine, method: str, path: str, **more: object) -> httpx.Response:
    transport = httpx.ASGITransport(App(engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.request(method, path, json=more or None)


async def _ready(engine: Engine) -> None:
    async with asyncio.timeout(60):
        while engine.trouble is not None:
            await asyncio.sleep(0.01)


def test_a_read_that_hangs_does_not_stop_the_loop(tmp_path: Path, disk: SlowDisk) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path, vfs="slow")) as engine:
            await create(engine)
            for name in ("d", "e"):
                await rank(engine, name)
            engine.rankers["unwind"].fold.recent.clear()  # as if they were long ago
            disk.hang()
            with impatient(engine, 0.3):
                await _nothing_waits_for_good(engine, disk)
                # At once: it would have to wait for the first.
                with pytest.raises(StoreError, match="did not answer"):
                    await answer(engine, "e")
                assert (await _get(engine, "GET", "/v1/rankers/unwind/decisions/d")).status_code == 503
            disk.release()
            await _ready(engine)
            for name in ("d", "e"):
                assert (await answer(engine, name)).learnt
            await adds_up(engine)

    play(story)


async def _nothing_waits_for_good(engine: Engine, disk: SlowDisk) -> None:
    async with asyncio.timeout(60):
        while not disk.hanging.is_set():  # a thread that began late is not waited for, and asked again
            body = {"decision_id": "d", "relevance": [1.0]}
            asking = asyncio.create_task(_get(engine, "POST", "/v1/rankers/unwind/feedback", **body))
            while not (disk.hanging.is_set() or asking.done()):
                await asyncio.sleep(0.001)
        assert (await _get(engine, "GET", "/livez")).status_code == 200
        assert not disk.rescued  # the loop went on while the disk hung
        told = await asking
    assert (told.status_code, told.headers["retry-after"]) == (503, "1")
    assert "the disk did not answer" in told.text
    assert (await _get(engine, "GET", "/readyz")).status_code == 503


@pytest.mark.parametrize("after", range(0, 14, 2))
def test_a_write_that_hangs_anywhere_does_not_stop_the_loop(
    after: int, tmp_path: Path, disk: SlowDisk
) -> None:
    async def story() -> None:
        store = SQLiteStore(tmp_path, vfs="slow")
        async with running(store) as engine:
            await create(engine)
            disk.hang(after)
            with impatient(engine, 0.1):
                asking = [asyncio.create_task(rank(engine, f"d{i}")) for i in range(3)]
                done = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 60)
                assert not disk.rescued
                if disk.hanging.is_set():  # otherwise there were not so many operations
                    assert all(isinstance(one, RequestError) and one.status == 503 for one in done)
                    assert engine.trouble is not None
                    with pytest.raises(RequestError):
                        await rank(engine, "another")
            disk.release()
            await _ready(engine)
            for i in range(3):
                await rank(engine, f"d{i}")
            assert await store.last_seq("unwind") == 4
            await adds_up(engine)

    play(story)


def test_calls_that_write_beside_the_batches_have_an_end_too(tmp_path: Path, disk: SlowDisk) -> None:
    async def story() -> None:
        store = SQLiteStore(tmp_path, vfs="slow")
        async with running(store) as engine:
            await create(engine)
            disk.hang()
            with impatient(engine, 0.1):
                while (
                    not disk.hanging.is_set()
                ):  # a thread that began late is not waited for, and asked again
                    with pytest.raises(StoreError, match="did not answer"):
                        await engine.archive("unwind")
            disk.release()
            async with asyncio.timeout(60):
                while "unwind" in await store.rankers():  # it was under way, and was done
                    await asyncio.sleep(0.01)
            with pytest.raises(RequestError, match="there is no ranker"):
                await engine.archive("unwind")
            assert "unwind" not in engine.rankers
            await create(engine)
            await rank(engine, "d")
            await adds_up(engine)

    play(story)
