"""Many rankers in one service: how long it takes to start, its memory, and what it costs when nobody asks.

`python -m benchmarks.many_rankers --rankers 10000`
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.load import Server
from rankloop.serving.admission import Limits
from rankloop.serving.api import CreateRequest, FeedbackRequest, RankRequest
from rankloop.serving.engine import Engine
from rankloop.serving.stores.sqlite import SQLiteStore

_ITEMS = [f"item-{i}" for i in range(10)]


async def fill(folder: Path, rankers: int) -> None:
    """Make rankers, each with one list that was answered and one that was not."""
    engine = Engine(SQLiteStore(folder), limits=Limits(rankers=rankers), housekeeping=False)
    await engine.open()
    for first in range(0, rankers, 100):
        names = [f"r{i}" for i in range(first, min(first + 100, rankers))]
        await asyncio.gather(
            *(engine.create(CreateRequest(name, "RTop1F", _ITEMS, seed=1)) for name in names)
        )
        await asyncio.gather(*(engine.rank(name, RankRequest("open")) for name in names))
        await asyncio.gather(*(engine.rank(name, RankRequest("answered")) for name in names))
        answer = [FeedbackRequest("answered", relevance=[1.0])]
        await asyncio.gather(*(engine.feedback(name, answer) for name in names))
    await engine.close()


def measure(folder: Path, rankers: int, *, seconds: float) -> None:
    """Start a service on them, and watch it idle."""
    began = time.perf_counter()
    server = Server(
        "-m", "rankloop", "serve", "--port", "0", "--data", str(folder), "--limit", f"rankers={rankers}"
    )
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        while client.get("/readyz").status_code != 200:
            time.sleep(0.5)
        ready = time.perf_counter() - began
        print(f"{rankers:,} rankers: ready after {ready:.1f} s, {server.memory():.0f} MB")
        time.sleep(5)  # what is due at the start
        cpu, began = server.cpu(), time.perf_counter()
        time.sleep(seconds)
        print(f"idle: {100 * (server.cpu() - cpu) / (time.perf_counter() - began):.1f}% of a core")
        took = []
        for i in range(50):
            began = time.perf_counter()
            client.post(f"/v1/rankers/r{i * 7 % rankers}/rank", json={}).raise_for_status()
            took.append(time.perf_counter() - began)
        print(f"one list at a time: {1000 * sorted(took)[25]:.1f} ms in the middle")
    server.stop()


def main() -> None:
    """Measure with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rankers", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="of idling")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rankloop-many-"))
    try:
        began = time.perf_counter()
        asyncio.run(fill(folder, arguments.rankers))
        print(f"made in {time.perf_counter() - began:.0f} s")
        measure(folder, arguments.rankers, seconds=arguments.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
