"""One ranker against one environment, both by name."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from rich.console import Console

from rankloop import simulation
from rankloop.cli.environments import environment as named_environment
from rankloop.cli.live_view import watched
from rankloop.compiled import CompiledEnvironment
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.experiments.experiment import Plain
from rankloop.rankers.registry import find
from rankloop.simulation import by_name
from rankloop.simulation.by_name import read_settings as read_settings


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
    """Play and return the result as plain numbers.

    >>> result = simulate_one(
    ...     ranker="FTPL", environment="bernoulli", n_items=3, rounds=100, measure="dcg", seed=1
    ... )
    >>> result["rounds"]
    100
    """
    people = named_environment(environment, n_items=n_items, measure=measure)
    player = make_ranker(ranker, people=people, rounds=rounds, settings=settings or {})
    with watched(player, people, rounds=rounds, console=console) as watch:
        trace = simulation.play(
            player, people, rounds=rounds, seed=seed, watch=watch, progress=None if watch is None else False
        )
    regret_known = bool(np.isfinite(trace.total_regret))
    result: dict[str, Plain] = {
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
    }
    if isinstance(people, ClickWorlds):  # against the best list of each phase, not only the best of all
        missed = float(people.ideal(trace.n_rounds)) - trace.total_value
        result |= {"total_phase_regret": missed, "average_phase_regret": missed / trace.n_rounds}
    result["exploration_share"] = trace.exploration_share
    return result | trace.counters | {"seconds": round(trace.seconds, 3)}


def make_ranker(name: str, *, people: CompiledEnvironment, rounds: int, settings: dict[str, Plain]) -> Any:
    """The ranker called `name`, its arguments taken from `settings` or else from what is played."""
    takes_order = "order" in inspect.signature(find(name)).parameters and "order" not in settings
    also = {"order": people.best().items} if takes_order else {}
    return by_name.make_ranker(name, people=people, rounds=rounds, settings=settings, also=also)


def whole_number(name: str, text: str) -> int:
    """A count such as 20000 or 1e5.

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
