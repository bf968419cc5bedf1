"""CPU seconds of a new process that calls something first: with nothing compiled yet, and with everything compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from benchmarks.timing import Effort

IMPORTS = "from rankloop import data, environments, rankers, simulation"


@dataclass(frozen=True, slots=True)
class FirstCall:
    """CPU seconds without and with compiled code on disk, and how many functions that code has."""

    what: str
    cold: float
    warm: float
    functions: int


def readme_example() -> str:
    """The first Python block of the README."""
    text = (Path(__file__).parents[1] / "README.md").read_text()
    return text.split("```python\n", 1)[1].split("```", 1)[0]


def measure(effort: Effort, tell: Callable[[str], None]) -> list[FirstCall]:
    """The example of the README."""
    return timed({"the first example of the README": readme_example()}, tell)


def timed(examples: Mapping[str, str], tell: Callable[[str], None]) -> list[FirstCall]:
    """Run each example with a new folder for compiled code, then a few times more with the same one."""
    _cpu_seconds(IMPORTS, os.environ)  # Python's own files are compiled beforehand
    found = []
    for what, code in examples.items():
        tell(f"first call: {what}")
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
            cold = _cpu_seconds(code, environment)
            functions = sum(1 for _ in Path(folder).rglob("*.nbc"))
            warm = min(_cpu_seconds(code, environment) for _ in range(3))
        found.append(FirstCall(what, cold, warm, functions))
    return found


def _cpu_seconds(code: str, environment: Mapping[str, str]) -> float:
    before = os.times()
    subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def tables(found: list[FirstCall]) -> list[RenderableType]:
    """A row for each example."""
    table = Table(
        title="The first call: CPU seconds of a new process", title_justify="left", title_style="bold"
    )
    table.add_column("")
    for heading in ("nothing compiled yet", "compiled before", "compiled functions"):
        table.add_column(heading, justify="right")
    for one in found:
        table.add_row(one.what, f"{one.cold:.1f}", f"{one.warm:.2f}", str(one.functions))
    return [table]
