"""Real users: who they are, how they are played, and the results.

Each rater of all the chosen items is one user. They arrive once each, in an order shuffled for each run, or they
are drawn with replacement, as if there were many more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop import data
from rankloop.base import Ranker
from rankloop.environments import FixedItems, users
from rankloop.experiments import runs
from rankloop.experiments.experiment import Job, seeded
from rankloop.experiments.top1_2015 import learners
from rankloop.experiments.top1_2015.learners import ANYTIME, FULL, KEEP_REST, RANDOM, UNIFORM, UNPERTURBED
from rankloop.rankers import BestInHindsight
from rankloop.simulation import play

BEST = "BestInHindsight"
ONCE_LEARNERS = (UNIFORM, RANDOM, KEEP_REST, ANYTIME, UNPERTURBED, FULL, BEST)
AGAIN_LEARNERS = (UNIFORM, RANDOM, KEEP_REST, ANYTIME, FULL)


@dataclass(frozen=True, slots=True)
class Crowd:
    """A file of ratings, how many of its items are ranked, and the highest grade its ratings are cut into."""

    file: str
    n_items: int
    max_grade: int
    title: str


_JESTER, _MOVIELENS = "ratings/jester_users_0001_2500.csv.gz", "ratings/ml-latest-small"
CROWDS = {
    "jokes": Crowd(_JESTER, 10, 1, "Ten jokes, funny or not"),
    "jokes graded": Crowd(_JESTER, 10, 4, "Ten jokes, in five grades"),
    "films graded": Crowd(_MOVIELENS, 5, 4, "Five films, in five grades"),
}
ONCE = ("jokes", "jokes graded")  # 88 users rated all five films: too few to play once


def missing() -> str | None:
    """What is not on this machine, in one line, or None."""
    try:
        for crowd in CROWDS.values():
            data.find(crowd.file)
    except data.DataMissing as lack:
        return str(lack)
    return None


@lru_cache(maxsize=8)
def ratings(crowd: str) -> data.Ratings:
    """The most-rated items of a data set, with the users who rated all of them."""
    return data.read_ratings(data.find(CROWDS[crowd].file)).most_rated(CROWDS[crowd].n_items)


def jobs(*, horizons: Sequence[int], once_runs: int, again_runs: int) -> list[Job]:
    """Each user once, by learner and seed; and drawn with replacement, all horizons in one job."""
    once = product(["once"], ONCE, ONCE_LEARNERS, range(1, once_runs + 1))
    again = product(["again"], CROWDS, AGAIN_LEARNERS, range(1, again_runs + 1))
    found = []
    for way, crowd, learner, seed in (*once, *again):
        told: dict[str, Any] = {"crowd": crowd, "learner": learner, "way": way}
        told |= {"horizons": list(horizons)} if way == "again" else {}
        cost = sum(horizons) if way == "again" else 2_500
        found.append(seeded(f"{crowd} {way}, {learner}", seed=seed, cost=cost, **told))
    return found


def run(job: Job) -> pl.DataFrame:
    """DCG regret along the run where each user arrives once, at the end of each horizon where they are drawn."""
    crowd, grades = job.settings["crowd"], CROWDS[job.settings["crowd"]].max_grade
    if job.settings["way"] == "once":
        relevance = ratings(crowd).relevance(grades=grades, shuffle_seed=job.seed)
        return _played(job, FixedItems(relevance, measure="dcg"), rounds=len(relevance), points=250)
    everybody = users.listed(ratings(crowd).relevance(grades=grades))
    met = ((FixedItems(everybody, measure="dcg"), T) for T in job.settings["horizons"])
    return pl.concat([_played(job, people, rounds=T, points=1) for people, T in met])


def _make(crowd: str, learner: str, horizon: int) -> Ranker:
    of = CROWDS[crowd]
    if learner == BEST:
        return BestInHindsight(relevance=ratings(crowd).relevance(grades=of.max_grade), measure="dcg")
    return learners.make_learner(learner, n_items=of.n_items, horizon=horizon, max_grade=of.max_grade)


def _played(job: Job, people: FixedItems, *, rounds: int, points: int) -> pl.DataFrame:
    ranker = _make(job.settings["crowd"], job.settings["learner"], rounds)
    trace = play(ranker, people, rounds=rounds, seed=job.seed, points=points, progress=False)
    told = {name: [job.settings[name]] * len(trace.rounds) for name in ("crowd", "way", "learner")}
    columns = {"round": trace.rounds, "regret": trace.regret, "explored": trace.explored}
    return pl.DataFrame(told | {"horizon": [rounds] * len(trace.rounds)} | columns)


def curve(results: pl.DataFrame, *, crowd: str, way: str, learner: str) -> pl.DataFrame:
    """By round: mean, lowest and highest run. Regret where users arrive once, per round where they are drawn."""
    rows = runs.chosen(results, crowd=crowd, way=way, learner=learner)
    return runs.over_runs(rows, runs.PER_ROUND if way == "again" else "regret")


def per_round(
    results: pl.DataFrame, *, crowd: str, way: str, learner: str, horizon: int
) -> NDArray[np.float64]:
    """Regret per round at the end, one number a run, in the order of the seeds."""
    of = {"crowd": crowd, "way": way, "learner": learner, "horizon": horizon, "round": horizon}
    return runs.chosen(results, **of).sort("seed").select(runs.PER_ROUND).to_series().to_numpy()


def smaller(left: NDArray[np.float64], right: NDArray[np.float64]) -> bool:
    """Whether left lies below right by more than three standard errors of their paired difference."""
    return runs.ahead(right, left, errors=3.0)
