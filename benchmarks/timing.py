"""Fair timing on a machine that others use too: CPU seconds, short slices, contenders in turn, the best of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Given a number of rounds, gets everything ready and returns what is to be timed.
Contender = Callable[[int], Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to look: seconds a slice, and how many slices of each contender."""

    slice_seconds: float
    laps: int


FULL = Effort(slice_seconds=0.05, laps=7)
QUICK = Effort(slice_seconds=0.02, laps=3)


def race(contenders: Mapping[str, Contender], *, effort: Effort, most_rounds: int) -> dict[str, float]:
    """CPU seconds a round of each contender, the best of `effort.laps` slices, played A B C A B C ..."""
    rounds = {
        name: _rounds_for(effort.slice_seconds, contender, most_rounds)
        for name, contender in contenders.items()
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(effort.laps):
        for name, contender in contenders.items():
            best[name] = min(best[name], _seconds(contender(rounds[name])) / rounds[name])
    return best


def _rounds_for(slice_seconds: float, contender: Contender, most: int) -> int:
    contender(1)()  # compiles
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
