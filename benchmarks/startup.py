"""How long a new process takes until something happens, with everything compiled before."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from benchmarks.timing import FULL, Effort

FIRST_ROUND = """
from rankloop import environments, rankers, simulation
people = environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")
simulation.play(rankers.RTop1F(n_items=10, horizon=1000), people, rounds=1, seed=1)
"""

_PYTHON = sys.executable


@dataclass(frozen=True, slots=True)
class StartUp:
    """Seconds from the start of a process, by the clock and of CPU, the best of a few; NaN where it does not run."""

    what: str
    seconds: float
    cpu_seconds: float
    aim: float | None


def measure(effort: Effort, tell: Callable[[str], None]) -> list[StartUp]:
    """Start each process a few times; the first time fills the caches and does not count."""
    command = str(Path(_PYTHON).with_name("rankloop"))
    found = []
    for what, words, aim in (
        ("python itself", [_PYTHON, "-c", "pass"], None),
        ("import rankloop", [_PYTHON, "-c", "import rankloop"], 0.3),
        ("rankloop --help", [command, "--help"], None),
        ("first fused round of RTop1F", [_PYTHON, "-c", FIRST_ROUND], 1.0),
    ):
        tell(f"start-up: {what}")
        tries = [_run(words) for _ in range(6 if effort == FULL else 3)][1:]
        found.append(StartUp(what, min(by_clock for by_clock, _ in tries), min(cpu for _, cpu in tries), aim))
    return found


def _run(words: list[str]) -> tuple[float, float]:
    before = os.times()
    try:
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return float("nan"), float("nan")
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return after.elapsed - before.elapsed, cpu


def tables(found: list[StartUp]) -> list[RenderableType]:
    """Seconds until each thing happened, beside what was aimed at."""
    table = Table(title="Start-up: seconds from process start", title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("by the clock", justify="right")
    table.add_column("CPU", justify="right")
    table.add_column("aim", justify="right")
    for start in found:
        aim = ""
        if start.aim is not None:
            aim = (
                f"[green]{start.aim:g} met[/]"
                if start.seconds <= start.aim
                else f"[red]{start.aim:g} missed[/]"
            )
        seconds = "does not run" if math.isnan(start.seconds) else f"{start.seconds:.2f}"
        table.add_row(start.what, seconds, f"{start.cpu_seconds:.2f}", aim)
    return [table]
