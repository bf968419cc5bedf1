"""One flipped bit in any column of a PostgreSQL store: `verify` names it, and no start is silently wrong."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from typing import Any

import asyncpg
import msgspec

from rankloop.serving.admission import RequestError
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import StoreError
from rankloop.serving.stores.postgres import PostgresStore
from tests.serving.postgresql import Server
from tests.serving.service import create, play, rank, rounds, running

TRIES = int(os.environ.get("RANKLOOP_FLIPS", "24"))
# What is read again after a restart; clocks and the lease go on from whatever they are.
COLUMNS = {
    "log": ("ranker", "seq", "at", "kind", "event", "decision", "digest", "body", "link"),
    "snapshot": ("ranker", "seq", "at", "epoch", "code", "config", "hash", "state", "link", "seal"),
    "ranker": ("id", "name", "last_seq", "link"),
    "meta": ("value",),
}


class Flip:
    """One bit of one value, and the way back."""

    def __init__(self, table: str, column: str, rng: random.Random) -> None:
        self.table, self.column, self.rng = table, column, rng
        self.what = ""

    async def flip(self, connection: Any) -> bool:
        """Whether it was done: an index or the type of the column may refuse it."""
        wanted = f"SELECT ctid, {self.column} FROM {self.table} WHERE {self.column} IS NOT NULL ORDER BY ctid"
        rows = await connection.fetch(wanted)
        row = self.rng.choice(rows)
        self.old = row[1]
        new = self._changed(self.old)
        if new is None:
            return False
        sql = f"UPDATE {self.table} SET {self.column} = $1 WHERE ctid = $2 RETURNING ctid"
        try:
            self.place = await connection.fetchval(sql, new, row[0])
        except (asyncpg.UniqueViolationError, asyncpg.DataError):
            return False
        self.what = f"{self.table}.{self.column}: {self.old!r:.40} to {new!r:.40}"
        return True

    async def back(self, connection: Any) -> None:
        await connection.execute(
            f"UPDATE {self.table} SET {self.column} = $1 WHERE ctid = $2", self.old, self.place
        )

    def _changed(self, old: Any) -> Any:
        if isinstance(old, int):
            return old ^ 1 << self.rng.randrange(30)
        changed = bytearray(old.encode() if isinstance(old, str) else old)
        if not changed:
            return None
        place = self.rng.randrange(len(changed))
        changed[place] ^= 1 << self.rng.randrange(7 if isinstance(old, str) else 8)
        if isinstance(old, bytes):
            return bytes(changed)
        return None if 0 in changed else changed.decode()  # a text has no zeros


async def _problems(server: Server, schema: str) -> list[str]:
    """What `rankloop verify` would say."""
    store = PostgresStore(server.url, schema=schema)
    await store.open()
    try:
        names = await store.rankers()
        found = await store.problems()
        for name in names:
            found += (await verify(store, name)).problems
        return found if names else ["there are no rankers"]
    except StoreError as error:
        return [str(error)]
    finally:
        await store.close()


async def _start(server: Server, schema: str) -> bytes | None:
    """The whole state that a start comes to; None where the ranker is not served."""
    async with running(PostgresStore(server.url, schema=schema)) as engine:
        try:
            served = await engine.find("unwind")
        except RequestError:
            return None
        return msgspec.msgpack.encode(served.fold.save())


def test_a_flipped_bit_is_found_and_no_start_is_silently_wrong(
    postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    async def story() -> None:
        schema, rng = fresh_schema(), random.Random(1)
        async with running(PostgresStore(postgresql.url, schema=schema)) as engine:
            await create(engine)
            await rounds(engine, 4)
            await engine.snapshot("unwind")
            await rounds(engine, 4, first=4)
            await engine.snapshot("unwind")
            await rounds(engine, 2, first=8)
            await rank(engine, "open", context={"hour": 3})
        assert await _problems(postgresql, schema) == []
        truth = await _start(postgresql, schema)
        connection = await asyncpg.connect(postgresql.url, server_settings={"search_path": schema})
        places = itertools.cycle([(table, one) for table, columns in COLUMNS.items() for one in columns])
        done, served = 0, 0
        while done < TRIES:
            flip = Flip(*next(places), rng)
            if not await flip.flip(connection):
                continue
            done += 1
            assert await _problems(postgresql, schema), flip.what
            state = await _start(postgresql, schema)
            assert state in (truth, None), f"a start with another state after {flip.what}"
            served += state is not None
            await flip.back(connection)
        await connection.close()
        assert 0 < served < TRIES  # a bad snapshot is skipped, an old row is not needed; others are refused
        assert await _problems(postgresql, schema) == []

    play(story)
