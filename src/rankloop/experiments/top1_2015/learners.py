"""The learners of the experiments on the 2015 paper, by the names that jobs and tables use."""

from __future__ import annotations

from typing import Any

from rankloop.base import Ranker
from rankloop.rankers import FTPL, RTop1F, Uniform

RANDOM, KEEP_REST, FULL, UNIFORM = "RTop1F random", "RTop1F keep-rest", "FTPL", "Uniform"
ANYTIME, UNPERTURBED = "RTop1F without horizon", "RTop1F unperturbed"


def make_learner(
    name: str, *, n_items: int, horizon: int, measure: str = "dcg", max_grade: int = 1
) -> RTop1F | FTPL | Uniform:
    """A fresh ranker by its name.

    >>> make_learner("FTPL", n_items=3, horizon=100).horizon
    100
    """
    if name == UNIFORM:
        return Uniform(n_items=n_items)
    aim: dict[str, Any] = {"n_items": n_items, "measure": measure, "max_grade": max_grade}
    if name == FULL:
        return FTPL(horizon=horizon, **aim)
    kinds: dict[str, dict[str, Any]] = {
        RANDOM: {"horizon": horizon, "explore": "random"},
        KEEP_REST: {"horizon": horizon},
        ANYTIME: {},
        # A reach of a millionth only breaks ties: plain follow-the-leader over the block estimates.
        UNPERTURBED: {"horizon": horizon, "epsilon": 1e6},
    }
    if name not in kinds:
        raise ValueError(f"name must be one of {', '.join((*kinds, FULL, UNIFORM))}, got {name!r}")
    return RTop1F(**aim, **kinds[name])


def bound_of(ranker: Ranker) -> float | None:
    """The bound on the ranker's expected regret, where there is one."""
    return ranker.regret_bound() if isinstance(ranker, RTop1F | FTPL) and ranker.horizon else None
