"""What goes on beside the requests costs nothing where nothing is due."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rankloop.serving.api import ActivateRequest
from rankloop.serving.log.records import Row
from rankloop.serving.stores.due import Due
from rankloop.serving.stores.memory import MemoryStore
from tests.serving.service import Clock, adds_up, answer, create, play, rank, running


class Counting(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    async def read(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        self.asked["read"] += 1
        return await super().read(ranker, after=after, limit=limit)

    async def due(self, ranker: str, **where: Any) -> Due:
        self.asked["due"] += 1
        return await super().due(ranker, **where)


def test_rankers_with_open_lists_are_not_read_again_until_one_is_due() -> None:
    async def story() -> None:
        clock, store = Clock(), Counting()
        async with running(store, clock=clock) as engine:
            names = [f"r{i}" for i in range(20)]
            for name in names:
                await create(engine, name, policy={"deadline_seconds": 60})
                await rank(engine, "open", name=name)
                clock.seconds += 1
            await engine.housekeeping.tick()
            assert store.asked["due"] == 20  # each was looked at once
            store.asked.clear()
            for _ in range(20):
                await engine.housekeeping.tick()
            assert store.asked == {}
            clock.seconds += 40.5  # the first one's minute is over
            await engine.housekeeping.tick()
            assert [engine.rankers[name].fold.counts.expired for name in names] == [1] + [0] * 19
            assert store.asked["due"] <= 2
            clock.seconds += 60
            await engine.housekeeping.tick()
            assert [engine.rankers[name].fold.counts.expired for name in names] == [1] * 20

    play(story)


def test_what_is_answered_in_time_does_not_expire_and_the_rest_does_once() -> None:
    async def story() -> None:
        clock, store = Clock(), Counting()
        async with running(store, clock=clock) as engine:
            await create(engine, algorithm="FTRLPBM", policy={"deadline_seconds": 60, "parking_seconds": 5})
            clicks = {"relevance": None, "clicks": [1.0] + [0.0] * 4}
            await answer(engine, "early", **clicks)
            for name in ("early", "answered", "seen", "unseen"):
                await rank(engine, name)
            await answer(engine, "answered", **clicks)
            await engine.activate("unwind", ActivateRequest("seen"))
            clock.seconds += 61
            for _ in range(3):
                await engine.housekeeping.tick()
            rows = await store.read("unwind", after=0, limit=99)
            assert [row.decision for row in rows if row.kind == "expire"] == ["seen", "unseen"]
            assert engine.rankers["unwind"].fold.counts.learnt == 3
            await adds_up(engine)

    play(story)
