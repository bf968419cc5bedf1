"""How long learning-to-rank text takes to read: 100,000 lines of MSLR-WEB beside scikit-learn's reader."""

from __future__ import annotations

import gzip
import itertools
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from sklearn.datasets import load_svmlight_file

from benchmarks.timing import FULL, QUICK, Effort
from rankloop import data

N_LINES, FEW_LINES = 100_000, 20_000
N_FEATURES = 136


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds to read the lines, by the clock and of CPU (all threads), each the best of a few."""

    reader: str
    file: str
    n_lines: int
    seconds: float
    cpu_seconds: float


def run(quick: bool = False) -> list[Reading]:
    """Measure and print."""
    found = measure(QUICK if quick else FULL, lambda _: None)
    for part in tables(found):
        Console().print(part)
    return found


def measure(effort: Effort, tell: Callable[[str], None]) -> list[Reading]:
    """Read the same lines in every way, in turn; the fragment's lines are repeated to have enough."""
    try:
        source = data.find("ltr/mslr/mslr_dev.txt.gz")
    except data.DataMissing as missing:
        tell(f"reading text: {missing}")
        return []
    n_lines = N_LINES if effort == FULL else FEW_LINES
    found = []
    with tempfile.TemporaryDirectory() as folder:
        with gzip.open(source) as file:
            text = b"".join(itertools.islice(itertools.cycle(file.readlines()), n_lines))
        for name, raw in (("lines.txt", text), ("lines.txt.gz", gzip.compress(text, 6))):
            path = Path(folder, name)
            path.write_bytes(raw)
            ways: dict[str, Callable[[], object]] = {
                "scikit-learn": partial(load_svmlight_file, str(path), query_id=True, dtype="float32"),
                "as written": partial(data.read_letor, path, normalize=None),
                "normalised": partial(data.read_letor, path),
            }
            data.read_letor(path)  # compiles
            best = dict.fromkeys(ways, (float("inf"), float("inf")))
            for lap in range(3 if effort == FULL else 2):
                for reader, read in ways.items():
                    if lap and reader == "scikit-learn":
                        continue  # seconds long: once is enough, and three times are most of the benchmark
                    tell(f"reading text: {reader}, {name}")
                    clock, cpu = _seconds(read)
                    best[reader] = min(best[reader][0], clock), min(best[reader][1], cpu)
            found += [Reading(reader, name, n_lines, *took) for reader, took in best.items()]
    return found


def _seconds(read: Callable[[], object]) -> tuple[float, float]:
    begun, cpu = time.perf_counter(), time.process_time()
    read()
    return time.perf_counter() - begun, time.process_time() - cpu


def tables(found: list[Reading]) -> list[RenderableType]:
    """Seconds of each reader and how many times as fast as scikit-learn's it is."""
    if not found:
        return ["Reading text: no data, skipped"]
    title = f"Reading {found[0].n_lines:,} lines of MSLR-WEB, {N_FEATURES} features: seconds"
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("reader", "file"):
        table.add_column(column)
    for column in ("by the clock", "CPU", "lines/s", "ratio", "ratio, CPU"):
        table.add_column(column, justify="right")
    theirs = {reading.file: reading for reading in found if reading.reader == "scikit-learn"}
    for reading in found:
        base = theirs[reading.file]
        table.add_row(
            reading.reader,
            "gzip" if reading.file.endswith(".gz") else "plain",
            f"{reading.seconds:.3f}",
            f"{reading.cpu_seconds:.3f}",
            f"{reading.n_lines / reading.seconds:,.0f}",
            f"{base.seconds / reading.seconds:.0f}",
            f"{base.cpu_seconds / reading.cpu_seconds:.0f}",
        )
    return [table]


if __name__ == "__main__":
    run()
