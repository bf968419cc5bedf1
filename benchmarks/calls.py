"""What `rank` and `learn` cost when called from Python, beside their kernels alone and beside calls keeping nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks.timing import Contender, Effort, race
from rankloop import rankers
from rankloop.base import Ranking
from rankloop.kernels.jit import ready

_AS_CALLED, _KEEPING_NOTHING, _KERNELS = "rank + learn", "keeping nothing", "kernels alone"
_SHAPE = 22, 46


def _made() -> dict[str, tuple[Any, Any, float]]:
    """Each ranker with a request and the microseconds that are aimed at."""
    features = np.random.default_rng(0).random(_SHAPE, np.float32) / _SHAPE[1]
    return {
        "RTop1F(10)": (rankers.RTop1F(n_items=10, horizon=1_000_000), None, 20.0),
        "FTRLPBM(10, 5)": (rankers.FTRLPBM(n_items=10, n_positions=5), None, 20.0),
        "TopRank(10, 5)": (rankers.TopRank(n_items=10, n_positions=5, horizon=1_000_000), None, 20.0),
        "RTopKF, 22 x 46": (rankers.RTopKF(n_features=_SHAPE[1]), features, 30.0),
        "FTRLPBM(1000, 10)": (rankers.FTRLPBM(n_items=1_000, n_positions=10), None, 60.0),
    }


RANKERS = tuple(_made())


@dataclass(frozen=True, slots=True)
class Call:
    """CPU seconds of a round of one ranker, called in three ways."""

    name: str
    seconds: float
    keeping_nothing: float
    kernels: float
    aim: float


def measure(effort: Effort, tell: Callable[[str], None]) -> list[Call]:
    """Race the three ways for each ranker."""
    found = []
    for name, (ranker, request, aim) in _made().items():
        tell(f"calls: {name}")
        racers = {_AS_CALLED: _as_called, _KEEPING_NOTHING: _keeping_nothing, _KERNELS: _kernels}
        ready = {way: make(ranker.clone(), request) for way, make in racers.items()}
        spent = race(name, ready, effort=effort, most_rounds=20_000).seconds
        found.append(Call(name, *(spent[way] for way in racers), aim * 1e-6))
    return found


def _feedback(ranker: Any, request: Any) -> list[Any]:
    n = ranker.n_positions if request is None else len(request)
    rng = np.random.default_rng(1)
    return [(rng.random(ranker.feedback.length(n)) < 0.3).astype(float) for _ in range(64)]


def _as_called(ranker: Any, request: Any) -> Contender:
    told, rng = _feedback(ranker, request), np.random.default_rng(2)

    def contender(rounds: int) -> Callable[[], None]:
        def run() -> None:
            for i in range(rounds):
                ranker.learn(ranker.rank(request, rng=rng), told[i % 64])

        return run

    return contender


def _keeping_nothing(ranker: Any, request: Any) -> Contender:
    # Scratch, and the types of all that a kernel is given, anew at each call, and every check in NumPy.
    told, rng = _feedback(ranker, request), np.random.default_rng(2)

    def contender(rounds: int) -> Callable[[], None]:
        def run() -> None:
            for i in range(rounds):
                n, features = ranker.read_context(request)
                items, propensities, memo = ranker.blank_ticket(n)
                key = np.uint64(rng.bit_generator.random_raw())
                explored = ranker.kernels.rank(
                    ranker.params, ranker.state, features, key, ranker.scratch(n), items, propensities, memo
                )
                shown = Ranking(items, propensities if len(propensities) else None, memo, bool(explored))
                ranker._learn_checked(shown, told[i % 64])

        return run

    return contender


def _kernels(ranker: Any, request: Any) -> Contender:
    told, rng = _feedback(ranker, request), np.random.default_rng(2)
    n, features = ranker.read_context(request)
    ticket, scratch = ranker.blank_ticket(n), ranker.scratch(n)
    before = ranker.params, ranker.state
    revealed = told[0].copy()
    rank = ready(ranker.kernels.rank, (*before, features, np.uint64(0), scratch, *ticket))
    learn = ready(ranker.kernels.learn, (*before, None, scratch, *ticket, revealed))

    def contender(rounds: int) -> Callable[[], None]:
        keys = rng.integers(0, 2**64, rounds, np.uint64).tolist()

        def run() -> None:
            for i in range(rounds):
                rank.put(3, np.uint64(keys[i]))
                rank.run()
                revealed[:] = told[i % 64]
                learn.run()

        return run

    return contender


def tables(found: list[Call]) -> list[RenderableType]:
    """Microseconds of a round, and how many times the kernels' own."""
    title = "Calls from Python: microseconds of one rank and one learn"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("")
    for heading in (_AS_CALLED, "aim", _KERNELS, "times", _KEEPING_NOTHING, "times"):
        table.add_column(heading, justify="right")
    for call in found:
        colour = "green" if call.seconds <= call.aim else "red"
        table.add_row(
            call.name,
            f"[{colour}]{1e6 * call.seconds:.1f}[/]",
            f"{1e6 * call.aim:.0f}",
            f"{1e6 * call.kernels:.1f}",
            f"{call.seconds / call.kernels:.1f}",
            f"{1e6 * call.keeping_nothing:.1f}",
            f"{call.keeping_nothing / call.kernels:.1f}",
        )
    note = (
        "Times: of the kernels alone. Keeping nothing: scratch and types anew at each call, checks in NumPy."
    )
    return [table, note, *map(_verdict, found)]


def _verdict(call: Call) -> str:
    met = "[green]   met[/]" if call.seconds <= call.aim else "[red]missed[/]"
    told = f"{1e6 * call.seconds:.1f} microseconds, {call.seconds / call.kernels:.1f} times its kernels"
    return f"{met}  {call.name}: {told}, aim {1e6 * call.aim:.0f} microseconds"
