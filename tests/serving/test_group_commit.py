"""Group commit: what waits together is written together, and nothing is dropped silently."""

from __future__ import annotations

import asyncio

import pytest

from rankloop.serving.admission import Busy, Limits, Unavailable
from rankloop.serving.api import (
    FeedbackRequest,
)
from rankloop.serving.group_commit import GroupCommit, Written
from rankloop.serving.log.records import Entry, Row
from tests.serving.service import create, play, rank, running


def test_a_full_queue_says_so_and_writes_nothing() -> None:
    async def story() -> None:
        async with running(limits=Limits(waiting=4)) as engine:
            await create(engine)
            answers = await asyncio.gather(
                *(rank(engine, f"d{i}") for i in range(10)), return_exceptions=True
            )
            refused = [one for one in answers if isinstance(one, Busy)]
            assert len(refused) == 6
            assert await engine.store.last_seq("unwind") == 1 + 4

    play(story)


def test_a_list_of_feedback_is_written_together() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            for i in range(5):
                await rank(engine, f"d{i}")
            batches = engine.commit.batches
            told = await engine.feedback(
                "unwind", [FeedbackRequest(f"d{i}", relevance=[1.0]) for i in range(5)]
            )
            assert [one.status for one in told] == ["accepted"] * 5
            assert engine.commit.batches == batches + 1

    play(story)


class Disk:
    """Writes when it is let to, and remembers in which batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.free = asyncio.Event()
        self.fails: Exception | None = None

    async def write(self, entries: list[Entry]) -> list[Written]:
        await self.free.wait()
        if self.fails is not None:
            raise self.fails
        self.batches.append([entry.event_id for entry in entries])
        return [
            Written(Row(i, 1, entry.kind, entry.event_id, b""), True, None) for i, entry in enumerate(entries)
        ]


def _entry(name: str) -> Entry:
    return Entry("r", "activate", name, b"")


def _queue(most: int = 100) -> tuple[GroupCommit, Disk]:
    disk = Disk()
    return GroupCommit(disk.write, most_waiting=most), disk


def test_what_comes_while_the_disk_is_busy_goes_together_and_in_order() -> None:
    async def story() -> None:
        commit, disk = _queue()
        commit.start()
        first = commit.submit([_entry("a")])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        rest = [commit.submit([_entry(name)]) for name in "bcd"] + [commit.submit([_entry("e"), _entry("f")])]
        assert commit.waiting == 6
        disk.free.set()
        assert [one.row.event_id for one in await first] == ["a"]
        assert [one.row.event_id for one in await rest[-1]] == ["e", "f"]
        assert disk.batches == [["a"], ["b", "c", "d", "e", "f"]]
        assert (commit.batches, commit.events, commit.waiting) == (2, 6, 0)
        await commit.stop()

    play(story)


def test_a_write_that_fails_fails_for_all_of_its_batch_and_the_next_goes_on() -> None:
    async def story() -> None:
        commit, disk = _queue()
        commit.start()
        disk.fails = Unavailable("no disk")
        disk.free.set()
        told = await asyncio.gather(*(commit.submit([_entry(name)]) for name in "ab"), return_exceptions=True)
        assert [type(one) for one in told] == [Unavailable, Unavailable]
        disk.fails = None
        assert (await commit.submit([_entry("c")]))[0].row.event_id == "c"
        assert disk.batches == [["c"]]
        await commit.stop()

    play(story)


def test_who_went_away_is_written_all_the_same() -> None:
    async def story() -> None:
        commit, disk = _queue()
        commit.start()
        gone, there = commit.submit([_entry("gone")]), commit.submit([_entry("there")])
        gone.cancel()
        disk.free.set()
        assert (await there)[0].row.event_id == "there"
        assert disk.batches == [["gone", "there"]]
        await commit.stop()

    play(story)


def test_stopping_writes_what_is_waiting_and_then_takes_no_more() -> None:
    async def story() -> None:
        commit, disk = _queue()
        with pytest.raises(Unavailable, match="stopping"):
            commit.submit([_entry("early")])
        commit.start()
        waiting = commit.submit([_entry("a")])
        disk.free.set()
        await commit.stop()
        assert (await waiting)[0].row.event_id == "a"
        with pytest.raises(Unavailable, match="stopping"):
            commit.submit([_entry("late")])

    play(story)


def test_a_queue_has_an_end() -> None:
    async def story() -> None:
        commit, disk = _queue(most=2)
        commit.start()
        kept = commit.submit([_entry("a"), _entry("b")])
        with pytest.raises(Busy, match="limit reached: 2 events that wait"):
            commit.submit([_entry("c")])
        disk.free.set()
        assert len(await kept) == 2
        await commit.stop()

    play(story)
