"""One bad request or one bad ranker stops nobody else: refused before anything is written, or quarantined and named."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rankloop.serving.admission import Limits, RequestError, Unavailable
from rankloop.serving.api import ResetRequest
from rankloop.serving.log import records
from rankloop.serving.log.export import answered_lists
from rankloop.serving.log.records import Config, Decision, Entry
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.service import ITEMS, adds_up, answer, create, play, rank, rounds, running


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (nested(32), "nested at most 32 deep"),
        (nested(965), "nested at most 32 deep"),
        (nested(100_000), "nested at most 32 deep"),
        ({"a": {"b": [1 << 64]}}, "integers of 64 bits"),
        ([-(1 << 63) - 1], "integers of 64 bits"),
        ({1: "one"}, "strings as keys, got 1"),
        ([{None: 1}], "strings as keys, got None"),
        ([datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)], "must not have a datetime"),
        (msgspec.msgpack.Ext(5, b"x"), "must not have a Ext"),
        (b"bytes", "must not have a bytes"),
    ],
)
def test_a_context_that_could_not_be_read_again_is_refused(context: Any, words: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            with pytest.raises(RequestError, match=words) as refused:
                await rank(engine, "d", context=context)
            assert (refused.value.status, refused.value.field) == (422, "context")
            with pytest.raises(RequestError, match=words):
                await create(engine, "other", parameters={"measure": context})
            with pytest.raises(RequestError, match=words):
                await engine.reset("unwind", ResetRequest(parameters={"measure": context}))
            assert await engine.store.last_seq("unwind") == 1
            assert await engine.store.rankers() == ["unwind"]
            await rank(engine, "d", context=[nested(30), (1 << 64) - 1, -(1 << 63), {"a": None, "b": 1.5}])
            await adds_up(engine)

    play(story)


def test_nothing_is_written_that_does_not_decode() -> None:
    async def story() -> None:
        async with running(limits=Limits(row_bytes=2_000)) as engine:
            await create(engine)
            with pytest.raises(RequestError, match="cannot be read again"):
                await engine.write(Entry("unwind", "feedback", "e", b"\xc1", b""))
            with pytest.raises(RequestError, match="cannot be read again"):
                await engine.write(Entry("unwind", "feedback", "e\ud800", b"", b""))
            with pytest.raises(RequestError, match=r"may have 2,000 bytes, this one has 3,\d+"):
                await rank(engine, "d", context="x" * 3_000)
            assert await engine.store.last_seq("unwind") == 1

    play(story)


def deep_decision() -> bytes:
    """The body of a decision such as older code has written: its context is nested 5,000 deep."""
    plain = records.encode(Decision(1, 0, b"", b"", 0, False, context="here"))
    return plain.replace(msgspec.msgpack.encode("here"), b"\x91" * 5_000 + b"\x01")


async def _with_a_bad_row(folder: Path) -> None:
    async with running(SQLiteStore(folder)) as engine:
        for name in ("unwind", "bad", "after"):
            await create(engine, name)
        await rounds(engine, 3)
        await rank(engine, "b1", "bad")
        assert (await answer(engine, "b1", name="bad")).learnt
        await engine.store.append([Entry("bad", "decision", "deep", deep_decision(), b"")], at=1)


def test_a_ranker_that_cannot_be_folded_is_quarantined_and_the_others_serve(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        await _with_a_bad_row(tmp_path)
        with caplog.at_level(logging.ERROR, "rankloop.serving"):
            async with running(SQLiteStore(tmp_path)) as engine:
                for call in (
                    rank(engine, "d", "bad"),
                    answer(engine, "b1", name="bad"),
                    engine.snapshot("bad"),
                ):
                    with pytest.raises(Unavailable, match="ranker 'bad' is quarantined: ") as refused:
                        await call
                    assert refused.value.status == 503
                await rounds(engine, 3, first=3)
                await rank(engine, "d", "after")
                (notice,) = engine.loaded.notices()
                assert notice.startswith("ranker 'bad' is quarantined: ")
                assert "ranker 'bad' is quarantined, the others are served" in caplog.text
                verdicts = {name: await verify(engine.store, name) for name in await engine.store.rankers()}
                assert {name: one.holds for name, one in verdicts.items()} == {
                    "unwind": True,
                    "bad": False,
                    "after": True,
                }
                assert verdicts["bad"].problems[0].startswith("row 4 cannot be read: ")
                left_out: list[str] = []
                found = [
                    one.row.event_id async for one in answered_lists(engine.store, "bad", left_out.append)
                ]
                assert found == ["b1"]
                assert len(left_out) == 1
                assert left_out[0].startswith("the list of row 4 cannot be read and is left out: ")

    play(story)


def test_a_ranker_that_breaks_while_it_runs_is_quarantined_alone() -> None:
    async def story() -> None:
        async with running() as engine:
            for name in ("unwind", "bad"):
                await create(engine, name)
            await rank(engine, "d", "bad")

            def broken(*_: Any) -> None:
                raise ArithmeticError("no such number")

            engine.rankers["bad"].fold.ranker.learn = broken  # type: ignore[method-assign]
            with pytest.raises(Unavailable, match="ranker 'bad' is quarantined: no such number"):
                await answer(engine, "d", name="bad")
            await rounds(engine, 3)
            await adds_up(engine)

    play(story)


def test_a_ranker_that_would_take_too_much_memory_is_never_built(tmp_path: Path) -> None:
    """Refused when it is made, and quarantined where older code has let it in."""
    items = [f"item {i}" for i in range(10_000)]
    config = Config("PMED", 1, items, {"n_positions": 1})

    async def story() -> None:
        async with running(SQLiteStore(tmp_path)) as engine:
            with pytest.raises(
                RequestError, match=r"PMED with 10,000 items would need [\d,]+ bytes of memory"
            ):
                await create(engine, "large", algorithm="PMED", items=items, parameters={"n_positions": 1})
            await create(engine)
            body = records.encode(config)
            await engine.store.append([Entry("large", "config", "large", body, b"")], at=1)
        async with running(SQLiteStore(tmp_path)) as engine:
            with pytest.raises(
                Unavailable, match=r"'large' is quarantined: PMED with 10,000 items would need"
            ):
                await engine.find("large")
            await rank(engine)
        async with running(limits=Limits(ranker_bytes=100)) as engine:
            with pytest.raises(RequestError, match="the limit for one ranker is 100"):
                await create(engine, items=ITEMS)

    play(story)
