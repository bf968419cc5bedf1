"""What the memory of one small service is made of: `python -m benchmarks.service_memory`; Linux only.

First what each library adds in a fresh process, one after the other; then a service on SQLite without a ranker, with
three, and after lists with feedback. Two figures: all pages in memory, and those that are not pages of files, which
processes share.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.load import Server, metrics
from benchmarks.replicas import ITEMS, measure
from rankloop.serving.client import Client

_LIBRARIES = (
    ("Python, asyncio", "pass"),
    ("NumPy", "import numpy, numpy.random"),
    (
        "web server, SQLite, metrics",
        "import msgspec, starlette.routing, uvicorn, uvloop, apsw, prometheus_client",
    ),
    ("rankers", "import rankloop.rankers"),
    ("service", "import rankloop.serving.server, rankloop.serving.stores.sqlite"),
    ("command line", "import rankloop.cli, pydantic"),
)
_COUNT = """
import sys
def told():
    return [int(line.split()[1]) for line in open("/proc/self/smaps_rollup") if line.startswith(("Rss", "Anonymous"))]
for step in sys.argv[1:]:
    exec(step)
    print(*told())
"""
_RANKERS = ["r0", "r1", "r2"]
_PATIENCE = 6.0  # seconds in which the service has given back what it does not need


def libraries() -> list[tuple[str, float, float]]:
    """MB after each step, in all and of its own."""
    told = subprocess.run(
        [sys.executable, "-c", _COUNT, *(step for _, step in _LIBRARIES)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    numbers = ([int(one) / 1024 for one in line.split()] for line in told.splitlines())
    return [(name, pages, own) for (name, _), (pages, own) in zip(_LIBRARIES, numbers, strict=True)]


def memory(server: Server) -> tuple[float, float]:
    """MB of a process, in all and of its own."""
    told = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text().splitlines()
    pages = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in told[1:]}
    return pages["Rss"], pages["Anonymous"]


def service(folder: Path, *, seconds: float) -> list[tuple[str, float, float]]:
    """MB of a service as it goes on."""
    server = Server("-m", "rankloop", "serve", "--port", "0", "--data", str(folder))
    try:
        time.sleep(1.0)
        found = [("a service without a ranker", *memory(server))]
        for name in _RANKERS:
            Client(server.url).create(name, algorithm="RTop1F", items=ITEMS, seed=1)
        time.sleep(_PATIENCE)
        found.append((f"with {len(_RANKERS)} rankers", *memory(server)))
        for _ in range(3):
            measure([server], _RANKERS, seconds=seconds, affinity=True, warm=0.0)
            time.sleep(_PATIENCE)
            events = metrics(server.url)["rankloop_events_total"]
            found.append((f"after {events:,.0f} events", *memory(server)))
    finally:
        server.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of load before each look")
    arguments = parser.parse_args()
    print(f"{'':<42}{'MB':>7}{'more':>7}{'own':>9}{'more':>7}")
    before = 0.0, 0.0
    for name, pages, own in libraries():
        print(f"{name:<42}{pages:>7.1f}{pages - before[0]:>+7.1f}{own:>9.1f}{own - before[1]:>+7.1f}")
        before = pages, own
    with tempfile.TemporaryDirectory(prefix="rankloop-memory-") as folder:
        for name, pages, own in service(Path(folder), seconds=arguments.seconds):
            print(f"{name:<42}{pages:>7.1f}{'':>7}{own:>9.1f}")


if __name__ == "__main__":
    main()
