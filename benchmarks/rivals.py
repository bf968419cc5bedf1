"""Rounds per second of the rankers that learn from clicks, and of TopRank and MW in plain NumPy beside them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks import bare_pbm, numpy_rivals
from benchmarks.timing import FULL, Contender, Effort, race
from rankloop import environments, rankers, simulation
from rankloop.rankers import pmed_plan

WORLD, HORIZON, MOST_ROUNDS = "gap-0.03", 1_000_000, 1_000_000
FUSED, STEPWISE, NUMPY = "fused", "step by step", "NumPy"
_SIZE: dict[str, Any] = {"n_items": 10, "n_positions": 5}
_KNOWN = 1 / np.arange(1, 6)
HYBRID = "FTRLPBM, hybrid, mean"

RANKERS: dict[str, Callable[[], Any]] = {
    "TopRank": lambda: rankers.TopRank(horizon=HORIZON, **_SIZE),
    "MW": lambda: rankers.MW(horizon=HORIZON, **_SIZE),
    "RankedExp3": lambda: rankers.RankedExp3(horizon=HORIZON, **_SIZE),
    "PBMPIE, examinations known": lambda: rankers.PBMPIE(horizon=HORIZON, examination=_KNOWN, **_SIZE),
    "PBMPIE, estimated": lambda: rankers.PBMPIE(horizon=HORIZON, **_SIZE),
    "PMED, between two plans": lambda: rankers.PMED(every=10**9, **_SIZE),
    "FTRLPBM": lambda: rankers.FTRLPBM(**_SIZE),
    HYBRID: lambda: rankers.FTRLPBM(regulariser="hybrid", estimator="mean", **_SIZE),
    "PBMTS": lambda: rankers.PBMTS(**_SIZE),
    "GRAB": lambda: rankers.GRAB(**_SIZE),
    "CascadeKLUCB": lambda: rankers.CascadeKLUCB(**_SIZE),
}
BARE_HYBRID = "bare: two passes of the hybrid"  # over x, with what Newton's method needs of it
PLAIN: dict[str, Any] = {"TopRank": numpy_rivals.TopRank, "MW": numpy_rivals.MW}


PLANNED_ROUNDS = 20_000
AIM_OVER_PROGRAMS = 2.0  # 3.4 as of commit 7bc34f6, when SciPy searched for the nearest alternative


@dataclass(frozen=True, slots=True)
class Planned:
    """The beginning of a run of PMED with its defaults: CPU seconds, those of HiGHS among them, and plans."""

    rounds: int
    plans: int
    seconds: float
    program_seconds: float


@dataclass(frozen=True, slots=True)
class RivalRates:
    """Rounds per second of one ranker, each way it can be played; or seconds of one plan of PMED."""

    ranker: str
    rounds_per_second: dict[str, float]
    plan_seconds: float | None = None


def measure(effort: Effort, tell: Callable[[str], None]) -> list[RivalRates | Planned]:
    """Race the ways of each ranker."""
    found: list[RivalRates | Planned] = []
    for name in (*RANKERS, *([BARE_HYBRID] if HYBRID in RANKERS else ())):
        tell(f"rivals: {name}")
        seconds = race(contenders(name), effort=effort, most_rounds=MOST_ROUNDS)
        found.append(RivalRates(name, {way: 1 / spent for way, spent in seconds.items()}))
    tell("rivals: a plan of PMED")
    found.append(RivalRates("a plan of PMED", {}, plan_seconds()))
    tell("rivals: PMED with its defaults")
    found.append(planned(PLANNED_ROUNDS if effort == FULL else PLANNED_ROUNDS // 4))
    return found


def contenders(name: str) -> dict[str, Contender]:
    """Fused, step by step and, where there are, the NumPy version and the bare cost."""
    if name == BARE_HYBRID:
        return {FUSED: _bare_hybrid()}
    ways = {FUSED: _ours(name, fused=True), STEPWISE: _ours(name, fused=False)}
    if name in PLAIN:
        ways[NUMPY] = _plain(PLAIN[name])
    return ways


def _bare_hybrid() -> Contender:
    ranker = RANKERS[HYBRID]()
    simulation.play(ranker, environments.named(WORLD), rounds=5_000, seed=1, points=1, progress=False)
    state, scratch = ranker.state, ranker.scratch(ranker.n_positions)[0]
    parts = [part.copy() for part in (state.L_hat, state.u, state.v, state.x, state.rows)]
    return lambda rounds: lambda: bare_pbm.hybrid_pass(rounds, *parts, scratch)


def _ours(name: str, *, fused: bool) -> Contender:
    people = environments.named(WORLD)

    def ready(rounds: int) -> Callable[[], object]:
        people.restart()
        ranker = RANKERS[name]()
        simulation.play(ranker, people, rounds=10, seed=2, progress=False)  # PMED makes its plan
        return lambda: simulation.play(
            ranker, people, rounds=rounds, seed=1, points=10, fused=fused, progress=False
        )

    return ready


def _plain(kind: Any) -> Contender:
    clicks = environments.named(WORLD).clicks[0]  # type: ignore[union-attr]

    def ready(rounds: int) -> Callable[[], object]:
        ranker = kind(horizon=HORIZON, rng=np.random.default_rng(1), **_SIZE)
        return lambda: ranker.play(clicks, rounds)

    return ready


def plan_seconds() -> float:
    """CPU seconds of a plan made anew after a tenth more rounds, from where the last one ended."""
    people: Any = environments.named(WORLD)
    rng = np.random.default_rng(1)
    starts, spent = np.full((10, 5), np.nan), 0.0
    for N in (1e4, 1.1e4):
        S = rng.binomial(int(N), people.clicks[0]).astype(float)
        model = pmed_plan.read_model(
            people.attraction, people.examination, S, np.full((5, 10), N), np.arange(10)
        )
        begun = time.process_time()
        starts = pmed_plan.make_plan(model, starts, tolerance=rankers.PMED(**_SIZE).tolerance).starts
        spent = time.process_time() - begun
    return spent


def planned(rounds: int) -> Planned:
    """Play PMED from its beginning, where it plans most often."""
    people, in_programs = environments.named(WORLD), [0.0]
    program = pmed_plan.linprog

    def timed(*words: Any, **more: Any) -> Any:
        begun = time.process_time()
        solved = program(*words, **more)
        in_programs[0] += time.process_time() - begun
        return solved

    simulation.play(rankers.PMED(**_SIZE), people, rounds=50, seed=2, progress=False)  # compiles
    people.restart()
    pmed_plan.linprog = timed
    try:
        begun = time.process_time()
        trace = simulation.play(rankers.PMED(**_SIZE), people, rounds=rounds, seed=1, progress=False)
        spent = time.process_time() - begun
    finally:
        pmed_plan.linprog = program
    return Planned(rounds, int(trace.counters["plans"]), spent, in_programs[0])


def tables(found: list[RivalRates | Planned]) -> list[RenderableType]:
    """One table; and a line for PMED's plan."""
    table = Table(
        title="From clicks, 10 items on 5 positions: rounds per second",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("")
    for way in (FUSED, STEPWISE, NUMPY, "fused over NumPy"):
        table.add_column(way, justify="right")
    lines: list[RenderableType] = []
    for rates in found:
        if isinstance(rates, Planned):
            lines += _of_plans(rates)
            continue
        if rates.plan_seconds is not None:
            lines.append(f"{rates.ranker}, warm: {1000 * rates.plan_seconds:.0f} ms")
            continue
        rate = rates.rounds_per_second
        cells = [f"{rate[way]:,.0f}" if way in rate else "" for way in (FUSED, STEPWISE, NUMPY)]
        table.add_row(rates.ranker, *cells, f"{rate[FUSED] / rate[NUMPY]:.0f}x" if NUMPY in rate else "")
    return [table, *lines]


def _of_plans(run: Planned) -> list[str]:
    over = run.seconds / run.program_seconds
    met = "[green]   met[/]" if over <= AIM_OVER_PROGRAMS else "[red]missed[/]"
    each = f"{run.plans} plans, {1000 * run.seconds / run.plans:.0f} ms each"
    rate = f"{run.rounds / run.seconds:,.0f} rounds per second"
    told = f"{over:.1f} times its linear programmes, aim at most {AIM_OVER_PROGRAMS:g}"
    return [
        f"PMED with its defaults, first {run.rounds:,} rounds: {each}, {rate}",
        f"{met}  PMED at its default tolerance: {told}",
    ]
