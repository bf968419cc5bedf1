"""Load with feedback: every list is requested, answered and learnt from, on SQLite, every answer durable.

Each connection asks for a list, reports feedback on it, and begins again. What is slow about learning shows here.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import numpy as np

from benchmarks.load import CONNECTIONS, Server
from rankloop.serving.client import Client

_FEATURES = np.random.default_rng(1).random((100, 136)).astype("<f4").tobytes()


class Case(NamedTuple):
    """One ranker under load: how it is made, the request for a list, and the feedback on `n` shown items."""

    name: str
    algorithm: str
    n_items: int | None
    parameters: dict[str, Any]
    rank: bytes
    packed: bool
    feedback: Callable[[str, int], dict[str, Any]]
    features: np.ndarray | None = None  # that are stored, a row for each item


def _relevance(decision: str, n: int) -> dict[str, Any]:
    return {"decision_id": decision, "relevance": [1]}


def _clicks(decision: str, n: int) -> dict[str, Any]:
    return {"decision_id": decision, "clicks": [1] + [0] * (n - 1)}


CASES = (
    Case("RTop1F 50", "RTop1F", 50, {}, b"{}", False, _relevance),
    Case("FTRLPBM (10, 5)", "FTRLPBM", 10, {"n_positions": 5}, b"{}", False, _clicks),
    Case("FTRLPBM (1000, 10)", "FTRLPBM", 1_000, {"n_positions": 10}, b"{}", False, _clicks),
    Case(
        "RTopKF 100 x 136",
        "RTopKF",
        None,
        {"n_features": 136},
        msgspec.msgpack.encode({"features": {"shape": (100, 136), "data": _FEATURES}}),
        True,
        _relevance,
    ),
    Case(
        "... stored, names",
        "RTopKF",
        100,
        {"n_features": 136},
        msgspec.msgpack.encode({"items": [f"item-{i}" for i in range(100)]}),
        True,
        _relevance,
        np.frombuffer(_FEATURES, "<f4").reshape(100, 136),
    ),
)


class Learnt(NamedTuple):
    """One run. Latencies in milliseconds, of requests for lists and of feedback."""

    rate: float  # lists that were answered and learnt from, a second
    per_cpu: float  # the same for each second of the server's processor
    rank_p50: float
    rank_p99: float
    feedback_p50: float
    feedback_p99: float
    memory: float  # MB


class _Caller:
    def __init__(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._host, self._reader, self._writer = host, reader, writer

    async def post(self, path: str, body: bytes, *, packed: bool) -> Any:
        kind = "msgpack" if packed else "json"
        self._writer.write(
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/{kind}\r\n"
            f"Accept: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        told = await self._reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(told.decode())
        return json.loads(told)


async def _one(url: str, case: Case, end: float, took: list[tuple[float, float]]) -> None:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    caller = _Caller(parts.netloc, reader, writer)
    while time.perf_counter() < end:
        began = time.perf_counter()
        shown = await caller.post("/v1/rankers/load/rank", case.rank, packed=case.packed)
        between = time.perf_counter()
        answer = json.dumps(case.feedback(shown["decision_id"], len(shown["items"]))).encode()
        told = await caller.post("/v1/rankers/load/feedback", answer, packed=False)
        if not told["learnt"]:
            raise RuntimeError(f"feedback was not learnt from: {told}")
        took.append((between - began, time.perf_counter() - between))
    writer.close()


def measure(case: Case, folder: Path, *, seconds: float, connections: int = CONNECTIONS) -> Learnt:
    """Load a fresh service with one ranker."""
    server = Server("-m", "rankloop", "serve", "--port", "0", "--data", str(folder))
    try:
        items = None if case.n_items is None else [f"item-{i}" for i in range(case.n_items)]
        Client(server.url, timeout=300).create(
            "load",
            algorithm=case.algorithm,
            items=items,
            parameters=case.parameters,
            seed=1,
            features=case.features,
        )

        async def run(duration: float) -> list[tuple[float, float]]:
            took: list[tuple[float, float]] = []
            end = time.perf_counter() + duration
            await asyncio.gather(*(_one(server.url, case, end, took) for _ in range(connections)))
            return took

        asyncio.run(run(min(1.0, seconds)))  # warm
        cpu, began = server.cpu(), time.perf_counter()
        took = np.array(asyncio.run(run(seconds))) * 1000
        passed, used = time.perf_counter() - began, server.cpu() - cpu
        (rank_50, rank_99), (back_50, back_99) = (np.percentile(one, [50, 99]) for one in took.T)
        memory = server.memory()
    finally:
        server.stop()
    n = len(took)
    return Learnt(n / passed, n / max(used, 1e-9), rank_50, rank_99, back_50, back_99, memory)


def run(folder: Path, *, seconds: float) -> None:
    """Measure every case, and print a table."""
    print(f"\nwith feedback on every list, {CONNECTIONS} connections, durable, {seconds:g} s each\n")
    heads = ("learnt a s", "per CPU-s", "list p50", "p99", "feedback p50", "p99 ms", "MB")
    print(f"{'':<20}" + "".join(f"{head:>13}" for head in heads))
    for number, case in enumerate(CASES):
        one = measure(case, folder / str(number), seconds=seconds)
        numbers = (f"{one.rate:,.0f}", f"{one.per_cpu:,.0f}", *(f"{value:.1f}" for value in one[2:6]))
        print(
            f"{case.name:<20}" + "".join(f"{text:>13}" for text in (*numbers, f"{one.memory:.0f}")),
            flush=True,
        )
