"""One ranker against one environment, both by name, watched while it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.text import Text

from rankloop import rankers, simulation
from rankloop.compiled import CompiledEnvironment
from rankloop.experiments.drawing import thin
from rankloop.experiments.experiment import Plain
from rankloop.experiments.named import environment as named_environment
from rankloop.experiments.terminal import Line, line_chart, live_view
from rankloop.simulation import Trace


def simulate_one(
    *,
    ranker: str,
    environment: str,
    n_items: int | None = None,
    rounds: int,
    measure: str | None = None,
    seed: int,
    settings: dict[str, Plain] | None = None,
    console: Console | None = None,
) -> dict[str, Plain]:
    """Play and return what came of it, as plain numbers.

    >>> result = simulate_one(
    ...     ranker="FTPL", environment="bernoulli", n_items=3, rounds=100, measure="dcg", seed=1
    ... )
    >>> result["rounds"]
    100
    """
    people = named_environment(environment, n_items=n_items, measure=measure)
    player = make_ranker(ranker, people=people, rounds=rounds, settings=settings or {})
    with _live_view(console, rounds) as watch:
        trace = simulation.play(
            player, people, rounds=rounds, seed=seed, watch=watch, progress=None if watch is None else False
        )
    regret_known = bool(np.isfinite(trace.total_regret))
    return {
        "ranker": ranker,
        "environment": environment,
        "measure": trace.measure,
        "items": people.n_items,
        "positions": people.n_positions,
        "rounds": trace.n_rounds,
        "seed": seed,
        "mean_value": trace.mean_value,
        "total_regret": trace.total_regret if regret_known else None,
        "average_regret": trace.total_regret / trace.n_rounds if regret_known else None,
        "exploration_share": trace.exploration_share,
        "seconds": round(trace.seconds, 3),
    }


def make_ranker(name: str, *, people: CompiledEnvironment, rounds: int, settings: dict[str, Plain]) -> Any:
    """The ranker called `name`, its arguments taken from `settings` or else from what is played."""
    if name not in rankers.__all__:
        raise ValueError(f"ranker must be one of {', '.join(rankers.__all__)}, got {name!r}")
    wanted = getattr(rankers, name)
    accepted = inspect.signature(wanted).parameters
    for key in settings:
        if key not in accepted:
            raise ValueError(f"{name} has no argument {key!r}; it has {', '.join(accepted)}")
    offered: dict[str, Any] = {
        "n_items": people.n_items,
        "n_positions": people.n_positions,
        "horizon": rounds,
        "measure": people.measure,
        "max_grade": people.max_grade,
        "order": people.best().items if "order" in accepted and "order" not in settings else None,
    }
    if "relevance" in accepted:
        raise ValueError(f"{name} needs the relevance of all users beforehand: use it from Python")
    return wanted(**({key: offered[key] for key in offered if key in accepted} | settings))


def read_settings(texts: Sequence[str]) -> dict[str, Plain]:
    """Arguments written as KEY=VALUE; values are numbers, none, comma-separated whole numbers, or else text.

    >>> read_settings(["k=2", "epsilon=1e-3", "horizon=none", "explore=random", "order=2,0,1"])
    {'k': 2, 'epsilon': 0.001, 'horizon': None, 'explore': 'random', 'order': [2, 0, 1]}
    """
    found: dict[str, Plain] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"--set takes KEY=VALUE, got {text!r}")
        found[key] = _value(value)
    return found


def whole_number(name: str, text: str) -> int:
    """A count as people write it.

    >>> whole_number("rounds", "1e5"), whole_number("rounds", "20_000")
    (100000, 20000)
    """
    try:
        number = float(text.replace(",", ""))
        if number == int(number) and number >= 1:
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must be a whole number of at least 1, such as 20000 or 1e5, got {text!r}")


def _value(text: str) -> Plain:
    if text.lower() == "none":
        return None
    if "," in text:
        return [_value(part) for part in text.split(",")]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


@contextmanager
def _live_view(console: Console | None, rounds: int) -> Iterator[Callable[[Trace], None] | None]:
    if console is None or not console.is_terminal:
        yield None
        return
    begin = Text("Starting (new code compiles once)", style="dim")
    with live_view(begin, console=console) as live:
        yield lambda trace: live.update(_view(trace, rounds, console.width), refresh=True)


def _view(trace: Trace, rounds: int, width: int) -> RenderableType:
    kept = list(thin(len(trace.rounds), points=200))
    average = trace.regret[kept] / trace.rounds[kept]
    rate = trace.n_rounds / max(trace.seconds, 1e-9)
    left = (rounds - trace.n_rounds) / rate
    head = Text.assemble(
        (f"{trace.n_rounds:,}", "bold"),
        f" of {rounds:,} rounds, {rate:,.0f} a second, {left:.0f} s left   value ",
        (f"{trace.mean_value:.4f}", "bold"),
        "   exploring ",
        (f"{trace.exploration_share:.1%}", "bold"),
    )
    finite = average[np.isfinite(average)]
    if len(finite) == 0 or rounds < 2:
        return head
    top = max(float(np.quantile(finite, 0.95)) * 1.15, 1e-6)
    line = Line(
        f"{average[-1]:.4f}",
        "bright_blue",
        [float(t) for t in trace.rounds[kept]],
        [float(y) for y in average],
    )
    chart = line_chart(
        [line], x_range=(1, rounds), y_range=(0.0, top), width=max(20, min(90, width - 20)), height=12
    )
    return Group(head, Text(f"average {trace.measure} regret", style="dim"), chart)
