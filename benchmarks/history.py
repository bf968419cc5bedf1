"""A long log in one SQLite service with retention: disk for each event, live and closed, start time, memory.

    python -m benchmarks.history --events 10000000 --folder /tmp/history

Events go through the engine in this process, many in one batch: lists are drawn, written, answered and learnt from as
in a service, without HTTP. The clock of the log is simulated: a hundred events a second. Run again on the same folder,
it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from rankloop.serving.admission import Limits
from rankloop.serving.api import CreateRequest, FeedbackRequest, RankRequest
from rankloop.serving.engine import Engine
from rankloop.serving.log.randomness import Draws
from rankloop.serving.log.records import Policy
from rankloop.serving.retention import Retention, Trimming
from rankloop.serving.stores.sqlite import SQLiteStore

NAME = "long"
ITEMS = [f"item-{i:02}" for i in range(10)]
BATCH = 2_000  # lists, and then answers, in one commit
ROUND = 20_000  # events between two looks of the housekeeping
PACE = 0.01  # seconds of the log's clock for an event


class Pace:
    """A clock that passes with the events."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


async def fill(folder: Path, n_events: int, *, retain: int) -> dict[str, float]:
    """Bring the log of one ranker to so many rows; what that took."""
    clock = Pace(1_800_000_000.0)
    engine = Engine(SQLiteStore(folder), clock=clock, housekeeping=False)
    await engine.open()
    if NAME in engine.rankers:
        clock.seconds = engine.rankers[NAME].fold.at / 1000
    else:
        await engine.create(
            CreateRequest(NAME, "RTop1F", ITEMS, policy=Policy(deadline_seconds=60.0), seed=1)
        )
    trimming = engine.housekeeping.trimming = Trimming(engine, Retention(rows=retain))
    served, draws, rng = engine.rankers[NAME], Draws(), np.random.default_rng(served_rows(engine))
    first, cpu, closing, most_live = served.fold.applied, time.process_time(), 0.0, 0
    while served.fold.applied < n_events:
        end = min(n_events, served.fold.applied + ROUND)
        while served.fold.applied < end:
            await _round(engine, draws, rng)
            clock.seconds += 2 * BATCH * PACE
        await engine.housekeeping.tick()
        cursor = -1
        while cursor != served.fold.expire_cursor:  # a tick closes a few thousand lists only
            cursor = served.fold.expire_cursor
            await engine.housekeeping.expire(served)
        begun = time.process_time()
        trimming.changed.add(NAME)
        await trimming.look()
        closing += time.process_time() - begun
        closed = await engine.store.history(NAME)
        most_live = max(most_live, served.fold.applied - (closed.through if closed else 0))
        print(
            f"{served.fold.applied:,} events, {time.process_time() - cpu:.0f} s", file=sys.stderr, flush=True
        )
    await engine.snapshot(NAME)
    await engine.close()
    return {
        "events": served.fold.applied,
        "written": served.fold.applied - first,
        "cpu_seconds": time.process_time() - cpu,
        "closing_cpu_seconds": closing,
        "most_live_rows": most_live,
        "peak_mb": peak_memory(),
    }


def served_rows(engine: Engine) -> int:
    """How many rows the log has."""
    return engine.rankers[NAME].fold.applied


def peak_memory() -> float:
    """The most memory that this process has had, in megabytes."""
    told = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    return int(told.split()[0]) / 1024


async def _round(engine: Engine, draws: Draws, rng: np.random.Generator) -> None:
    served = engine.rankers[NAME]
    first = served.fold.applied
    lists = []
    for i in range(BATCH):
        decision_id = f"{first + i:012x}-{rng.integers(1 << 40):010x}"
        lists.append(served.draw(RankRequest(decision_id), decision_id, draws=draws, limits=engine.limits)[0])
    await engine.append(lists)
    answers = []
    for entry, like in zip(lists, rng.random(BATCH), strict=True):
        request = FeedbackRequest(entry.event_id, relevance=[float(like < 0.3)])
        answers.append(served.feedback_entry(request, served.fold.recent.get(entry.event_id)))
    await engine.append(answers)


async def begin(folder: Path) -> dict[str, float]:
    """Start a service on the folder, in this process: how long until it is ready, and its memory."""
    before = time.perf_counter()
    engine = Engine(SQLiteStore(folder), housekeeping=False, limits=Limits())
    await engine.open()
    seconds = time.perf_counter() - before
    again = time.perf_counter()
    rows = await engine.store.read(NAME, after=len(ITEMS), limit=1)
    assert (await engine.rank(NAME, RankRequest(rows[0].event_id))).duplicate
    found = time.perf_counter() - again
    memory = peak_memory()
    await engine.close()
    return {"start_seconds": seconds, "old_id_seconds": found, "start_peak_mb": memory}


def disk(folder: Path) -> dict[str, float]:
    """Bytes of the live file and of each kind of closed file."""
    found = {"live_bytes": float((folder / "rankloop.db").stat().st_size)}
    for name, suffix in (
        ("segment_bytes", "parquet"),
        ("index_bytes", "ids"),
        ("snapshot_bytes", "snapshot"),
    ):
        found[name] = float(sum(path.stat().st_size for path in folder.glob(f"segments/*/*.{suffix}")))
    found["segments"] = len(list(folder.glob("segments/*/*.parquet")))
    return found


def main() -> None:
    """Fill, start again, and print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--retain", type=int, default=100_000, help="rows that stay live")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--start-only", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.start_only:
        print(json.dumps(asyncio.run(begin(given.folder))))
        return
    found = asyncio.run(fill(given.folder, given.events, retain=given.retain))
    command = [sys.executable, "-m", "benchmarks.history", "--folder", str(given.folder), "--start-only"]
    started = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
    print(json.dumps({**found, **disk(given.folder), **json.loads(started.stdout)}, indent=1))


if __name__ == "__main__":
    main()
