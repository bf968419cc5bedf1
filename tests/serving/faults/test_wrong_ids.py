"""Feedback on IDs that no list has: one of them over and over, or ever new ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankloop.serving.admission import Busy, Limits
from rankloop.serving.api import FeedbackRequest
from rankloop.serving.log.decision_state import PARKED_PER_DECISION
from rankloop.serving.log.records import Row
from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.memory_store import MemoryStore
from tests.serving.service import Clock, adds_up, answer, create, play, rank, running


def _count(store: SQLiteStore, reads: list[int]) -> None:
    plain = store.stories

    async def stories(ranker: str, decisions: list[str]) -> dict[str, list[Row]]:
        found = await plain(ranker, decisions)
        reads.append(sum(map(len, found.values())))
        return found

    store.stories = stories  # type: ignore[method-assign]


def test_one_wrong_id_over_and_over_reads_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        store, reads = SQLiteStore(tmp_path), list[int]()
        async with running(store) as engine:
            await create(engine)
            _count(store, reads)
            for i in range(40):
                assert (await answer(engine, "undefined", event_id=f"e{i}")).status == "parked"
            assert sum(reads) == 0
            fold = engine.rankers["unwind"].fold
            assert len(fold.parked["undefined"]) == PARKED_PER_DECISION
            assert len(fold.parked._oldest) == 1
            assert fold.counts.dead == 40 - PARKED_PER_DECISION
            await rank(engine, "undefined")  # and if it comes, it has one answer
            assert (fold.counts.learnt, fold.parked) == (1, {})
            await adds_up(engine)

    play(story)


def test_many_wrong_ids_block_nothing_that_is_right() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(limits=Limits(parked=50), clock=clock) as engine:
            await create(engine)
            await rank(engine, "good")
            await rank(engine, "also good")
            for i in range(50):
                assert (await answer(engine, f"wrong {i}")).status == "parked"
            with pytest.raises(Busy, match="limit reached: 50 feedback events"):
                await answer(engine, "one more")
            assert (await answer(engine, "good")).learnt
            mixed = [FeedbackRequest(name, relevance=[1.0]) for name in ("wrong again", "also good")]
            told = await engine.feedback("unwind", mixed)
            assert [(one.status, one.seq) for one in told] == [("busy", 0), ("accepted", 55)]
            clock.seconds += 61  # their time is over, and nobody had to ask for a list
            assert (await answer(engine, "one more")).status == "parked"
            assert len(engine.rankers["unwind"].fold.parked) == 1
            await adds_up(engine)

    play(story)


def test_feedback_that_waits_is_given_up_in_time_after_a_restart_too() -> None:
    async def story() -> None:
        clock, store = Clock(), MemoryStore()
        async with running(store, clock=clock) as engine:
            await create(engine)
            for i in range(30):
                clock.seconds += 2
                await answer(engine, "a", event_id=f"a{i}")
                await answer(engine, f"b{i}")
            await engine.snapshot("unwind")
        async with running(store, clock=clock) as engine:
            clock.seconds += 31
            await rank(engine, "another")
            fold = engine.rankers["unwind"].fold
            assert sorted(fold.parked) == sorted(["a", *(f"b{i}" for i in range(15, 30))])
            assert len(fold.parked["a"]) == 15
            await adds_up(engine)

    play(story)
