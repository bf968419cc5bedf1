"""Batches in PostgreSQL: the same rows as in the simplest store, in one statement."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from rankloop.serving.log.records import Entry, Kind
from rankloop.serving.stores.contract import Diverged
from rankloop.serving.stores.postgres import PostgresStore
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server

_KINDS: tuple[Kind, ...] = ("decision", "feedback", "expire")


def _batch(draw: random.Random, names: list[str]) -> list[Entry]:
    # Few IDs, so that many come again: in the same batch, in another, with another body, as another kind.
    entries = []
    for _ in range(draw.choice((1, 5, 40))):
        kind, event = draw.choice(_KINDS), f"id-{draw.randrange(12)}"
        about = None if kind == "decision" else f"id-{draw.randrange(12)}"
        body = draw.randbytes(draw.randrange(30))
        entries.append(Entry(draw.choice(names), kind, event, body, draw.randbytes(4), about))
    return entries


def test_batches_are_those_of_the_simplest_store(postgresql: Server, fresh_schema: Callable[[], str]) -> None:
    async def story() -> None:
        draw = random.Random(5)
        store, simple = (
            PostgresStore(postgresql.url, schema=fresh_schema(), database_clock=False),
            MemoryStore(),
        )
        await store.open()
        await simple.open()
        simple.timeline = store.timeline
        names: list[str] = []
        again = 0
        for at in (10, 20, 15, 30, 30, 7, 40, 41, 42, 43):
            entries = _batch(draw, names) if names else []
            if len(names) < 3:  # a ranker is made in the middle of a batch, and twice
                names.append(f"ranker {3 - len(names)}")
                entries += [
                    Entry(names[-1], "config", "made", b"config"),
                    Entry(names[-1], "config", "made", b"again"),
                ]
            told = await store.append(entries, at=at)
            assert told == await simple.append(entries, at=at)
            again += sum(not one.new for one in told)
        assert again > 30
        for name in names:
            rows = await store.read(name, after=0, limit=1_000)
            assert len(rows) > 10
            assert rows == await simple.read(name, after=0, limit=1_000)
            assert await store.head(name) == await simple.head(name)
        await store.close()

    asyncio.run(story())


def test_a_batch_is_one_statement(
    postgresql: Server, fresh_schema: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        store = PostgresStore(postgresql.url, schema=fresh_schema())
        await store.open()
        names = [f"r{i}" for i in range(8)]
        await store.append([Entry(name, "config", "made", b"config") for name in names], at=0)
        await store.rankers()
        asked: list[str] = []
        async with store._pool.acquire() as connection:
            monkeypatch.setattr(store, "_once", lambda work, seconds: work(connection))
            with connection.query_logger(lambda record: asked.append(record.query)):
                for size in (1, 16, 300):
                    entries = [Entry(names[i % 8], "decision", f"{size}-{i}", b"body") for i in range(size)]
                    told = await store.append(entries, at=0)
                    assert [made.new for made in told] == [True] * size
        assert len(asked) == 3
        assert len(set(asked)) == 1  # prepared once
        await store.close()

    asyncio.run(story())


def test_a_decision_of_another_log_undoes_the_batch(
    postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    async def story() -> None:
        store = PostgresStore(postgresql.url, schema=fresh_schema())
        await store.open()
        await store.append([Entry(name, "config", "made", b"config") for name in "ab"], at=0)
        good = [Entry(name, "decision", name, b"", drawn_from=await store.head(name)) for name in "ab"]
        bad = Entry("b", "decision", "c", b"", drawn_from=(1, b"another link"))
        with pytest.raises(Diverged):
            await store.append([*good, bad], at=0)
        assert [(await store.head(name)).seq for name in "ab"] == [1, 1]
        assert [one.row.seq for one in await store.append(good, at=0)] == [2, 2]
        await store.close()

    asyncio.run(story())
