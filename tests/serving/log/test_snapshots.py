"""Snapshots: what they hold, and when they are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import msgspec
import pytest

from rankloop.rankers import RTop1F
from rankloop.serving import registry, served_ranker
from rankloop.serving.admission import Unavailable
from rankloop.serving.engine import Engine
from rankloop.serving.log import records, snapshots
from rankloop.serving.log.records import Config
from rankloop.serving.log.snapshots import upgrade
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import Store, StoreError
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server
from tests.serving.service import ITEMS, Clock, adds_up, answer, create, play, rank, rounds, running


def test_a_snapshot_comes_back_as_it_was() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            for i in range(10):
                await rank(engine, f"d{i}")
                await answer(engine, f"d{i}")
            await answer(engine, "parked")
            fold = engine.rankers["unwind"].fold
            taken = snapshots.take(fold, epoch=1)
            assert (taken.seq, taken.code_hash) == (fold.applied, registry.fingerprint(fold.config))
            assert taken.config_hash == registry.config_hash(fold.config)
            again = snapshots.revive(taken)
            assert again.state_hash() == fold.state_hash() == taken.state_hash
            assert again.estimates.report() == fold.estimates.report()
            assert (again.parked, again.counts, again.items) == (fold.parked, fold.counts, fold.items)

    play(story)


def test_a_snapshot_that_is_not_what_it_says_is_refused() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            taken = snapshots.take(engine.rankers["unwind"].fold, epoch=1)
            for change, words in [
                ({"state": b"\xc1"}, "cannot be read"),
                ({"seq": 5}, "another configuration"),
                ({"config_hash": "0" * 64}, "another configuration"),
                ({"state_hash": "0" * 64}, "another state"),
            ]:
                with pytest.raises(ValueError, match=words):
                    snapshots.revive(msgspec.structs.replace(taken, **change))

    play(story)


# Other versions and other arithmetic: the old state is served and not touched, until `upgrade` says "from here on".


@pytest.fixture
def version_2(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and from then on the code has version 2 of RTop1F."""
    return lambda: monkeypatch.setattr(RTop1F, "algorithm_version", 2)


def test_new_code_serves_the_old_state_and_learns_after_the_upgrade(version_2: Callable[[], None]) -> None:
    async def story() -> None:
        store = MemoryStore()
        async with running(store) as engine:
            await create(engine)
            await rounds(engine, 5)
            await engine.snapshot("unwind")
            await rounds(engine, 2, first=5)
            await rank(engine, "open")
            known = engine.rankers["unwind"].fold
        version_2()
        async with running(store) as engine:
            shown = await rank(engine, "d")
            assert (sorted(shown.items), shown.degraded, shown.model_seq) == (sorted(ITEMS), True, 11)
            words = "read-only: its log is of version 1 of RTop1F, and this code has version 2; run `rankloop upgrade`"
            with pytest.raises(Unavailable, match=words):
                await answer(engine, "open")
            assert words in engine.loaded.notices()[0]
            assert engine.ready
            assert await store.last_seq("unwind") == 16
        verdict = await verify(store, "unwind")
        assert verdict.problems == [
            "the replay failed: its log is of version 1 of RTop1F, and this code has version 2"
        ]
        told = await upgrade(store, "unwind", at=1_000_000)
        assert told.startswith("unwind: from row 17 on version 2")
        assert await upgrade(store, "unwind") == "unwind: up to date"
        async with running(store) as engine:
            fold = engine.rankers["unwind"].fold
            assert (fold.applied, fold.rounds, fold.counts) == (17, known.rounds, known.counts)
            assert fold.state_hash() == known.state_hash()
            assert (await answer(engine, "open")).learnt  # a list from before the upgrade
            await rounds(engine, 3, first=100)
            await engine.snapshot("unwind")
            await adds_up(engine)
        verdict = await verify(store, "unwind")
        assert (verdict.holds, verdict.earlier, verdict.other_code) == (True, 16, 1)

    play(story)


def test_old_code_beside_new_code_stops_learning_at_the_upgrade(
    version_2: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shared(MemoryStore):
        shared = True

    async def story() -> None:
        store = Shared()
        async with running(store) as old:
            await create(old)
            await rounds(old, 3)
            await old.snapshot("unwind")
            version_2()
            async with running(store) as new:
                assert (await rank(new, "from new code")).degraded
                assert await store.last_seq("unwind") == 7  # nothing was written
            await upgrade(store, "unwind")
            monkeypatch.undo()  # the old process runs the old code
            assert (await rank(old, "from old code")).degraded
            with pytest.raises(
                Unavailable, match="read-only: its log is of version 2 of RTop1F, and this code has"
            ):
                await answer(old, "round 0")

    play(story)


def test_without_a_snapshot_the_whole_log_can_be_folded_anew(version_2: Callable[[], None]) -> None:
    async def story() -> None:
        store = MemoryStore()
        async with running(store) as engine:
            await create(engine)
            await rounds(engine, 5)
        version_2()
        async with running(store) as engine:
            with pytest.raises(Unavailable, match="quarantined: its log is of version 1 of RTop1F"):
                await rank(engine)
        with pytest.raises(ValueError, match=r"has no snapshot that this code can go on from .* --refold"):
            await upgrade(store, "unwind")
        await upgrade(store, "unwind", refold=True)
        async with running(store) as engine:
            await rounds(engine, 2, first=5)
            await adds_up(engine)

    play(story)


def test_other_arithmetic_is_refused_at_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine, or a change of the code without a new version, that computes something else."""

    async def story() -> None:
        store = MemoryStore()
        async with running(store) as engine:
            await create(engine)
            await rounds(engine, 2)
            await engine.snapshot("unwind")
        monkeypatch.setattr(registry, "_probe", lambda kind, packed: "0" * 12)
        async with running(store) as engine:
            assert (await rank(engine)).degraded
            with pytest.raises(
                Unavailable, match=r"folded with the arithmetic \w+, and RTop1F computes 000000000000"
            ):
                await answer(engine, "round 1")

    play(story)


def test_the_probe_follows_what_is_learnt_and_not_who_asks() -> None:
    config = Config("RTop1F", 1, ITEMS)
    probe = registry.probe_of(config)
    assert probe == registry.probe_of(msgspec.structs.replace(config, seed=2, version=7, probe="x"))
    assert probe != registry.probe_of(msgspec.structs.replace(config, parameters={"k": 2}))
    assert probe != registry.probe_of(msgspec.structs.replace(config, items=ITEMS[:4]))
    assert registry.probe_of(Config("PMED", 1, ITEMS)) == "machine"


def test_the_port_answers_while_the_log_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        store = MemoryStore()
        async with running(store) as engine:
            for name in ("unwind", "second"):
                await create(engine, name)
            await rounds(engine, 40)
        monkeypatch.setattr(served_ranker, "_PAGE", 20)
        seen: list[str | None] = []
        engine = Engine(store, clock=Clock(), housekeeping=False)
        real = served_ranker.ServedRanker._fold

        async def slow(self: Any, new: Any) -> None:
            await real(self, new)
            seen.append(engine.trouble)
            with pytest.raises(Unavailable, match=r"'second' cannot be served yet: .* \(folding, \d+ %\)"):
                await engine.find("second")
            with pytest.raises(Unavailable, match=r"folding, \d+ %"):
                await create(engine, "third")

        monkeypatch.setattr(served_ranker.ServedRanker, "_fold", slow)
        await engine.open(wait=False)
        assert engine.trouble == "folding, 0 %"
        await engine.folded()
        assert seen[:2] == ["folding, 0 %", "folding, 25 %"]
        assert engine.trouble is None
        await engine.close()

    play(story)


async def _some_history(store: Store) -> tuple[str, list[records.Row]]:
    async with running(store) as engine:
        await create(engine)
        await rounds(engine, 3)
        await engine.snapshot("unwind")
        await rounds(engine, 2, first=3)
        return engine.rankers["unwind"].fold.state_hash(), await store.read("unwind", after=0, limit=99)


def _unlinked(rows: list[records.Row]) -> list[records.Row]:
    return [msgspec.structs.replace(row, link=b"", before=b"") for row in rows]


async def _goes_on(store: Store, state: str, rows: list[records.Row]) -> None:
    async with running(store) as engine:
        assert (await engine.find("unwind")).snapshot_seq == 7
        assert engine.rankers["unwind"].fold.state_hash() == state
        assert _unlinked(await store.read("unwind", after=0, limit=99)) == _unlinked(rows)
        await rounds(engine, 2, first=5)
        await adds_up(engine)


@pytest.mark.parametrize(
    ("version", "words"),
    [(4, "format 4 by a newer version of rankloop"), (2, "start the service of rankloop 0.2")],
)
def test_a_folder_of_another_format_is_refused(tmp_path: Path, version: int, words: str) -> None:
    async def story() -> None:
        await _some_history(SQLiteStore(tmp_path))
        connection = apsw.Connection(str(tmp_path / "rankloop.db"))
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        for more in ({}, {"own": False}, {"read_only": True}):
            with pytest.raises(ValueError, match=words):
                await SQLiteStore(tmp_path, **more).open()

    play(story)


def test_a_database_of_another_format_is_refused(postgresql: Server, fresh_schema: Callable[[], str]) -> None:
    store = PostgresStore(postgresql.url, schema=fresh_schema(), database_clock=False)

    async def story() -> None:
        await _some_history(store)
        for version, words in (
            (5, "format 5, written by a newer version of rankloop"),
            (3, "of rankloop 0.2 on it"),
        ):
            postgresql.sql(f"UPDATE {store.schema}.format SET version = {version}")
            with pytest.raises(StoreError, match=words):
                await store.open()
        postgresql.sql(
            f"UPDATE {store.schema}.format SET version = 4; "
            f"ALTER TABLE {store.schema}.ranker ADD COLUMN place text NOT NULL DEFAULT 'here'"
        )
        await store.open()
        await store.close()
        postgresql.sql(f"UPDATE {store.schema}.ranker SET place = 'gone'")
        with pytest.raises(StoreError, match="moved by a development version"):
            await store.open()

    play(story)


def test_a_database_with_a_table_of_replicas_goes_on(
    postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    """As 0.3 left it: one lease for all rankers, replicas in a table of their own, and functions that know of both."""
    schema = fresh_schema()

    def store(**settings: Any) -> PostgresStore:
        return PostgresStore(postgresql.url, schema=schema, database_clock=False, **settings)

    async def story() -> None:
        state, rows = await _some_history(store())
        connection = await asyncpg.connect(postgresql.url)
        await connection.execute(
            f"SET search_path TO {schema}; DROP TABLE ranker_lease; DROP SEQUENCE lease_epoch; "
            "ALTER TABLE ranker DROP COLUMN changed; "
            "CREATE TABLE lease (one int PRIMARY KEY CHECK (one = 1), holder text NOT NULL, epoch bigint NOT NULL, "
            "until double precision NOT NULL); INSERT INTO lease VALUES (1, 'somebody', 7, 9e9); "
            "CREATE TABLE replica (id text PRIMARY KEY, address text NOT NULL, epoch bigint NOT NULL UNIQUE, "
            "until double precision NOT NULL); INSERT INTO replica VALUES ('one', 'http://one', 1000000000000, 9e9); "
            "CREATE FUNCTION check_epoch(wanted bigint) RETURNS void LANGUAGE sql AS $$ SELECT 1 $$"
        )
        await connection.close()
        looking = store()
        await looking.open()
        verdict = await verify(looking, "unwind")
        assert (verdict.holds, verdict.state_hash) == (True, state), verdict.problems
        await looking.close()
        await _goes_on(store(), state, rows)

    asyncio.run(story())
