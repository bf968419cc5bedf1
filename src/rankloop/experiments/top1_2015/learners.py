"""Who plays in the experiments on the 2015 paper, by the names that jobs and tables use."""

from __future__ import annotations

from rankloop.base import Ranker
from rankloop.experiments.top1_2015.setting import FULL, KEEP_REST, RANDOM, UNIFORM
from rankloop.rankers import FTPL, RTop1F, Uniform

ANYTIME, UNPERTURBED = "RTop1F without horizon", "RTop1F unperturbed"


def make_learner(
    name: str, *, n_items: int, horizon: int, measure: str = "dcg", max_grade: int = 1
) -> RTop1F | FTPL | Uniform:
    """A fresh ranker by its name.

    >>> make_learner("FTPL", n_items=3, horizon=100).horizon
    100
    """
    if name == RANDOM:
        return RTop1F(
            n_items=n_items, horizon=horizon, measure=measure, explore="random", max_grade=max_grade
        )
    if name == KEEP_REST:
        return RTop1F(n_items=n_items, horizon=horizon, measure=measure, max_grade=max_grade)
    if name == ANYTIME:
        return RTop1F(n_items=n_items, measure=measure, max_grade=max_grade)
    if name == UNPERTURBED:
        # A reach of a millionth only breaks ties: plain follow-the-leader over the block estimates.
        return RTop1F(n_items=n_items, horizon=horizon, measure=measure, max_grade=max_grade, epsilon=1e6)
    if name == FULL:
        return FTPL(n_items=n_items, horizon=horizon, measure=measure, max_grade=max_grade)
    if name == UNIFORM:
        return Uniform(n_items=n_items)
    known = (RANDOM, KEEP_REST, ANYTIME, UNPERTURBED, FULL, UNIFORM)
    raise ValueError(f"name must be one of {', '.join(known)}, got {name!r}")


def bound_of(ranker: Ranker) -> float | None:
    """What theory allows the ranker to lose in expectation, where it says anything."""
    return ranker.regret_bound() if isinstance(ranker, RTop1F | FTPL) and ranker.horizon else None
