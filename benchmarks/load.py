"""Load on the service from a second process: ranks per CPU-second of the server, latencies, fsyncs; `make load`.

Three servers in one sitting, each alone: a bare Starlette that says hello, the service without a disk, and the
service on SQLite with every answer durable. The load is a fixed number of connections, each asking again as soon as
it is answered, over the loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import numpy as np

from rankloop.serving.client import Client

CONNECTIONS = 32
ITEMS = [f"item-{i}" for i in range(50)]
_HELLO = """
import socket, uvicorn, uvloop
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
async def hello(request):
    return PlainTextResponse("hello")
app = Starlette(routes=[Route("/hello", hello)])
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(128)
print(f"hello at http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, server_header=False))
uvloop.run(server.serve(sockets=[listening]))
"""


class Measured(NamedTuple):
    """One run."""

    rate: float  # answers a second
    per_cpu: float  # answers a second of the server's processor
    p50: float
    p99: float
    p999: float
    memory: float  # MB


class Server:
    """A process to load."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().rpartition(" ")[2].strip()
        if not self.url:
            raise RuntimeError(f"{command} did not start")

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


async def repeat(url: str, request: bytes | Callable[[], bytes], end: float, latencies: list[float]) -> None:
    """Send a request, or one that is made anew, on one connection until `end`; seconds of each go to `latencies`."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    while time.perf_counter() < end:
        began = time.perf_counter()
        writer.write(request if isinstance(request, bytes) else request())
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        told = await reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{head.decode()}{told.decode()}")
        latencies.append(time.perf_counter() - began)
    writer.close()


def load(server: Server, method: str, path: str, body: bytes, *, seconds: float) -> Measured:
    host = urlsplit(server.url).netloc
    request = (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body

    async def run(duration: float) -> list[float]:
        latencies: list[float] = []
        end = time.perf_counter() + duration
        await asyncio.gather(*(repeat(server.url, request, end, latencies) for _ in range(CONNECTIONS)))
        return latencies

    asyncio.run(run(min(1.0, seconds)))  # warm
    cpu, began = server.cpu(), time.perf_counter()
    latencies = asyncio.run(run(seconds))
    took, used = time.perf_counter() - began, server.cpu() - cpu
    p50, p99, p999 = np.percentile(latencies, [50, 99, 99.9]) * 1000
    n = len(latencies)
    return Measured(n / took, n / used, float(p50), float(p99), float(p999), server.memory())


def fsync_seconds(folder: Path, times: int = 200) -> float:
    """What one fsync of a small append takes on this disk, in the middle."""
    path, took = folder / "fsync", []
    with path.open("wb") as file:
        for _ in range(times):
            file.write(b"x" * 4_096)
            began = time.perf_counter()
            file.flush()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    path.unlink()
    return float(np.median(took))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each server")
    parser.add_argument("--events", type=int, default=0, help="events already in the log of the last run")
    parser.add_argument("--folder", type=Path, default=None, help="where the durable run writes")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rankloop-load-", dir=arguments.folder))
    from benchmarks import load_features, load_feedback

    try:
        run(folder, seconds=arguments.seconds, events=arguments.events)
        load_feedback.run(folder, seconds=arguments.seconds)
        load_features.run(folder / "features", seconds=arguments.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, *, seconds: float, events: int) -> None:
    sync = fsync_seconds(folder)
    print(
        f"{CONNECTIONS} connections, {len(ITEMS)} items, {seconds:g} s each; one fsync takes {1000 * sync:.2f} ms\n"
    )
    print(f"{'':<28}{'a second':>10}{'per CPU-s':>11}{'p50 ms':>9}{'p99 ms':>9}{'p99.9 ms':>10}{'MB':>7}")
    hello = Server("-c", _HELLO)
    base = _tell("bare Starlette hello", load(hello, "GET", "/hello", b"", seconds=seconds))
    hello.stop()
    _service("in memory, not durable", "--memory", seconds=seconds)
    durable = _service("SQLite, durable", "--data", str(folder / "data"), seconds=seconds, events=events)
    print(
        f"\ndurable / hello per CPU-second: {durable.per_cpu / base.per_cpu:.0%}; "
        f"p99 / fsync: {durable.p99 / 1000 / sync:.1f}"
    )


def _service(name: str, *where: str, seconds: float, events: int = 0) -> Measured:
    server = Server("-m", "rankloop", "serve", "--port", "0", *where)
    Client(server.url).create("load", algorithm="RTop1F", items=ITEMS)
    before = metrics(server.url)
    measured = _tell(name, load(server, "POST", "/v1/rankers/load/rank", b"{}", seconds=seconds))
    after = metrics(server.url)
    made = after["rankloop_events_total"] - before["rankloop_events_total"]
    commits = after["rankloop_commits_total"] - before["rankloop_commits_total"]
    print(f"{'':<28}{commits / made:.3f} commits (fsyncs) a rank, {made / commits:.1f} ranks a commit")
    server.stop()
    if events:
        asyncio.run(grow(Path(where[-1]), events))
        server = Server("-m", "rankloop", "serve", "--port", "0", *where)
        _tell(
            f"... with {events:,} events",
            load(server, "POST", "/v1/rankers/load/rank", b"{}", seconds=seconds),
        )
        _restart(server, *where)
    return measured


async def grow(folder: Path, events: int) -> None:
    """Fill the log up to `events` rows, half of them feedback, without HTTP in between."""
    from rankloop.serving.api import FeedbackRequest, RankRequest
    from rankloop.serving.engine import Engine
    from rankloop.serving.stores.sqlite import SQLiteStore

    engine = Engine(SQLiteStore(folder))
    await engine.open()
    while engine.rankers["load"].fold.applied < events:
        shown = await asyncio.gather(*(engine.rank("load", RankRequest()) for _ in range(500)))
        answers = [FeedbackRequest(one.decision_id, relevance=[float(i % 2)]) for i, one in enumerate(shown)]
        await engine.feedback("load", answers)
    await engine.close()


def _restart(server: Server, *where: str) -> None:
    """Kill it, and see how long it takes to be back."""
    server.process.kill()
    server.process.wait()
    began = time.perf_counter()
    again = Server("-m", "rankloop", "serve", "--port", "0", *where)
    seq = Client(again.url).ranker("load").last_seq
    print(f"{'':<28}killed, and back with {seq:,} events after {time.perf_counter() - began:.2f} s")
    again.stop()


def metrics(url: str) -> dict[str, float]:
    """The counters of a service that have no labels."""
    told = httpx.get(f"{url}/metrics", trust_env=False).text
    lines = [line.split() for line in told.splitlines() if not line.startswith("#")]
    return {line[0]: float(line[1]) for line in lines if len(line) == 2}


def _tell(name: str, measured: Measured) -> Measured:
    print(
        f"{name:<28}{measured.rate:>10,.0f}{measured.per_cpu:>11,.0f}{measured.p50:>9.2f}{measured.p99:>9.2f}"
        f"{measured.p999:>10.2f}{measured.memory:>7.0f}",
        flush=True,
    )
    return measured


if __name__ == "__main__":
    main()
