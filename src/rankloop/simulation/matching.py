"""Whether a ranker and an environment fit together, checked before the first round."""

from __future__ import annotations

from typing import Any

from rankloop.base import Environment, Ranker


def check_match(ranker: Ranker, environment: Environment, rounds: int) -> None:
    """ValueError unless this ranker can play so many rounds in this environment."""
    _check_kinds(ranker, environment)
    wants, gives = ranker.feedback.kind, environment.reveals
    if wants not in (gives, "nothing"):
        raise ValueError(
            f"ranker {type(ranker).__name__} learns from {wants}, "
            f"environment {type(environment).__name__} reveals {gives}"
        )
    if ranker.n_positions is None or environment.n_features is not None:
        _check_features(ranker, environment)
    elif ranker.n_positions != environment.n_positions:
        raise ValueError(
            f"ranker shows {ranker.n_positions} positions, environment has {environment.n_positions}"
        )
    elif ranker.n_items not in (environment.n_items, None):
        raise ValueError(f"ranker has {ranker.n_items} items, environment has {environment.n_items}")
    if environment.remaining is not None and rounds > environment.remaining:
        raise ValueError(
            f"rounds must be at most {environment.remaining}, one for each user still to come, got {rounds}; "
            "environment.restart() begins again"
        )
    most = ranker.max_grade
    if wants == "relevance" and most is not None and environment.max_grade > most:
        raise ValueError(
            f"ranker was built for relevance up to max_grade={most}, environment gives up to {environment.max_grade}"
        )


def _check_kinds(ranker: Any, environment: Any) -> None:
    if isinstance(ranker, Ranker) and isinstance(environment, Environment):
        return
    swapped = isinstance(ranker, Environment) and isinstance(environment, Ranker)
    hint = "; the ranker comes first" if swapped else ""
    got = " and ".join(type(one).__name__ for one in (ranker, environment))
    raise ValueError(f"play needs a ranker and an environment{hint}, got {got}")


def _check_features(ranker: Ranker, environment: Environment) -> None:
    if environment.n_features is None:
        raise ValueError(
            f"{type(ranker).__name__} ranks items by features, {type(environment).__name__} has none"
        )
    if ranker.n_positions is not None:
        raise ValueError(
            f"{type(ranker).__name__} ranks the same {ranker.n_positions} items each round, "
            f"{type(environment).__name__} brings another list each time"
        )
    seen = environment.n_positions if environment.n_shown is None else environment.n_shown
    wanted = ranker.feedback.length(environment.n_positions)
    if wanted > seen:
        raise ValueError(
            f"ranker learns from {wanted} positions of a list, users of the environment see {seen}"
        )
    if environment.sparse and not ranker.takes_sparse:
        raise ValueError(
            f"{type(ranker).__name__} takes dense features, those of {type(environment).__name__} are sparse"
        )
    if ranker.n_features not in (environment.n_features, None):
        raise ValueError(
            f"ranker takes {ranker.n_features} features, environment has {environment.n_features}"
        )
