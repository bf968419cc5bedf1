"""Replicas: events a second, and what an event costs all replicas, with 1, 2 and 3 of them.

`python -m benchmarks.replicas` starts a PostgreSQL server of its own; `--database` takes yours. Every list is answered.
Requests about one ranker go to one replica, as a proxy sends them that hashes by ranker, or to all replicas in turn.
Each replica has as many connections as one alone: a batch of writes is then as large with three replicas as with one.
`--total` has as many connections for all of them together.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from benchmarks.load import Server
from rankloop.serving.client import Client

ITEMS = [f"item-{i}" for i in range(50)]
CONNECTIONS = 16


class Cost(NamedTuple):
    """One run: events a second, milliseconds of the replicas' processors an event, and latencies in milliseconds."""

    rate: float
    cpu: float
    p50: float
    p99: float


class Connection:
    """One connection to one replica."""

    async def open(self, url: str) -> None:
        parts = urlsplit(url)
        self._host = parts.netloc
        self._reader, self._writer = await asyncio.open_connection(parts.hostname, parts.port)

    async def post(self, path: str, body: bytes) -> bytes:
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        told = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(told.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        answer = await self._reader.readexactly(length)
        if not told.startswith(b"http/1.1 200"):
            raise RuntimeError((told + answer).decode())
        return answer


async def _ask(ranker: str, urls: list[str], end: float, took: list[float]) -> None:
    """Lists and their feedback, from these replicas in turn."""
    connections: dict[str, Connection] = {}
    turn = itertools.cycle(urls)
    while time.perf_counter() < end:
        body = b"{}"
        for action in ("rank", "feedback"):
            url = next(turn)
            if url not in connections:
                connections[url] = Connection()
                await connections[url].open(url)
            began = time.perf_counter()
            answer = await connections[url].post(f"/v1/rankers/{ranker}/{action}", body)
            took.append(time.perf_counter() - began)
            if action == "rank":
                body = json.dumps(
                    {"decision_id": json.loads(answer)["decision_id"], "relevance": [1.0]}
                ).encode()


def measure(
    servers: list[Server],
    rankers: list[str],
    *,
    seconds: float,
    affinity: bool,
    connections: int = CONNECTIONS,
    warm: float = 2.0,
) -> Cost:
    """Ask for `seconds`, after `warm` seconds that do not count, or as many as `seconds` where they are fewer."""
    urls = [server.url for server in servers]
    homes = {name: [urls[i % len(urls)]] if affinity else urls for i, name in enumerate(rankers)}

    async def run(duration: float) -> list[float]:
        took: list[float] = []
        end = time.perf_counter() + duration
        names = itertools.islice(itertools.cycle(rankers), connections)
        await asyncio.gather(*(_ask(name, homes[name], end, took) for name in names))
        return took

    asyncio.run(run(min(warm, seconds)))
    cpu, began = sum(server.cpu() for server in servers), time.perf_counter()
    took = asyncio.run(run(seconds))
    passed, used = time.perf_counter() - began, sum(server.cpu() for server in servers) - cpu
    p50, p99 = np.percentile(took, [50, 99]) * 1000
    return Cost(len(took) / passed, 1000 * used / len(took), float(p50), float(p99))


def run(database: str, *, seconds: float, total: bool) -> None:
    """All sizes."""
    shared = "in all" if total else "for each replica"
    print(
        f"{CONNECTIONS} connections {shared}, {len(ITEMS)} items, {seconds:g} s each; "
        "an event is a list or its feedback\n"
    )
    print(
        f"{'rankers':>9}{'replicas':>10}{'requests go to':>16}{'events/s':>10}{'CPU ms':>9}{'p50 ms':>9}{'p99 ms':>9}"
    )
    for n_rankers in (1, 8):
        for n_replicas in (1, 2, 3):
            schema = f"bench_{n_rankers}_{n_replicas}_{int(time.time())}"
            place = ["--database", database, "--schema", schema]
            servers = [Server("-m", "rankloop", "serve", "--port", "0", *place) for _ in range(n_replicas)]
            names = [f"r{i}" for i in range(n_rankers)]
            for name in names:
                Client(servers[0].url).create(name, algorithm="RTop1F", items=ITEMS, seed=1)
            try:
                for affinity in (True, False)[: 1 if n_replicas == 1 else 2]:
                    if affinity:
                        # Who made a ranker lets go of it once another is asked for it, and nobody asks here.
                        measure(
                            servers, names, seconds=12.0 if n_replicas > 1 else 1.0, affinity=True, warm=0.0
                        )
                    for server, name in itertools.product(servers, names if not affinity else []):
                        Client(server.url, timeout=60.0).ranker(name)  # which has it fold the log so far
                    connections = CONNECTIONS * (1 if total or n_rankers == 1 else n_replicas)
                    told = measure(
                        servers, names, seconds=seconds, affinity=affinity, connections=connections
                    )
                    print(
                        f"{n_rankers:>9}{n_replicas:>10}{'one' if affinity else 'all in turn':>16}"
                        f"{told.rate:>10,.0f}{told.cpu:>9.3f}{told.p50:>9.1f}{told.p99:>9.1f}",
                        flush=True,
                    )
            finally:
                for server in servers:
                    server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each run")
    parser.add_argument(
        "--total", action="store_true", help="as many connections in all, however many replicas"
    )
    parser.add_argument("--database", help="a PostgreSQL to use, instead of one of its own")
    arguments = parser.parse_args()
    if arguments.database is not None:
        run(arguments.database, seconds=arguments.seconds, total=arguments.total)
        return
    from tests.serving.postgresql import start

    with tempfile.TemporaryDirectory(prefix="rankloop-replicas-") as folder:
        server = start(Path(folder))
        try:
            run(server.url, seconds=arguments.seconds, total=arguments.total)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
