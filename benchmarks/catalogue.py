"""How long a round takes, and how large a state is, as the number of items grows from ten to a hundred thousand."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks import bare_clicks
from benchmarks.catalogue_rankers import MANY, POSITIONS, USERS, Entry, entries, shown
from benchmarks.growth import FIT_FROM, Growth
from benchmarks.pbm import people_for
from benchmarks.timing import FULL, Contender, Effort, race
from rankloop import simulation
from rankloop.base import Environment, Ranker

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (10, 100, 1_000, 10_000, MANY)
BARE = "bare: a list, clicks"
MOST_ROUNDS = 20_000  # a slice
# A round of TopRank over the bare one as of commit 7bc34f6, when every item cost time; a fifth of it is aimed at.
TOP_RANK_BEFORE = {1_000: 20.5, 10_000: 1_907.0}
TOP_RANK_AIM = 5.0
_SHORT, _TIMES = 0.3, 3  # a run of fewer seconds is timed so often


@dataclass(frozen=True, slots=True)
class Rounds(Growth):
    """Seconds a round at each size, the bytes of the state there, and how a round should grow."""

    theory: str
    bytes_held: dict[int, int]


def measure(effort: Effort, tell: Callable[[str], None], *, sizes: tuple[int, ...] = SIZES) -> list[Rounds]:
    """Time every ranker at each size: those with the same users in turn, and whole runs one by one."""
    timed = entries(quick=effort != FULL)
    found = {name: Rounds(name, {}, entry.theory, {}) for name, entry in timed.items()}
    found[BARE] = Rounds(BARE, {}, "1", {})
    for n in sizes:
        tell(f"catalogue: {n:,} items")
        for kind, users_for in USERS.items():
            here = {name: entry for name, entry in timed.items() if entry.users == kind and n <= entry.up_to}
            if here:
                _time(found, here, users_for(n), n, effort)
        found[BARE].seconds[n] = race({BARE: _bare(n)}, effort=effort, most_rounds=MOST_ROUNDS)[BARE]
    return list(found.values())


def _time(
    found: dict[str, Rounds], here: dict[str, Entry], users: Environment, n: int, effort: Effort
) -> None:
    going_on = {}
    for name, entry in here.items():
        ranker = entry.make(n)
        found[name].bytes_held[n] = _size_of((ranker.state, ranker.params))  # type: ignore[attr-defined]
        if entry.whole_run:
            del ranker
            found[name].seconds[n] = _seconds_of_a_run(entry, users, n)
        else:
            going_on[name] = _going_on(ranker, users)
    if going_on:
        for name, spent in race(going_on, effort=effort, most_rounds=MOST_ROUNDS).items():
            found[name].seconds[n] = spent


def _seconds_of_a_run(entry: Entry, users: Environment, n: int) -> float:
    simulation.play(entry.make(n), users, rounds=1, seed=1, points=1, fused=True, progress=False)  # compiles
    best = float("inf")
    for _ in range(_TIMES):
        users.restart()
        ranker, begun = entry.make(n), time.process_time()
        simulation.play(ranker, users, rounds=entry.whole_run, seed=1, points=1, fused=True, progress=False)
        best = min(best, time.process_time() - begun)
        if best > _SHORT:
            break
    return best / entry.whole_run


def _going_on(ranker: Ranker, users: Environment) -> Contender:
    def ready(rounds: int) -> Callable[[], object]:
        users.restart()
        return lambda: simulation.play(
            ranker, users, rounds=rounds, seed=2, points=1, fused=True, progress=False
        )

    return ready


def _bare(n: int) -> Contender:
    people, order, clicks = people_for(n, shown(n)), np.arange(n), np.zeros(n, np.int64)
    return lambda rounds: (
        lambda: bare_clicks.draw_and_click(rounds, order, people.attraction, people.examination, clicks)
    )


def _size_of(held: Any) -> int:
    if isinstance(held, np.ndarray):
        return held.nbytes
    return sum(map(_size_of, held)) if isinstance(held, tuple) else 0


def tables(found: list[Rounds]) -> list[RenderableType]:
    """Microseconds a round at each size, the exponent beside that of theory, and the size of the state."""
    sizes = list(found[-1].seconds)
    title = f"Many items, {POSITIONS} shown where clicks are observed: microseconds a round"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("n =")
    for heading in (*(f"{n:,}" for n in sizes), "exponent", "theory", "state"):
        table.add_column(heading, justify="right")
    for one in found:
        if one.name == BARE:
            table.add_section()
        times = (_short(1e6 * one.seconds[n]) if n in one.seconds else "" for n in sizes)
        fitted = f"{one.in_m:.2f}" if sum(n >= FIT_FROM for n in one.seconds) > 1 else ""
        table.add_row(one.name, *times, fitted, one.theory, _bytes(one.bytes_held))
    return [
        table,
        f"Exponents are fitted from n = {FIT_FROM} on. State: arrays of the ranker at the largest n of its row.",
        *_large(found),
        *_aims(found),
    ]


def _aims(found: list[Rounds]) -> list[str]:
    bare = found[-1].seconds
    lines = []
    for one in (one for one in found if one.name.startswith("TopRank")):
        for n in (n for n in TOP_RANK_BEFORE if n in one.seconds):
            times, before = one.seconds[n] / bare[n], TOP_RANK_BEFORE[n]
            met = "[green]   met[/]" if times * TOP_RANK_AIM <= before else "[red]missed[/]"
            told = f"{times:.1f} times the bare round, {before:,g} before"
            lines.append(
                f"{met}  {one.name} rounds, {n:,} items: {told}, aim at most {before / TOP_RANK_AIM:,.1f}"
            )
    return lines


def _large(found: list[Rounds]) -> list[str]:
    quick = [one.name for one in found if one.seconds.get(MANY, 1.0) < 1e-3 and one.name != BARE]
    slow = [one.name for one in found if one.seconds.get(MANY, 0.0) >= 1e-3]
    none = [f"{one.name} ({max(one.seconds):,})" for one in found if MANY not in one.seconds]
    if MANY not in found[-1].seconds:
        return []
    return [
        f"With {MANY:,} items, below a millisecond a round: {'; '.join(quick)}.",
        f"A millisecond or more: {'; '.join(slow)}.",
        f"Not for so many: {'; '.join(none)}.",
    ]


def pictures(found: list[Rounds]) -> dict[str, Figure]:
    """The same as lines."""
    from benchmarks import catalogue_figure

    return {"catalogue-growth": catalogue_figure.draw([one for one in found if one.name != BARE])}


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _bytes(held: dict[int, int]) -> str:
    if not held:
        return ""
    size = held[max(held)]
    unit, name = next(
        (unit, name) for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if size >= unit / 10
    )
    return f"{size / unit:.2f} GB" if name == "GB" else f"{size / unit:.1f} {name}"
