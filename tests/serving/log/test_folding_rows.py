"""Rows are read in pages, folded as the service folds them, and those that were learnt from are told apart."""

from __future__ import annotations

import pytest

from rankloop.serving.log.fold import fold_rows, fold_through, learnt_rows, pages
from rankloop.serving.log.snapshots import first_fold
from rankloop.serving.stores.contract import Damaged
from tests.serving.service import Clock, answer, create, play, rank, running


def test_pages_end_where_they_are_asked_to() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            for i in range(9):
                await rank(engine, f"d{i}")
            read = [
                [row.seq for row in page]
                async for page in pages(engine.store, "unwind", after=2, through=9, limit=3)
            ]
            assert read == [[3, 4, 5], [6, 7, 8], [9]]
            assert [len(page) async for page in pages(engine.store, "unwind")] == [10]
            assert [page async for page in pages(engine.store, "unwind", after=10)] == []

    play(story)


def test_a_log_folded_from_its_first_row_is_in_the_state_of_the_service() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await answer(engine, "d1")  # before its list
            for i in range(300):
                await rank(engine, f"d{i}")
                if i != 1:
                    await answer(engine, f"d{i}", float(i % 2))
            live = engine.rankers["unwind"].fold
            fold = await first_fold(engine.store, "unwind")
            await fold_through(fold, engine.store, "unwind", live.applied)
            assert (fold.applied, fold.link, fold.state_hash()) == (
                live.applied,
                live.link,
                live.state_hash(),
            )
            with pytest.raises(Damaged, match=f"row {live.applied + 1} of 'unwind' is missing"):
                await fold_through(fold, engine.store, "unwind", live.applied + 1)

            again, outcomes = await first_fold(engine.store, "unwind"), {}
            rows = await engine.store.read("unwind", after=1, limit=3)
            await fold_rows(again, engine.store, "unwind", rows, outcomes=outcomes)
            assert [(row.kind, row.seq in outcomes) for row in rows] == [
                ("feedback", True),
                ("decision", False),
                ("feedback", True),
            ]
            assert [outcome.status for outcome in outcomes.values()] == ["parked", "accepted"]

    play(story)


def test_rows_that_were_learnt_from_are_those_that_the_ranker_learnt_from() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await create(engine, policy={"deadline_seconds": 10.0, "late": "ignore"})
            await answer(engine, "early")
            for name in ("early", "once", "twice", "late", "never"):
                await rank(engine, name)
            await answer(engine, "once", 0.5)
            await answer(engine, "twice", event_id="a")
            await answer(engine, "twice", 0.0, event_id="b")
            clock.seconds += 11
            await answer(engine, "late")
            fold = engine.rankers["unwind"].fold
            stories = await engine.store.stories("unwind", ["early", "once", "twice", "late", "never"])
            learnt = {name: learnt_rows(fold, story)[1] for name, story in stories.items()}
            assert {
                name: [(one.row.seq, one.values.tolist()) for one in rows] for name, rows in learnt.items()
            } == {
                "early": [(2, [1.0])],
                "once": [(8, [0.5])],
                "twice": [(9, [1.0])],
                "late": [],
                "never": [],
            }
            assert sum(map(len, learnt.values())) == fold.counts.learnt == 3
            state, before = learnt_rows(fold, stories["once"], through=7)
            assert state is not None
            assert before == []
            assert learnt_rows(fold, stories["early"], through=2) == (None, [])

    play(story)
