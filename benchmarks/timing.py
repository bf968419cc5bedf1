"""Fair timing on a machine that others use too: CPU seconds, short slices, contenders in turn, the best of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from rankloop import simulation

# Given a number of rounds, gets everything ready and returns what is to be timed.
Contender = Callable[[int], Callable[[], object]]

FUSED, STEPWISE, NUMPY, BARE = "fused", "step by step", "NumPy", "bare"


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to look: seconds a slice, and how many slices of each contender."""

    slice_seconds: float
    laps: int


FULL = Effort(slice_seconds=0.05, laps=7)
QUICK = Effort(slice_seconds=0.02, laps=3)


@dataclass(frozen=True, slots=True)
class Race:
    """CPU seconds a round of each contender, in one row of a table."""

    row: str
    seconds: dict[str, float]

    def over(self, contender: str) -> float:
        """How many rounds the fused loop plays while `contender` plays one."""
        return self.seconds[contender] / self.seconds[FUSED]


def race(
    row: str, contenders: Mapping[str, Contender], *, effort: Effort, most_rounds: int = 100_000
) -> Race:
    """Time each contender, played A B C A B C ..., by the best of `effort.laps` slices."""
    rounds = {
        name: _rounds_for(effort.slice_seconds, contender, most_rounds)
        for name, contender in contenders.items()
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(effort.laps):
        for name, contender in contenders.items():
            best[name] = min(best[name], _seconds(contender(rounds[name])) / rounds[name])
    return Race(row, best)


def _rounds_for(slice_seconds: float, contender: Contender, most: int) -> int:
    contender(1)()  # makes everything ready
    rounds = 1
    while rounds < most:
        spent = min(_seconds(contender(rounds)) for _ in range(2))  # one may have been held up
        if spent > slice_seconds / 3:
            return max(1, min(most, round(rounds * slice_seconds / spent)))
        rounds = min(most, 4 * rounds)
    return most


def _seconds(run: Callable[[], object]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def played(make: Callable[[], Any], users: Any, *, fused: bool = True) -> Contender:
    """A ranker, new for every slice, against `users` from the first one on."""

    def ready(rounds: int) -> Callable[[], object]:
        users.restart()
        ranker, points = make(), max(1, min(100, rounds // 100))
        return lambda: simulation.play(
            ranker, users, rounds=rounds, seed=1, points=points, fused=fused, progress=False
        )

    return ready


def going_on(ranker: Any, users: Any) -> Contender:
    """The same ranker goes on from slice to slice."""

    def ready(rounds: int) -> Callable[[], object]:
        users.restart()
        return lambda: simulation.play(ranker, users, rounds=rounds, seed=2, points=1, progress=False)

    return ready


def table(title: str, races: Sequence[Race], contenders: Sequence[str], over: Sequence[str] = ()) -> Table:
    """Rounds per second of `contenders`, a row for each race, and how often fused is as fast as those in `over`."""
    made = headed(f"{title}: rounds per second", *contenders, *(f"over {other}" for other in over))
    for one in races:
        rates = [f"{1 / one.seconds[name]:,.0f}" if name in one.seconds else "" for name in contenders]
        ratios = [f"{short(one.over(other))}x" if other in one.seconds else "" for other in over]
        made.add_row(one.row, *rates, *ratios)
    return made


def headed(title: str, *columns: str) -> Table:
    """An empty table whose first column names its rows."""
    made = Table(title=title, title_justify="left", title_style="bold")
    made.add_column("", no_wrap=True)
    for column in columns:
        made.add_column(column, justify="right", no_wrap=True)
    return made


def verdict(good: bool, said: str) -> str:
    """One line: whether an aim was met, and what was measured."""
    return f"{'[green]   met[/]' if good else '[red]missed[/]'}  {said}"


def short(number: float) -> str:
    """Two or three digits of a number."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}" if number >= 2 else f"{number:.2f}"
