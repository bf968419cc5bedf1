"""A database whose rankers were moved by an earlier version: it opens, verifies and goes on without an upgrade."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rankloop.serving.admission import NotFound
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.postgres import PostgresStore
from tests.serving.postgresql import Server
from tests.serving.service import adds_up, answer, create, play, rank, rounds, running

# The tables as that version made them.
OLD = """
ALTER TABLE {schema}.ranker ADD COLUMN moves bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.ranker ADD COLUMN mover text NOT NULL DEFAULT '';
CREATE TABLE {schema}.home (ranker text PRIMARY KEY, database text NOT NULL);
"""
# What a move left behind, and what it brought.
MOVE = """
INSERT INTO {to}.ranker (id, name, last_seq, last_at, link, place, moves, origin)
    SELECT 100 + id, name, last_seq, last_at, link, 'here', 1, '{origin}' FROM {old}.ranker WHERE name = 'unwind';
INSERT INTO {to}.log SELECT 100 + ranker, seq, at, kind, event, decision, digest, body, link FROM {old}.log
    WHERE ranker = (SELECT id FROM {old}.ranker WHERE name = 'unwind');
DELETE FROM {old}.log WHERE ranker = (SELECT id FROM {old}.ranker WHERE name = 'unwind');
DELETE FROM {old}.snapshot WHERE ranker = (SELECT id FROM {old}.ranker WHERE name = 'unwind');
UPDATE {old}.ranker SET place = 'gone' WHERE name = 'unwind';
"""


def test_databases_with_rankers_that_were_moved(postgresql: Server, fresh_schema: Callable[[], str]) -> None:
    old, new = (PostgresStore(postgresql.url, schema=fresh_schema(), database_clock=False) for _ in range(2))

    async def before() -> None:
        async with running(old) as engine:
            await create(engine)
            await create(engine, "other")
            await rounds(engine, 5)
        async with running(new):
            pass

    async def moved() -> None:
        async with running(old) as engine:
            assert await engine.names() == ["other"]
            await engine.find("other")
            await adds_up(engine, "other")
            with pytest.raises(NotFound, match="no ranker 'unwind'"):
                await rank(engine, "more")
        async with running(new) as engine:
            assert await engine.names() == ["unwind"]
            await engine.find("unwind")
            await rounds(engine, 5, first=5)
            await adds_up(engine)

    async def half_way() -> None:
        async with running(new) as engine:
            assert (await verify(new, "unwind")).holds
            with pytest.raises(NotFound, match="half way to another database"):
                await answer(engine, "round 1", event_id="again")
            await engine.housekeeping.tick()
            assert engine.trouble is None

    play(before)
    for schema in (old.schema, new.schema):
        postgresql.sql(OLD.format(schema=schema))
    postgresql.sql(MOVE.format(old=old.schema, to=new.schema, origin=old.timeline))
    play(moved)
    postgresql.sql(f"UPDATE {new.schema}.ranker SET place = 'leaving', mover = 'x' WHERE name = 'unwind'")
    play(half_way)
