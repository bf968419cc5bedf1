"""Load on a ranker with features: lists per CPU-second of the server by the way in which the features reach it.

One service on SQLite, every answer durable, the ways one after another: items by name whose features are stored, and
features in the request as msgpack, as base64 in JSON, and as lists of numbers in JSON. Then a reranker of 100 documents
with stored features, as search engines ask it: with few connections, so that it is not busy all the time.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec
import numpy as np

from benchmarks.load import CONNECTIONS, Server, repeat
from rankloop.serving.api import CreateRequest, Matrix, RankRequest
from rankloop.serving.engine import Engine
from rankloop.serving.stores.sqlite import MemoryStore

N_ITEMS, N_FEATURES = 100, 136
_ROWS = np.random.default_rng(1).random((N_ITEMS, N_FEATURES)).astype("<f4")
_NAMES = [f"item-{i}" for i in range(N_ITEMS)]
_BASE64 = {"shape": _ROWS.shape, "data": base64.b64encode(_ROWS.tobytes()).decode()}
_PACKED = {"shape": _ROWS.shape, "data": _ROWS.tobytes()}
_COLUMNS = {"shape": (N_ITEMS, 6), "data": _ROWS[:, :6].tobytes()}


class Way(NamedTuple):
    """How features reach a ranker: its name, the body of a request, whether that is msgpack, and the ranker."""

    name: str
    body: bytes
    packed: bool = False
    ranker: str = "load"
    connections: int = CONNECTIONS


WAYS = (
    Way("stored, all items", b"{}"),
    Way("stored, 100 names, JSON", json.dumps({"items": _NAMES}).encode()),
    Way("stored, 100 names, msgpack", msgspec.msgpack.encode({"items": _NAMES}), packed=True),
    Way(
        "stored, 10 shown, msgpack", msgspec.msgpack.encode({"items": _NAMES, "n_positions": 10}), packed=True
    ),
    Way(
        "130 stored, 6 in msgpack",
        msgspec.msgpack.encode({"items": _NAMES, "features": _COLUMNS}),
        packed=True,
        ranker="part",
    ),
    Way("in the request, msgpack", msgspec.msgpack.encode({"features": _PACKED}), packed=True),
    Way("in the request, base64 in JSON", json.dumps({"features": _BASE64}).encode()),
    Way("in the request, lists in JSON", json.dumps({"features": _ROWS.round(6).tolist()}).encode()),
)


_RERANK = json.dumps({"model": "load", "query": "green tea", "documents": _NAMES}).encode()
RERANKS = tuple(
    Way(f"rerank, {n} connections", _RERANK, ranker="/v2/rerank", connections=n) for n in (1, 4, CONNECTIONS)
)


class Rate(NamedTuple):
    """Lists per CPU-second of the server, and the time of one in milliseconds: the median, and of 99 in 100."""

    per_cpu: float
    p50: float
    p99: float


def measure(server: Server, way: Way, *, seconds: float) -> Rate:
    """Load a service for so many seconds in one way."""
    kind = "msgpack" if way.packed else "json"
    path = way.ranker if "/" in way.ranker else f"/v1/rankers/{way.ranker}/rank"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(server.url).netloc}\r\n"
        f"Content-Type: application/{kind}\r\nContent-Length: {len(way.body)}\r\nX-Decision-Id: {time.time_ns()}-"
    ).encode()
    numbers = itertools.count()  # else the same body is a request that is sent again

    def request() -> bytes:
        return b"%s%d\r\n\r\n%s" % (head, next(numbers), way.body)

    async def run(duration: float) -> list[float]:
        took: list[float] = []
        end = time.perf_counter() + duration
        await asyncio.gather(*(repeat(server.url, request, end, took) for _ in range(way.connections)))
        return took

    asyncio.run(run(min(0.5, seconds)))  # warm
    cpu = server.cpu()
    took = asyncio.run(run(seconds))
    used = server.cpu() - cpu
    p50, p99 = np.percentile(took, [50, 99]) * 1000
    return Rate(len(took) / max(used, 1e-9), float(p50), float(p99))


def rankers() -> list[CreateRequest]:
    """A ranker whose 136 features are all stored, and one with 6 of them from the request."""
    found = []
    for name, n_stored in (("load", N_FEATURES), ("part", N_FEATURES - 6)):
        rows = np.ascontiguousarray(_ROWS[:, :n_stored])
        stored = Matrix((N_ITEMS, n_stored), rows.tobytes())
        parameters = {"n_features": N_FEATURES}
        found.append(CreateRequest(name, "RTopKF", _NAMES, parameters, seed=1, features=stored))
    return found


def create(url: str) -> None:
    """Make them in a service."""
    for request in rankers():
        told = httpx.post(
            f"{url}/v1/rankers",
            content=msgspec.msgpack.encode(request),
            headers={"Content-Type": "application/msgpack"},
            trust_env=False,
            timeout=300,
        )
        told.raise_for_status()


async def row_bytes() -> dict[str, int]:
    """By way, the bytes of a list's row of the log."""
    engine = Engine(MemoryStore())
    await engine.open()
    for request in rankers():
        await engine.create(request)
    found = {}
    for way in WAYS:
        read = msgspec.msgpack.decode if way.packed else msgspec.json.decode
        shown = await engine.rank(way.ranker, read(way.body, type=RankRequest))
        row = await engine.store.find(way.ranker, "decision", shown.decision_id)
        found[way.name] = 0 if row is None else len(row.body)
    await engine.close()
    return found


def run(folder: Path, *, seconds: float) -> None:
    """Measure every way, and print a table."""
    print(
        f"\nlists of {N_ITEMS} items with {N_FEATURES} features, {CONNECTIONS} connections, durable, "
        f"{seconds:g} s each\n"
    )
    print(f"{'features':<34}{'per CPU-s':>11}{'p50 ms':>9}{'p99 ms':>9}{'bytes a row':>14}")
    sizes = asyncio.run(row_bytes())
    server = Server("-m", "rankloop", "serve", "--port", "0", "--data", str(folder))
    try:
        create(server.url)
        for way in (*WAYS, *RERANKS):
            rate = measure(server, way, seconds=seconds)
            size = f"{sizes[way.name]:>14,.0f}" if way.name in sizes else ""
            print(f"{way.name:<34}{rate.per_cpu:>11,.0f}{rate.p50:>9.1f}{rate.p99:>9.1f}{size}", flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    import sys
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rankloop-load-") as made:
        run(Path(made), seconds=float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
