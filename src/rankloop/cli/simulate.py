"""One ranker against one environment, both by name."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
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
    wanted = find(name)
    accepted = inspect.signature(wanted).parameters
    for key in settings:
        if key not in accepted:
            raise ValueError(f"{name} has no argument {key!r}; it has {', '.join(accepted)}")
    offered: dict[str, Any] = {
        "n_items": people.n_items,
        "n_positions": people.n_positions if people.n_shown is None else people.n_shown,
        "n_features": people.n_features,
        "horizon": rounds,
        "max_grade": people.max_grade,
        "order": people.best().items if "order" in accepted and "order" not in settings else None,
    }
    if people.reveals == "relevance":  # where users click, `play` gives the better message
        offered["measure"] = people.measure
    if "relevance" in accepted:
        raise ValueError(f"{name} needs the relevance of all users in advance: use it from Python")
    fitting = {key: value for key, value in offered.items() if key in accepted and value is not None}
    given = fitting | settings
    lacking = [key for key, one in accepted.items() if key not in given and _required(one)]
    if lacking:
        raise ValueError(f"{name} needs {' and '.join(lacking)}: say --set {lacking[0]}=VALUE")
    return wanted(**given)


def _required(parameter: inspect.Parameter) -> bool:
    by_name = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return by_name and parameter.default is parameter.empty


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
