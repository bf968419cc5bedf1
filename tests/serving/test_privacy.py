"""Erasure: the context of a data subject becomes unreadable everywhere, and everything else stays as it was."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from cryptography.exceptions import InvalidTag
from typer.testing import CliRunner

from rankloop.cli import app
from rankloop.serving import privacy
from rankloop.serving.admission import Conflict, RequestError, TooLarge
from rankloop.serving.engine import Engine
from rankloop.serving.log import records
from rankloop.serving.log.export import answered_lists, positions
from rankloop.serving.privacy import encrypted, read_context
from rankloop.serving.retention import Retention, close_history
from rankloop.serving.stores.backup import backup, restore
from rankloop.serving.stores.contract import Store, StoreError, SubjectKey
from rankloop.serving.stores.postgres import PostgresStore
from rankloop.serving.stores.sqlite import SQLiteStore
from rankloop.serving.views import decision_answer, explain_answer
from tests.serving.memory_store import MemoryStore
from tests.serving.postgresql import Server
from tests.serving.service import adds_up, answer, create, play, rank, running

SECRET = "the name of a street that nobody else lives in"


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, fresh_schema: Callable[[], str]) -> Store:
    if request.param == "memory":
        return MemoryStore()
    if request.param == "sqlite":
        return SQLiteStore(tmp_path / "live")
    url = request.getfixturevalue("postgresql").url
    return PostgresStore(url, schema=fresh_schema(), database_clock=False, segments=tmp_path / "segments")


async def _ask(engine: Engine, decision_id: str, subject: str | None = "anna", **more: Any) -> Any:
    return await rank(engine, decision_id, context={"street": SECRET}, subject=subject, **more)


async def _context(engine: Engine, decision_id: str) -> tuple[Any, bool]:
    told = await decision_answer(await engine.find("unwind"), decision_id)
    return told.context, told.context_erased


def test_what_is_erased_is_gone_and_the_rest_stays(store: Store) -> None:
    async def story() -> None:
        async with running(store) as engine:
            await create(engine)
            await _ask(engine, "a1")
            await _ask(engine, "b1", "bert")
            await _ask(engine, "plain", None)
            for one in ("a1", "b1", "plain"):
                await answer(engine, one)
            assert await _context(engine, "a1") == ({"street": SECRET}, False)
            row = await engine.store.find("unwind", "decision", "a1")
            assert row is not None
            assert SECRET.encode() not in row.body
            assert b"anna" not in row.body
            state = engine.rankers["unwind"].fold.state_hash()
            assert await engine.store.erase_subject("anna", at=1) == 1
            assert await engine.store.erase_subject("anna", at=2) == 0
            assert await _context(engine, "a1") == (None, True)
            assert await _context(engine, "b1") == ({"street": SECRET}, False)
            assert await _context(engine, "plain") == ({"street": SECRET}, False)
            assert (await explain_answer(engine.rankers["unwind"], "a1")).context_erased
            assert not (await explain_answer(engine.rankers["unwind"], "b1")).context_erased
            table = [positions(one)[0] async for one in answered_lists(engine.store, "unwind")]
            assert [(row["decision"], row["context_erased"]) for row in table] == [
                ("a1", True),
                ("b1", False),
                ("plain", False),
            ]
            assert await engine.store.find("unwind", "decision", "a1") == row
            assert engine.rankers["unwind"].fold.state_hash() == state
            await adds_up(engine)

    play(story)


def test_a_request_that_is_sent_again_is_the_same_until_its_key_is_gone(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine)
            first = await _ask(engine, "a1")
            again = await _ask(engine, "a1")
            assert again.duplicate
            assert again.items == first.items
            with pytest.raises(Conflict):
                await rank(engine, "a1", context={"street": "another"}, subject="anna")
            await engine.store.erase_subject("anna", at=1)
            await _ask(
                engine, "a2"
            )  # this process still has the key, and nobody reads what it encrypts with it
            assert await _context(engine, "a2") == (None, True)
            engine.clock._steady.seconds += privacy.REMEMBERED + 1
            await _ask(engine, "a3")  # a key of its own
            assert await _context(engine, "a3") == ({"street": SECRET}, False)
            with pytest.raises(Conflict):
                await _ask(engine, "a1")
            await adds_up(engine)

    play(story)


def test_features_cannot_be_erased_and_are_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(MemoryStore()) as engine:
            await create(engine)
            with pytest.raises(RequestError, match="cannot be erased"):
                await _ask(engine, "a", features=[[1.0]])
            with pytest.raises(RequestError, match="cannot be erased"):
                await _ask(engine, "a", shared=[1.0])
            with pytest.raises(TooLarge):
                await rank(engine, "a", context="x" * 20_000, subject="anna")
            deep: Any = 1
            for _ in range(200):
                deep = [deep]
            with pytest.raises(RequestError, match="nested at most"):
                await rank(engine, "a", context=deep, subject="anna")
            assert (await rank(engine, "nothing to keep", subject="anna")).items
            assert await engine.store.subject_key("anna") is None

    play(story)


def test_the_key_is_overwritten_in_the_file(tmp_path: Path) -> None:
    async def story() -> bytes:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine)
            await _ask(engine, "a1")
            found = await engine.store.subject_key("anna")
            assert found is not None
            assert found.key is not None
            await engine.store.erase_subject("anna", at=1)
            return found.key

    keys: list[bytes] = []

    async def keep() -> None:
        keys.append(await story())

    play(keep)
    for path in tmp_path.iterdir():
        if path.is_file():
            told = path.read_bytes()
            assert keys[0] not in told, path
            assert b"anna" not in told, path


@pytest.mark.parametrize("n_subjects", [50, 2_000])
def test_no_copy_of_a_key_is_left_where_the_table_has_grown(tmp_path: Path, n_subjects: int) -> None:
    """A page of a B-tree that is split keeps the bytes of what moved to another page."""
    order = random.Random(1)
    keys = {
        f"subject-{i:05}": SubjectKey(order.randbytes(6).hex(), os.urandom(64)) for i in range(n_subjects)
    }
    gone = set(list(keys)[:: n_subjects // 25])

    async def story() -> None:
        store = SQLiteStore(tmp_path)
        await store.open()
        for subject, key in keys.items():
            await store.write_subject_key(subject, key, at=1)
        for subject in gone:
            assert await store.erase_subject(subject, at=2) == 1
        told = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        for subject, key in keys.items():
            assert key.key is not None
            assert (key.key in told, subject.encode() in told) == (subject not in gone,) * 2
            left = SubjectKey(key.key_id, None) if subject in gone else key
            assert await store.find_subject_key(key.key_id) == left
        await store.close()

    asyncio.run(story())


def test_keys_are_not_left_in_the_pages_of_a_database(
    postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    keys: list[bytes] = []

    async def story() -> None:
        async with running(
            PostgresStore(postgresql.url, schema=fresh_schema(), database_clock=False)
        ) as engine:
            await create(engine)
            await _ask(engine, "a1")
            found = await engine.store.subject_key("anna")
            assert found is not None
            assert found.key is not None
            keys.append(found.key)
            postgresql.sql("CHECKPOINT")
            assert _holds(postgresql, found.key)
            await engine.store.erase_subject("anna", at=1)

    play(story)
    postgresql.sql("CHECKPOINT")
    assert not _holds(postgresql, keys[0])


def _holds(server: Server, key: bytes) -> bool:
    return any(
        key in path.read_bytes() for path in (server.folder / "data" / "base").rglob("*") if path.is_file()
    )


def test_a_reader_that_keeps_old_pages_is_no_success(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(SQLiteStore(tmp_path, busy_seconds=0.1)) as engine:
            await create(engine)
            await _ask(engine, "a1")
            found = await engine.store.subject_key("anna")
            assert found is not None
            assert found.key is not None
            reader = apsw.Connection(str(engine.store.path))
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM log").fetchall()
            with pytest.raises(StoreError, match="destroyed, but older pages with them are still in"):
                await engine.store.erase_subject("anna", at=1)
            assert await _context(engine, "a1") == (None, True)
            reader.close()
            assert await engine.store.erase_subject("anna", at=2) == 0
            assert not any(found.key in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())

    play(story)


def test_first_requests_at_once_share_one_key(store: Store) -> None:
    async def story() -> None:
        async with running(store) as engine:
            await create(engine)
            await asyncio.gather(*(_ask(engine, f"a{i}") for i in range(10)))
            engine.sealing._keys.clear()  # as in another process
            for i in range(10):
                assert (await _ask(engine, f"a{i}")).duplicate
            assert await engine.store.erase_subject("anna", at=1) == 1
            made = [SubjectKey(f"k{i}", bytes([i]) * 64) for i in range(10)]
            kept = await asyncio.gather(*(engine.store.write_subject_key("bert", key, at=1) for key in made))
            assert len(set(kept)) == 1
            assert await engine.store.subject_key("bert") == kept[0]

    play(story)


def test_segments_and_copies_hold_ciphertext_and_copies_their_own_keys(
    tmp_path: Path, postgresql: Server, fresh_schema: Callable[[], str]
) -> None:
    schema = fresh_schema()

    def database() -> PostgresStore:
        return PostgresStore(
            postgresql.url, schema=schema, database_clock=False, segments=tmp_path / "shared"
        )

    async def story() -> None:
        async with running(SQLiteStore(tmp_path / "live")) as engine:
            await create(engine)
            for i in range(4):
                await _ask(engine, f"a{i}")
                await answer(engine, f"a{i}")
            await close_history(engine.store, "unwind", Retention(rows=2), now=0, expired_through=1 << 40)
            await backup(engine.store, tmp_path / "copy")
            assert await _context(engine, "a0") == ({"street": SECRET}, False)  # from its segment
            await engine.store.erase_subject("anna", at=1)
            assert await _context(engine, "a0") == (None, True)
            await adds_up(engine)
        await restore(tmp_path / "copy", database())
        for other in (SQLiteStore(tmp_path / "copy"), database()):
            async with running(other) as engine:
                assert await _context(engine, "a0") == ({"street": SECRET}, False)
                assert await engine.store.erase_subject("anna", at=1) == 1
                assert await _context(engine, "a0") == (None, True)
                await adds_up(engine)

    play(story)
    for path in tmp_path.rglob("*.parquet"):
        assert SECRET.encode() not in path.read_bytes()


def test_context_of_another_list_is_not_taken_for_this_one(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        key = SubjectKey("k", bytes(64))
        await store.write_subject_key("anna", key, at=1)
        sealed = encrypted(key, {"a": 1}, ranker="unwind", decision_id="d1")
        assert sealed == encrypted(key, {"a": 1}, ranker="unwind", decision_id="d1")
        assert (await read_context(store, sealed, ranker="unwind", decision_id="d1")).value == {"a": 1}
        for ranker, decision_id in (("unwind", "d2"), ("other", "d1")):
            with pytest.raises(InvalidTag):
                await read_context(store, sealed, ranker=ranker, decision_id=decision_id)

    play(story)


def test_nobody_can_bring_an_encrypted_context(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(MemoryStore()) as engine:
            await create(engine)
            await _ask(engine, "a1")
            row = await engine.store.find("unwind", "decision", "a1")
            assert row is not None
            sealed = records.read_decision(row.body).context
            for given in (sealed, {"inside": sealed}):
                for subject in (None, "anna"):
                    with pytest.raises(RequestError):
                        await rank(engine, "a2", context=given, subject=subject)

    play(story)


def test_the_command_erases_beside_a_running_service(tmp_path: Path) -> None:
    def command(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, "--data", str(tmp_path)])
        assert done.exit_code == 0, done.output
        return done.output

    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            await create(engine)
            await _ask(engine, "a1")
            told = await asyncio.to_thread(command, "erase", "--subject", "anna")
            assert "1 key destroyed" in told
            assert await _context(engine, "a1") == (None, True)

    play(story)
    assert "nothing to erase" in command("erase", "--subject", "anna")
    assert "adds up" in command("verify")
