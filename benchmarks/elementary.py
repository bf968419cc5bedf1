"""exp, log, pow and cos of our own beside those of the C library, in a loop that does nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.table import Table

from benchmarks.timing import Effort, race
from rankloop.kernels import elementary

N = 10_000  # numbers a call


def _libm_power(x: float) -> float:
    return float(x**-0.3)


def _our_power(x: float) -> Any:
    return elementary.power(x, -0.3)


def _libm_cos(x: float) -> float:
    return math.cos(2.0 * math.pi * x)


PAIRS: dict[str, tuple[Callable[[float], Any], Callable[[float], Any]]] = {
    "exp": (math.exp, elementary.exp),
    "log": (math.log, elementary.log),
    "power": (_libm_power, _our_power),
    "cos_turns": (_libm_cos, elementary.cos_turns),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Nanoseconds a call of the C library's function and of ours."""

    name: str
    libm: float
    ours: float


def measure(effort: Effort, tell: Callable[[str], None]) -> list[Pair]:
    """Sum each function over the same numbers."""
    numbers = np.random.default_rng(1).uniform(0.01, 20.0, N)
    found = []
    for name, (libm, ours) in PAIRS.items():
        tell(f"elementary: {name}")
        contenders = {"libm": _contender(libm, numbers), "ours": _contender(ours, numbers)}
        best = race(contenders, effort=effort, most_rounds=10_000)
        found.append(Pair(name, best["libm"] / N * 1e9, best["ours"] / N * 1e9))
    return found


def _contender(
    function: Callable[[float], Any], numbers: NDArray[np.float64]
) -> Callable[[int], Callable[[], object]]:
    compiled = function if function in (math.exp, math.log) else numba.njit(function)

    @numba.njit  # type: ignore[untyped-decorator]
    def total(numbers: NDArray[np.float64], rounds: int) -> float:
        found = 0.0
        for _ in range(rounds):
            for x in numbers:
                found += compiled(x)
        return found

    def ready(rounds: int) -> Callable[[], object]:
        return lambda: total(numbers, rounds)

    return ready


def tables(found: list[Pair]) -> list[RenderableType]:
    """The two side by side."""
    table = Table(title="Elementary functions", title_justify="left", title_style="bold")
    table.add_column("")
    for column in ("C library, ns", "ours, ns", "ours / C library"):
        table.add_column(column, justify="right")
    for one in found:
        table.add_row(one.name, f"{one.libm:.1f}", f"{one.ours:.1f}", f"{one.ours / one.libm:.2f}")
    return [table]
