"""Rounds per second of RTop-1F and FTPL, beside plain NumPy and beside the bare cost of a sort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks import bare, numpy_ftpl, numpy_rtop1f
from benchmarks.numpy_summary import summary
from benchmarks.timing import Contender, Effort, race
from rankloop import environments, rankers, simulation
from rankloop.kernels import sorting

SIZES = (10, 100, 1_000, 100_000)
RANKERS: dict[str, Any] = {"RTop1F": rankers.RTop1F, "FTPL": rankers.FTPL}

FUSED = "rankloop, fused"
STEPWISE = "rankloop, step by step"
NUMPY = "NumPy, round by round"
NUMPY_IN_PLACE = "NumPy, tuned in place"
NUMPY_BY_BLOCK = "NumPy, a block at once"
BARE = "bare: m numbers and a sort"
BARE_ARGSORT = "bare, numba's argsort"

AIM_OVER_NUMPY = 50.0  # at m = 10
AIM_OVER_BARE = 0.5  # from m = 100 on

_MOST_NUMBERS = 1 << 22  # in the relevance matrix


@dataclass(frozen=True, slots=True)
class Rates:
    """Rounds per second of each contender for one ranker and one number of items."""

    ranker: str
    m: int
    rounds_per_second: dict[str, float]

    def fused_over(self, contender: str) -> float:
        """How many rounds the fused loop plays while `contender` plays one; NaN where there is none."""
        return self.rounds_per_second[FUSED] / self.rounds_per_second.get(contender, float("nan"))


def horizon_for(m: int) -> int:
    """So long that RTop-1F explores (m^2 / T)^(1/3) of its rounds: 5%, and 20% at 100,000 items; not all are played."""
    return min(10_000 * m * m, 10**12)


def relevance_for(m: int) -> np.ndarray:
    """The paper's noisy half-relevant users, drawn beforehand: the same for all contenders and on nobody's clock."""
    users = environments.users.noisy_halves(n_items=m)
    rows = max(64, _MOST_NUMBERS // m)
    return (np.random.default_rng(2015).random((rows, m)) < users.tails[0, 0]).astype(np.int8)


def points_for(rounds: int) -> np.ndarray:
    """The rounds at which regret is recorded: 100 at most, and not more than every hundredth."""
    points = max(1, min(100, rounds // 100))
    return np.linspace(0, rounds, points + 1).round().astype(np.int64)[1:]


def measure(effort: Effort, tell: Callable[[str], None], *, sizes: tuple[int, ...] = SIZES) -> list[Rates]:
    """Race the contenders of each ranker at each size."""
    found = []
    for m in sizes:
        relevance = relevance_for(m)
        for name in RANKERS:
            tell(f"speed: {name}, {m:,} items")
            seconds = race(contenders(name, relevance), effort=effort, most_rounds=len(relevance))
            found.append(Rates(name, m, {contender: 1 / spent for contender, spent in seconds.items()}))
    return found


def contenders(name: str, relevance: np.ndarray) -> dict[str, Contender]:
    """Everybody who plays `name` on the rows of `relevance`, in the order of the table."""
    m = relevance.shape[1]
    people = environments.FixedItems(relevance, measure="dcg")
    gains = relevance.astype(np.float64)
    make = made_for(RANKERS[name], m)
    return {
        FUSED: of_rankloop(make, people, fused=True),
        STEPWISE: of_rankloop(make, people, fused=False),
        **{contender: of_numpy(kind, gains) for contender, kind in _PLAIN[name].items()},
        BARE: bare_sort(m),
        BARE_ARGSORT: bare_argsort(m),
    }


_PLAIN: dict[str, dict[str, Any]] = {
    "RTop1F": {
        NUMPY: numpy_rtop1f.RTop1F,
        NUMPY_IN_PLACE: numpy_rtop1f.RTop1FInPlace,
        NUMPY_BY_BLOCK: numpy_rtop1f.RTop1FByBlock,
    },
    "FTPL": {NUMPY: numpy_ftpl.FTPL, NUMPY_IN_PLACE: numpy_ftpl.FTPLInPlace},
}


def made_for(kind: Any, m: int) -> Callable[[], Any]:
    """Makes rankers of a kind for `m` items."""
    return partial(kind, n_items=m, horizon=horizon_for(m), measure="dcg")


def of_rankloop(make: Callable[[], Any], users: Any, *, fused: bool) -> Contender:
    """A ranker of ours, new for every slice, against `users` from the first one on."""

    def ready(rounds: int) -> Callable[[], object]:
        users.restart()
        ranker, points = make(), len(points_for(rounds))
        return lambda: simulation.play(
            ranker, users, rounds=rounds, seed=1, points=points, fused=fused, progress=False
        )

    return ready


def of_numpy(kind: Any, gains: np.ndarray) -> Contender:
    """A ranker in plain NumPy, new for every slice, on the same users."""

    def ready(rounds: int) -> Callable[[], object]:
        m = gains.shape[1]
        ranker = kind(n_items=m, horizon=horizon_for(m), rng=np.random.default_rng(1))
        rows = gains[:rounds]
        return lambda: summary(ranker.play(rows), rows, points_for(rounds))

    return ready


def bare_sort(m: int) -> Contender:
    """The least that a round can cost, with our sort."""
    scores, items, scratch = np.empty(m), np.empty(m, np.int64), sorting.scratch(m)

    def ready(rounds: int) -> Callable[[], object]:
        words = np.random.default_rng(1).bit_generator.random_raw(rounds)
        return lambda: bare.draw_and_sort(words, scores, items, scratch)

    return ready


def bare_argsort(m: int) -> Contender:
    """The same with numba's."""
    scores, items = np.empty(m), np.empty(m, np.int64)

    def ready(rounds: int) -> Callable[[], object]:
        words = np.random.default_rng(1).bit_generator.random_raw(rounds)
        return lambda: bare.draw_and_argsort(words, scores, items)

    return ready


def tables(found: list[Rates]) -> list[RenderableType]:
    """One table for each ranker, and a line for each aim."""
    return [*(_table(name, [r for r in found if r.ranker == name]) for name in RANKERS), *_aims(found)]


def _table(name: str, columns: list[Rates]) -> Table:
    table = Table(title=f"{name}: rounds per second", title_justify="left", title_style="bold")
    table.add_column("")
    for rates in columns:
        table.add_column(f"m = {rates.m:,}", justify="right")
    for contender in columns[0].rounds_per_second:
        cells = [f"{rates.rounds_per_second[contender]:,.0f}" for rates in columns]
        table.add_row(contender, *cells, style="bold" if contender == FUSED else None)
    table.add_section()
    for label, contender in _RATIOS.items():
        if contender in columns[0].rounds_per_second:
            table.add_row(label, *(f"{_short(rates.fused_over(contender))}x" for rates in columns))
    return table


_RATIOS = {
    "fused over step by step": STEPWISE,
    "fused over NumPy": NUMPY,
    "fused over NumPy, tuned": NUMPY_IN_PLACE,
    "fused over NumPy, a block at once": NUMPY_BY_BLOCK,
    "fused over bare": BARE,
}


def _aims(found: list[Rates]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for name in RANKERS:
        ratios = {
            rates.m: rates.fused_over(NUMPY) for rates in found if rates.ranker == name and rates.m == 10
        }
        lines += [verdict(f"{name} fused over NumPy at m = 10", ratios, AIM_OVER_NUMPY)] if ratios else []
        shares = {
            rates.m: rates.fused_over(BARE) for rates in found if rates.ranker == name and rates.m >= 100
        }
        lines += [verdict(f"{name} fused over bare from m = 100", shares, AIM_OVER_BARE)] if shares else []
    return lines


def verdict(what: str, ratios: dict[int, float], aim: float) -> str:
    """One line: the lowest of `ratios`, and whether it reaches `aim`."""
    m = min(ratios, key=lambda size: ratios[size])
    met = "[green]   met[/]" if ratios[m] >= aim else "[red]missed[/]"
    where = f" (m = {m:,})" if len(ratios) > 1 else ""
    return f"{met}  {what}: {_short(ratios[m])}x{where}, aim {aim:g}x"


def _short(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 2 else f"{ratio:.2f}"
