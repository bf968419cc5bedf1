"""Click models from logs: a position-based model from pages, and a long Parquet log read a piece at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from rich.console import RenderableType
from rich.table import Table

from benchmarks.timing import FULL, Effort
from rankloop import feedback, logs

N_SESSIONS, N_ITEMS, N_POSITIONS = 20_000, 12, 10
LONG, SHORT = 10_000_000, 1_000_000
N_QUERIES, ITEMS_OF_A_QUERY = 1_000, 20


@dataclass(frozen=True, slots=True)
class Fitting:
    """CPU seconds to count pages and fit the position-based model to them, and the steps of the fit."""

    n_sessions: int
    seconds: float
    steps: int


@dataclass(frozen=True, slots=True)
class Streaming:
    """What a new process takes to count a Parquet log and to fit it, and its memory before and at most."""

    n_rows: int
    file_megabytes: float
    n_cells: int
    read_seconds: float  # by the clock
    read_cpu: float
    fit_cpu: float
    start_megabytes: float
    peak_megabytes: float


def measure(effort: Effort, tell: Callable[[str], None]) -> list[Fitting | Streaming]:
    """Both parts; the long log only with full effort."""
    found: list[Fitting | Streaming] = []
    items, clicks = sessions(N_SESSIONS)
    tell("clicks: a fit to pages")
    found.append(_fitted(items, clicks))
    for n_rows in (SHORT, LONG) if effort == FULL else (SHORT,):
        tell(f"clicks: {n_rows:,} rows of Parquet")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "log.parquet")
            write_log(path, n_rows)
            found.append(_streamed(path, n_rows))
    return found


def sessions(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pages of one query, each item mostly near its place, and the clicks on them."""
    rng = np.random.default_rng(1)
    model = feedback.PositionBasedModel(
        attraction=np.linspace(0.5, 0.05, N_ITEMS), examination=1 / np.arange(1, N_POSITIONS + 1)
    )
    items = np.argsort(np.arange(N_ITEMS) + 3 * rng.standard_normal((n, N_ITEMS)), axis=1)[:, :N_POSITIONS]
    return items, model.click(items, rng=rng)


def _fitted(items: np.ndarray, clicks: np.ndarray) -> Fitting:
    seconds, steps = float("inf"), 0
    for _ in range(3):
        begun = time.process_time()
        fitted = logs.fit_pbm(feedback.ClickLog.count(items=items, clicks=clicks))
        seconds = min(seconds, time.process_time() - begun)
        steps = len(fitted.trace)
    return Fitting(len(items), seconds, steps)


def write_log(path: Path, n_rows: int) -> None:
    """A log of impressions: a thousand queries, some asked far more often than others, ten of twenty items shown."""
    rng = np.random.default_rng(2)
    often = 1 / np.arange(1, N_QUERIES + 1)
    attraction = rng.random((N_QUERIES, ITEMS_OF_A_QUERY)) ** 2
    examination = 1 / np.arange(1, N_POSITIONS + 1)
    schema = pa.schema(
        [("query", pa.int32()), ("item", pa.int32()), ("position", pa.int8()), ("click", pa.int8())]
    )
    pages = 20_000
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for _ in range(n_rows // (pages * N_POSITIONS)):
            query = rng.choice(N_QUERIES, pages, p=often / often.sum())
            score = np.arange(ITEMS_OF_A_QUERY) + 4 * rng.standard_normal((pages, ITEMS_OF_A_QUERY))
            item = np.argsort(score, axis=1)[:, :N_POSITIONS]
            click = rng.random(item.shape) < attraction[query[:, None], item] * examination
            columns = {
                "query": np.repeat(query, N_POSITIONS),
                "item": (query[:, None] * 100 + item).ravel(),
                "position": np.tile(np.arange(1, N_POSITIONS + 1), pages),
                "click": click.ravel().astype(np.int8),
            }
            arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


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
start, clock, cpu = peak(), time.perf_counter(), time.process_time()
log = data.read_clicks(sys.argv[1])
read_clock, read_cpu = time.perf_counter(), time.process_time()
fitted = logs.fit_pbm(log)
fit_cpu = time.process_time() - read_cpu
print(json.dumps([log.n_cells, read_clock - clock, read_cpu - cpu, fit_cpu, start, peak()]))
"""


def _streamed(path: Path, n_rows: int) -> Streaming:
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True
    )
    return Streaming(n_rows, path.stat().st_size / 1e6, *json.loads(done.stdout))


def tables(found: list[Fitting | Streaming]) -> list[RenderableType]:
    """Sessions per second, and what a long log costs."""
    fits = [one for one in found if isinstance(one, Fitting)]
    streams = [one for one in found if isinstance(one, Streaming)]
    second = Table(title="A Parquet log, read a piece at a time", title_justify="left", title_style="bold")
    for column in ("rows", "file, MB", "cells", "read, s", "CPU", "fit, CPU", "MB at start", "MB at most"):
        second.add_column(column, justify="right")
    for one in streams:
        second.add_row(
            f"{one.n_rows:,}",
            f"{one.file_megabytes:.0f}",
            f"{one.n_cells:,}",
            f"{one.read_seconds:.1f}",
            f"{one.read_cpu:.1f}",
            f"{one.fit_cpu:.1f}",
            f"{one.start_megabytes:.0f}",
            f"{one.peak_megabytes:.0f}",
        )
    lines: list[RenderableType] = [
        _met(one.seconds < 1.0)
        + f"  {one.n_sessions:,} sessions counted and fitted in {one.seconds:.3f} s, {one.steps} steps, aim 1 s"
        for one in fits
    ]
    return [*lines, second]


def _met(good: bool) -> str:
    return "[green]   met[/]" if good else "[red]missed[/]"
