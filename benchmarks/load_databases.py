"""One process on SQLite beside one replica on PostgreSQL, in turn, under the same load: every list is answered.

`python -m benchmarks.load` ends with it; `python -m benchmarks.load_databases` does this alone. PostgreSQL is a server
of its own, with its files on the same disk. An event is a list or its feedback. Processor time is told for the service
and for the database apart; SQLite has no process of its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.load import Server, metrics
from benchmarks.replicas import CONNECTIONS, ITEMS, measure
from rankloop.serving.client import Client

if TYPE_CHECKING:
    from tests.serving import postgresql

ROUNDS = 3


class Beside(NamedTuple):
    """One run: events a second, microseconds of processors an event, latencies and commits in milliseconds."""

    rate: float
    service: float
    database: float
    p50: float
    p99: float
    batch: float  # events in a commit
    commit: float  # from the first event handed to the store until all are folded
    memory: float  # MB of the service
    transactions: float  # of the database for one commit; those of the leases are among them


def processor_seconds(postmaster: int) -> float:
    """What a PostgreSQL server and its processes have used."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if postmaster in (int(path.parent.name), int(fields[1])):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def transactions(database: postgresql.Server) -> int:
    """How many transactions a database has committed, once it has counted them."""
    time.sleep(1.2)  # its processes tell their counts about once a second
    return int(database.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"))


def one(where: list[str], n_rankers: int, database: postgresql.Server | None, *, seconds: float) -> Beside:
    """Load one service."""
    server = Server("-m", "rankloop", "serve", "--port", "0", *where)
    try:
        names = [f"r{i}" for i in range(n_rankers)]
        for name in names:
            Client(server.url).create(name, algorithm="RTop1F", items=ITEMS, seed=1)
        measure([server], names, seconds=0.5, affinity=True)
        postmaster, made = 0, 0
        if database is not None:
            postmaster = int((database.folder / "data" / "postmaster.pid").read_text().split()[0])
            made = transactions(database)
        before, used = metrics(server.url), processor_seconds(postmaster) if postmaster else 0.0
        told = measure([server], names, seconds=seconds, affinity=True, warm=0.0)
        after, memory = metrics(server.url), server.memory()
        if database is not None:
            used, made = processor_seconds(postmaster) - used, transactions(database) - made
    finally:
        server.stop()
    commits, events, took = (
        after[f"rankloop_{what}_total"] - before[f"rankloop_{what}_total"]
        for what in ("commits", "events", "commit_seconds")
    )
    return Beside(
        told.rate,
        1000 * told.cpu,
        1e6 * used / events,
        told.p50,
        told.p99,
        events / commits,
        1000 * took / commits,
        memory,
        made / commits,
    )


def run(folder: Path, *, seconds: float) -> None:
    """Both, with one ranker and with eight; the medians of some rounds, in which they take turns."""
    from tests.serving.postgresql import start

    print(
        f"\none process on SQLite beside one replica on PostgreSQL, {CONNECTIONS} connections, {len(ITEMS)} items, "
        f"every list answered; medians of {ROUNDS} runs of {seconds:g} s each, in turn\n"
    )
    heads = (
        "events/s",
        "us service",
        "us database",
        "p50 ms",
        "p99 ms",
        "a commit",
        "ms",
        "MB",
        "transactions",
    )
    try:
        database = start(folder)
    except RuntimeError as missing:
        print(f"left out: {missing}")
        return
    print(f"{'':<24}" + "".join(f"{head:>13}" for head in heads))
    try:
        for n_rankers in (1, 8):
            found: dict[str, list[Beside]] = {"SQLite": [], "PostgreSQL": []}
            for i in range(ROUNDS):
                data = ["--data", str(folder / f"beside-{n_rankers}-{i}")]
                found["SQLite"].append(one(data, n_rankers, None, seconds=seconds))
                schema = ["--database", database.url, "--schema", f"beside_{n_rankers}_{i}"]
                found["PostgreSQL"].append(one(schema, n_rankers, database, seconds=seconds))
            for name, runs in found.items():
                middle = Beside(*(statistics.median(column) for column in zip(*runs, strict=True)))
                texts = [f"{middle.rate:,.0f}", *(f"{value:.1f}" for value in middle[1:-1])]
                texts.append(f"{middle.transactions:.2f}" if name == "PostgreSQL" else "")
                title = f"{name}, {n_rankers} ranker{'s' * (n_rankers > 1)}"
                print(f"{title:<24}" + "".join(f"{text:>13}" for text in texts), flush=True)
    finally:
        database.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankloop-beside-") as folder:
        run(Path(folder), seconds=arguments.seconds)


if __name__ == "__main__":
    main()
