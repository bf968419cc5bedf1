"""What the tests of the service share: a clock that can be turned, and engines that are easily made."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from rankloop.serving.api import CreateRequest, FeedbackRequest, RankRequest
from rankloop.serving.engine import Engine
from rankloop.serving.log.verify import verify
from rankloop.serving.stores.contract import Store
from tests.serving.memory_store import MemoryStore

ITEMS = ["walk", "meditate", "music", "tea", "nap"]
# What these would take from a horizon, which a service does not have.
INSTEAD: dict[str, dict[str, Any]] = {
    "MW": {"eta": 0.05, "gamma": 0.1},
    "RankedExp3": {"gamma": 0.1},
    "TopRank": {"delta": 1e-4},
}


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self, start: float = 1_000.0) -> None:
        self.seconds = start

    def __call__(self) -> float:
        return self.seconds


@contextlib.asynccontextmanager
async def running(store: Store | None = None, **settings: Any) -> AsyncIterator[Engine]:
    settings = {"clock": Clock(), "housekeeping": False} | settings
    engine = Engine(store or MemoryStore(), **settings)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


async def create(engine: Engine, name: str = "unwind", **settings: Any) -> None:
    wanted = {"name": name, "algorithm": "RTop1F", "seed": 7} | settings
    if wanted["algorithm"] in {"RTop1F", "FTPL", "FTRLPBM"}:
        wanted.setdefault("items", ITEMS)
    await engine.create(msgspec.convert(wanted, CreateRequest))


async def rank(engine: Engine, decision_id: str | None = None, name: str = "unwind", **more: Any) -> Any:
    if name in engine.rankers and engine.rankers[name].fold.ranker.takes_queries:
        more = {"query": "shoes"} | more
    return await engine.rank(name, RankRequest(decision_id, **more))


async def answer(
    engine: Engine, decision_id: str, value: float = 1.0, name: str = "unwind", **more: Any
) -> Any:
    request = msgspec.convert({"decision_id": decision_id, "relevance": [value]} | more, FeedbackRequest)
    return (await engine.feedback(name, [request]))[0]


async def adds_up(engine: Engine, name: str = "unwind") -> None:
    """The log replays to the live state, from the beginning and from every snapshot."""
    verdict = await verify(engine.store, name)
    assert verdict.holds, verdict.problems
    assert verdict.state_hash == (await engine.find(name)).fold.state_hash()


async def rounds(engine: Engine, n: int, *, first: int = 0, liked: dict[str, float] | None = None) -> None:
    """Ask for `n` lists and answer each; some items are liked."""
    told = (await engine.find("unwind")).fold.ranker.feedback.length(len(ITEMS))
    for i in range(first, first + n):
        shown = await rank(engine, f"round {i}")
        names = shown.items[: 1 if told == 1 else len(shown.items)]
        values = [(liked or {"walk": 1.0, "tea": 1.0}).get(name, 0.0) for name in names]
        assert (await answer(engine, f"round {i}", relevance=values)).learnt


def play(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())
