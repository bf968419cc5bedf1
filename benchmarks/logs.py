"""A long click log in Parquet, counted and fitted by a process of its own: CPU seconds and memory.

`python -m benchmarks.logs ROWS` takes a log of so many rows, with every query, item and position as likely as another.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console, RenderableType

from benchmarks.timing import FULL, Effort, headed

QUERIES, ITEMS, POSITIONS = 10_500, 20, 10  # 2.1 million cells
ROWS = 1_000_000, 10_000_000
_PART = 1_000_000


@dataclass(frozen=True, slots=True)
class Counted:
    """What a new process takes to count a log and to fit it, and its memory before and at most."""

    n_rows: int
    file_megabytes: float
    n_cells: int
    read_cpu: float
    fit_cpu: float
    start_megabytes: float
    peak_megabytes: float


def measure(
    effort: Effort, tell: Callable[[str], None], *, rows: tuple[int, ...] | None = None
) -> list[Counted]:
    """The longest log only with full effort."""
    found = []
    for n_rows in rows or (ROWS if effort == FULL else ROWS[:1]):
        tell(f"logs: {n_rows:,} rows of Parquet")
        with tempfile.TemporaryDirectory() as folder:
            found.append(counted(write_log(Path(folder), n_rows), n_rows))
    return found


def write_log(folder: Path, n_rows: int) -> Path:
    """Impressions of every query, item and position alike, so that every cell occurs."""
    rng = np.random.default_rng(1)
    for part, start in enumerate(range(0, n_rows, _PART)):
        size = min(_PART, n_rows - start)
        query, place = rng.integers(QUERIES, size=size), rng.integers(POSITIONS, size=size)
        columns = {
            "query": query.astype(np.int32),
            "item": (query * 100 + rng.integers(ITEMS, size=size)).astype(np.int32),
            "position": (place + 1).astype(np.int8),
            "click": (rng.random(size) < 0.3 / (place + 1)).astype(np.int8),
        }
        pl.DataFrame(columns).write_parquet(folder / f"{part:04}.parquet")
    pl.scan_parquet(folder / "0*.parquet").sink_parquet(folder / "whole.parquet")
    return folder / "whole.parquet"


_READ = """
import json, resource, sys, time
from pathlib import Path
import polars, scipy.special, scipy.sparse.csgraph
from rankloop import data, logs
def peak():
    status = Path("/proc/self/status")
    if status.exists():  # a process inherits the peak of the one that started it, except for this one
        return next(int(line.split()[1]) / 1e3 for line in status.read_text().splitlines() if "VmHWM" in line)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
start, cpu = peak(), time.process_time()
log = data.read_clicks(sys.argv[1])
read_cpu = time.process_time()
fitted = logs.fit_pbm(log)
print(json.dumps([log.n_cells, read_cpu - cpu, time.process_time() - read_cpu, start, peak()]))
"""


def counted(path: Path, n_rows: int) -> Counted:
    """Count and fit the log at `path` in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True
    )
    return Counted(n_rows, path.stat().st_size / 1e6, *json.loads(done.stdout))


def tables(found: list[Counted]) -> list[RenderableType]:
    """A row for each length."""
    columns = "file, MB", "cells", "count, CPU-s", "fit, CPU-s", "MB at start", "MB at most"
    made = headed("A click log in Parquet: rows", *columns)
    for one in found:
        made.add_row(
            f"{one.n_rows:,}",
            f"{one.file_megabytes:.0f}",
            f"{one.n_cells:,}",
            f"{one.read_cpu:.1f}",
            f"{one.fit_cpu:.1f}",
            f"{one.start_megabytes:.0f}",
            f"{one.peak_megabytes:.0f}",
        )
    return [made]


if __name__ == "__main__":
    for table in tables(measure(FULL, lambda what: None, rows=(int(sys.argv[1]),))):
        Console().print(table)
