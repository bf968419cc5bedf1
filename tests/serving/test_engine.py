"""The service without its skin: what each call does, and what the log says of it afterwards."""

from __future__ import annotations

import asyncio

import pytest

from rankloop.serving.errors import Conflict
from tests.serving.service import ITEMS, adds_up, answer, create, play, rank, running


def test_a_round() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            shown = await rank(engine, "d1")
            assert sorted(shown.items) == sorted(ITEMS)
            assert (shown.decision_id, shown.model_seq, shown.duplicate) == ("d1", 1, False)
            told = await answer(engine, "d1")
            assert (told.status, told.seq, told.learnt) == ("accepted", 3, True)
            assert engine.rankers["unwind"].fold.rounds == 1
            assert (await rank(engine)).model_seq == 3
            await adds_up(engine)

    play(story)


def test_the_same_decision_again_is_the_same_list() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            first = await rank(engine, "d1")
            await answer(engine, "d1")
            again = await rank(engine, "d1")
            assert again.duplicate
            assert (again.items, again.model_seq) == (first.items, first.model_seq)
            with pytest.raises(Conflict):
                await rank(engine, "d1", context={"hour": 3})
            kinds = [row.kind for row in await engine.store.read("unwind", after=0, limit=9)]
            assert kinds == ["config", "decision", "feedback", "conflict"]
            await adds_up(engine)

    play(story)


def test_two_asking_for_one_decision_at_once_get_one_list() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            answers = await asyncio.gather(*(rank(engine, "d1") for _ in range(20)))
            assert len({tuple(one.items) for one in answers}) == 1
            assert sum(not one.duplicate for one in answers) == 1
            assert await engine.store.last_seq("unwind") == 2

    play(story)


def test_feedback_counts_once() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            await rank(engine, "d1")
            assert (await answer(engine, "d1", event_id="e1")).status == "accepted"
            state = engine.rankers["unwind"].fold.state_hash()
            assert (await answer(engine, "d1", event_id="e1")).status == "duplicate"  # a retry
            assert (
                await answer(engine, "d1", event_id="e2")
            ).status == "duplicate"  # a retry under another id
            assert (await answer(engine, "d1", 0.0, event_id="e1")).status == "conflict"
            assert (await answer(engine, "d1", 0.0, event_id="e3")).status == "conflict"
            fold = engine.rankers["unwind"].fold
            assert (fold.rounds, fold.state_hash()) == (1, state)
            await adds_up(engine)

    play(story)


def test_a_ranker_is_not_silently_made_anew() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, seed=None)
            await create(engine, seed=None)
            with pytest.raises(Conflict):
                await create(engine, seed=None, parameters={"measure": "sum_loss"})
            assert await engine.store.rankers() == ["unwind"]
            await adds_up(engine)

    play(story)
