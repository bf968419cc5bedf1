"""A service on several databases, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

from rankloop.serving.databases.assembly import Assembly
from rankloop.serving.databases.directory import _weight
from rankloop.serving.engine import Engine
from rankloop.serving.stores.contract import Store
from rankloop.serving.stores.postgres import PostgresStore
from tests.serving.in_process import ask
from tests.serving.service import ITEMS


def names_for(assembly: Assembly, number: int, *, each: int = 2) -> list[str]:
    """Names that choose one of the databases, whatever identities these have."""
    timelines = [engine.store.timeline for engine in assembly.engines]
    chosen = (
        name
        for name in map("r{}".format, itertools.count())
        if max(timelines, key=lambda home: _weight(home, name)) == timelines[number]
    )
    return sorted(itertools.islice(chosen, each))


def stores(urls: Sequence[str], *, seconds: float = 20.0) -> list[Store]:
    made: list[Store] = []
    for number, url in enumerate(urls, 1):
        made.append(PostgresStore(url, seconds=seconds))
        made[-1].label = f"database {number}"
    return made


@contextlib.asynccontextmanager
async def serving(urls: Sequence[str], *, seconds: float = 20.0, **settings: Any) -> AsyncIterator[Assembly]:
    """Without housekeeping, unless a test asks for it."""
    settings = {"housekeeping": False} | settings
    assembly = Assembly(
        [Engine(store, **settings) for store in stores(urls, seconds=seconds)], host="127.0.0.1"
    )
    await assembly.open()
    try:
        await assembly.folded()
        yield assembly
    finally:
        await assembly.close()


async def call(assembly: Assembly, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    return await ask(assembly.asgi, method, path, body)


async def create(assembly: Assembly, name: str) -> int:
    wanted = {"name": name, "algorithm": "RTop1F", "items": ITEMS, "seed": 7}
    status, _ = await call(assembly, "POST", "/v1/rankers", wanted)
    return status


async def play(assembly: Assembly, name: str, rounds: int, *, first: int = 0) -> None:
    """Every list is answered at once."""
    for i in range(first, first + rounds):
        status, told = await call(assembly, "POST", f"/v1/rankers/{name}/rank", {"decision_id": f"d{i}"})
        assert status == 200, told
        given = {"decision_id": f"d{i}", "relevance": [float(i % 2)]}
        status, told = await call(assembly, "POST", f"/v1/rankers/{name}/feedback", given)
        assert status == 200, told


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 120))
