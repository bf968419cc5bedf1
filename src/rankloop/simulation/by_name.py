"""A ranker by its name, with arguments from text or from the environment that it is to play in."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from rankloop.base import Environment, Ranker
from rankloop.rankers.registry import find

Setting = Any  # a number, a word, None, or a list of these


def make_ranker(
    name: str,
    *,
    environment: Environment,
    rounds: int,
    settings: Mapping[str, Setting],
    also: Mapping[str, Any] | None = None,
    option: str = "--set ",
) -> Ranker:
    """The ranker called `name`, its arguments taken from `settings` or else from what is played.

    `also` has arguments that the environment does not know of, such as the features of its items; of these and of the
    environment's, a ranker gets what its constructor takes. `option` is how a missing one is given.
    """
    wanted = find(name)
    accepted = inspect.signature(wanted).parameters
    check_settings(name, settings)
    offered: dict[str, Any] = {
        "n_items": environment.n_items,
        "n_positions": environment.n_positions if environment.n_shown is None else environment.n_shown,
        "n_features": environment.n_features,
        "horizon": rounds,
        "max_grade": environment.max_grade,
        **(also or {}),
    }
    if environment.reveals == "relevance":  # where users click, `play` gives the better message
        offered["measure"] = environment.measure
    if "relevance" in accepted:
        raise ValueError(f"{name} needs the relevance of all users in advance: use it from Python")
    fitting = {key: value for key, value in offered.items() if key in accepted and value is not None}
    arguments = fitting | dict(settings)
    lacking = [key for key, one in accepted.items() if key not in arguments and _required(one)]
    if lacking:
        raise ValueError(f"{name} needs {' and '.join(lacking)}: say {option}{lacking[0]}=VALUE")
    return wanted(**arguments)


def check_settings(name: str, settings: Mapping[str, Setting]) -> None:
    """ValueError unless the ranker called `name` has every one of these arguments."""
    accepted = inspect.signature(find(name)).parameters
    for key in settings:
        if key not in accepted:
            raise ValueError(f"{name} has no argument {key!r}; it has {', '.join(accepted)}")


def read_settings(texts: Sequence[str], *, option: str = "--set") -> dict[str, Setting]:
    """Arguments written as KEY=VALUE; values are numbers, none, comma-separated whole numbers, or else text.

    >>> read_settings(["k=2", "epsilon=1e-3", "horizon=none", "explore=random", "order=2,0,1"])
    {'k': 2, 'epsilon': 0.001, 'horizon': None, 'explore': 'random', 'order': [2, 0, 1]}
    """
    settings: dict[str, Setting] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"{option} takes KEY=VALUE, got {text!r}")
        settings[key] = _value(value)
    return settings


def _required(parameter: inspect.Parameter) -> bool:
    by_name = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return by_name and parameter.default is parameter.empty


def _value(text: str) -> Setting:
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
