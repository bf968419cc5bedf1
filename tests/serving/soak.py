"""A million events with a fault every few seconds: memory must stay flat, and nothing may be lost; `make soak`.

One service on SQLite, sixteen connections that ask for lists and answer them. Every few seconds it is killed, stopped
and started again, frozen for a second, or kept waiting by another process that holds the lock of the database.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import apsw

from rankloop.serving.stores.sqlite import SQLiteStore
from tests.serving.process import Service
from tests.serving.torture import ITEMS, NAME, Ledger, check

FAULTS = ("kill", "restart", "freeze", "lock")
CONNECTIONS = 16
_RETRY = frozenset({429, 500, 503})


class Soak:
    """The service, its users and what they know."""

    def __init__(self, folder: Path, *, events: int, every: float, seed: int, least_faults: int = 0) -> None:
        self.folder, self.wanted, self.every = folder, events, every
        self.rng, self.least_faults = random.Random(seed), least_faults
        self.ledger, self.faults = Ledger(), Counter[str]()
        self.acknowledged = 0
        self.memory: list[tuple[int, float]] = []  # events so far, MB
        self.service = self._start()
        self.service.client(retries=3).create(NAME, algorithm="RTop1F", items=ITEMS, seed=1)

    def _start(self) -> Service:
        return Service("--data", str(self.folder), "--snapshot-every", "20000")

    async def run(self) -> None:
        ids = itertools.count()
        users = [asyncio.create_task(self._user(ids)) for _ in range(CONNECTIONS)]
        faults = asyncio.create_task(self._faults())
        await asyncio.gather(*users)
        faults.cancel()
        await asyncio.gather(faults, return_exceptions=True)

    async def _faults(self) -> None:
        for fault in itertools.cycle(FAULTS):
            await asyncio.sleep(self.rng.uniform(0.5, 1.5) * self.every)
            self.memory.append((self.acknowledged, self._megabytes()))
            await asyncio.shield(asyncio.to_thread(getattr(self, f"_{fault}")))
            self.faults[fault] += 1

    def _kill(self) -> None:
        self.service.kill()
        self.service = self._start()

    def _restart(self) -> None:
        self.service.stop()
        self.service = self._start()

    def _freeze(self) -> None:
        self.service.process.send_signal(signal.SIGSTOP)
        time.sleep(1.0)
        self.service.process.send_signal(signal.SIGCONT)

    def _lock(self) -> None:
        other = apsw.Connection(str(self.folder / "rankloop.db"))
        other.setbusytimeout(5_000)
        try:
            other.execute("BEGIN IMMEDIATE")
            time.sleep(0.5)
            other.execute("ROLLBACK")
        except apsw.BusyError:
            pass  # the service was writing all the time
        finally:
            other.close()

    def _megabytes(self) -> float:
        try:
            told = Path(f"/proc/{self.service.process.pid}/status").read_text()
        except OSError:
            return 0.0
        return next((int(line.split()[1]) / 1024 for line in told.splitlines() if "VmRSS" in line), 0.0)

    async def _user(self, ids: Iterator[int]) -> None:
        connection = _Connection(self)
        while self.acknowledged < self.wanted or sum(self.faults.values()) < self.least_faults:
            number = next(ids)
            decision = f"d{number}"
            shown = await connection.ask("rank", {"decision_id": decision})
            self.ledger.lists[decision] = shown["items"]
            body = {"decision_id": decision, "event_id": f"{decision}-e", "relevance": [float(number % 2)]}
            told = await connection.ask("feedback", body)
            self.ledger.events["feedback", f"{decision}-e"] = told["seq"]
            self.acknowledged += 2


class _Connection:
    """One connection that asks again, under the same id, until it is answered."""

    def __init__(self, soak: Soak) -> None:
        self.soak = soak
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, what: str, body: dict[str, Any]) -> Any:
        data = json.dumps(body).encode()
        head = (
            f"POST /v1/rankers/{NAME}/{what} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        while True:
            try:
                status, told = await asyncio.wait_for(self._once(head.encode() + data), 30)
            except (OSError, EOFError, TimeoutError, IndexError):
                self._close()
                await asyncio.sleep(0.05)
                continue
            if status == 200:
                return json.loads(told)
            if status not in _RETRY:
                self.soak.ledger.problems.append(f"{what} {body}: {status} {told.decode()}")
                return {"items": [], "seq": 0}
            await asyncio.sleep(0.05)

    async def _once(self, request: bytes) -> tuple[int, bytes]:
        if self.writer is None or self.reader is None:
            where = urlsplit(self.soak.service.url)
            self.reader, self.writer = await asyncio.open_connection(where.hostname, where.port)
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        return int(head.split(b" ", 2)[1]), await self.reader.readexactly(length)

    def _close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


def growth(memory: list[tuple[int, float]]) -> float:
    """The largest of the last third of the memory readings over the largest of the first third."""
    third = max(1, len(memory) // 3)
    return max(mb for _, mb in memory[-third:]) / max(mb for _, mb in memory[:third])


def run(
    folder: Path, *, events: int, every: float, seed: int, least_faults: int = 0
) -> tuple[Soak, list[str]]:
    """The soak, and what is wrong after it."""
    soak = Soak(folder, events=events, every=every, seed=seed, least_faults=least_faults)
    try:
        asyncio.run(soak.run())
        state = soak.service.client(retries=5).ranker(NAME).state_hash
    finally:
        if soak.service.process.poll() is None:
            soak.service.stop()
    return soak, check(SQLiteStore(folder), soak.ledger, [state])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between faults, about")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rankloop-soak-"))
    began = time.monotonic()
    soak, problems = run(folder / "data", events=arguments.events, every=arguments.every, seed=arguments.seed)
    told = ", ".join(f"{fault} {n}" for fault, n in soak.faults.items())
    print(f"{soak.acknowledged:,} events in {time.monotonic() - began:.0f} s; faults: {told}")
    for number, mb in soak.memory[:: max(1, len(soak.memory) // 10)]:
        print(f"{number:>12,} events{mb:>8.0f} MB")
    print(f"memory, last third / first third: {growth(soak.memory):.2f}; problems: {len(problems)}")
    for problem in problems[:20]:
        print(f"  {problem}")
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
