"""`python -m benchmarks [NAME ...] [--quick] [--json FILE] [--pictures FOLDER]`: every speed that matters."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

# One core for everybody; BLAS reads this when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import rankloop
from benchmarks import calls, catalogue, clicks, documents, fixed_items, games, logs, startup
from benchmarks.timing import FULL, QUICK

BENCHMARKS: dict[str, Any] = {
    "fixed-items": fixed_items,
    "documents": documents,
    "clicks": clicks,
    "catalogue": catalogue,
    "calls": calls,
    "startup": startup,
    "logs": logs,
    "games": games,
}


def main(words: list[str] | None = None) -> None:
    """Run the benchmarks that were asked for, print their tables, and write the numbers to a file if wanted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"any of {', '.join(BENCHMARKS)}; if none, all",
    )
    parser.add_argument("--quick", action="store_true", help="shorter and rougher: about a third of the time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to FILE")
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="also draw what has a picture into FOLDER"
    )
    asked = parser.parse_args(words)
    unknown = [name for name in asked.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; choose from {', '.join(BENCHMARKS)}")
    names = [name for name in BENCHMARKS if name in (asked.names or BENCHMARKS)]
    begun = time.perf_counter()
    results = _run(names, quick=asked.quick)
    _show(results, seconds=time.perf_counter() - begun)
    if asked.json is not None:
        asked.json.write_text(json.dumps(_plain(results), indent=2) + "\n")
    if asked.pictures is not None:
        _draw(results, asked.pictures)


def _run(names: list[str], *, quick: bool) -> dict[str, list[Any]]:
    console = Console(stderr=True)
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def tell(what: str) -> None:
            bar.update(task, description=what)

        return {name: BENCHMARKS[name].measure(QUICK if quick else FULL, tell) for name in names}


def _show(results: dict[str, list[Any]], *, seconds: float) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120  # a file has no width of its own
    console.print(f"{_machine()}; {seconds:.0f} s", style="dim")
    for name, found in results.items():
        for part in BENCHMARKS[name].tables(found):
            if not isinstance(part, str):
                console.print()
            console.print(part, soft_wrap=isinstance(part, str))


def _draw(results: dict[str, list[Any]], folder: Path) -> None:
    from rankloop import plotting

    for name, found in results.items():
        if hasattr(BENCHMARKS[name], "pictures"):
            for stem, figure in BENCHMARKS[name].pictures(found).items():
                plotting.save(figure, folder / f"{stem}.png", ending="png")


def _machine() -> str:
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return f"rankloop {rankloop.__version__} on {platform.machine()}, {versions}"


def _plain(results: dict[str, list[Any]]) -> dict[str, Any]:
    numbers = {name: [dataclasses.asdict(one) for one in found] for name, found in results.items()}
    return {"machine": _machine(), **numbers}


if __name__ == "__main__":
    main()
