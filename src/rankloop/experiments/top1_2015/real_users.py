"""Real people as users: who they are, how they are played, and what came of it.

Everybody who rated all the chosen items is one user. They come once each, in an order shuffled for each run, or they
are drawn again and again, which is as if many more of the same kind came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop import data
from rankloop.base import Ranker
from rankloop.environments import FixedItems, users
from rankloop.experiments.experiment import Job, Plain
from rankloop.experiments.top1_2015.learners import ANYTIME, UNPERTURBED, make_learner
from rankloop.experiments.top1_2015.setting import FULL, KEEP_REST, RANDOM, UNIFORM
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
ONCE = ("jokes", "jokes graded")  # 88 people saw all five films: too few to come once


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
    """The most-rated items of a crowd, with the people who rated all of them."""
    chosen = CROWDS[crowd]
    return data.read_ratings(data.find(chosen.file)).most_rated(chosen.n_items)


def jobs(*, horizons: Sequence[int], once_runs: int, again_runs: int) -> list[Job]:
    """Everybody once, by learner and seed; and drawn again and again, all horizons in one job."""
    once = [_job("once", *chosen) for chosen in product(ONCE, ONCE_LEARNERS, range(1, once_runs + 1))]
    again = product(CROWDS, AGAIN_LEARNERS, range(1, again_runs + 1))
    return once + [_job("again", *chosen, horizons=horizons) for chosen in again]


def _job(way: str, crowd: str, learner: str, seed: int, *, horizons: Sequence[int] = ()) -> Job:
    told: dict[str, Plain] = {"crowd": crowd, "learner": learner, "way": way}
    if horizons:
        told["horizons"] = list(horizons)
    return Job(
        name=f"{crowd} {way}, {learner}, seed {seed}",
        seed=seed,
        settings=told,
        cost=float(sum(horizons) or 2_500),
    )


def run(job: Job) -> pl.DataFrame:
    """DCG regret along the way where everybody comes once, at the end of each horizon where they come again."""
    crowd, learner = cast(str, job.settings["crowd"]), cast(str, job.settings["learner"])
    grades = CROWDS[crowd].max_grade
    frames = []
    if job.settings["way"] == "once":
        relevance = ratings(crowd).relevance(grades=grades, shuffle_seed=job.seed)
        people = FixedItems(relevance, measure="dcg")
        ranker = _make(crowd, learner, len(relevance))
        frames.append(_played(job, ranker, people, rounds=len(relevance), points=250))
    else:
        everybody = users.listed(ratings(crowd).relevance(grades=grades))
        for horizon in cast(list[int], job.settings["horizons"]):
            people = FixedItems(everybody, measure="dcg")
            frames.append(_played(job, _make(crowd, learner, horizon), people, rounds=horizon, points=1))
    return pl.concat(frames)


def _make(crowd: str, learner: str, horizon: int) -> Ranker:
    chosen = CROWDS[crowd]
    if learner == BEST:
        return BestInHindsight(relevance=ratings(crowd).relevance(grades=chosen.max_grade), measure="dcg")
    return make_learner(learner, n_items=chosen.n_items, horizon=horizon, max_grade=chosen.max_grade)


def _played(job: Job, ranker: Ranker, people: FixedItems, *, rounds: int, points: int) -> pl.DataFrame:
    trace = play(ranker, people, rounds=rounds, seed=job.seed, points=points, progress=False)
    return pl.DataFrame(
        {
            "crowd": [job.settings["crowd"]] * len(trace.rounds),
            "way": [job.settings["way"]] * len(trace.rounds),
            "learner": [job.settings["learner"]] * len(trace.rounds),
            "horizon": [rounds] * len(trace.rounds),
            "round": trace.rounds,
            "regret": trace.regret,
            "explored": trace.explored,
        }
    )


def curve(results: pl.DataFrame, *, crowd: str, way: str, learner: str, scale: float = 1.0) -> pl.DataFrame:
    """By round: mean, lowest and highest run. Regret where people come once, per round where they come again."""
    lost = pl.col("regret") / (pl.col("round") if way == "again" else 1) / scale
    return (
        results.filter((pl.col("crowd") == crowd) & (pl.col("way") == way) & (pl.col("learner") == learner))
        .group_by("round")
        .agg(lost.mean().alias("mean"), lost.min().alias("low"), lost.max().alias("high"))
        .sort("round")
    )


def per_round(
    results: pl.DataFrame, *, crowd: str, way: str, learner: str, horizon: int
) -> NDArray[np.float64]:
    """Regret per round at the end, one number a run, in the order of the seeds."""
    rows = results.filter(
        (pl.col("crowd") == crowd)
        & (pl.col("way") == way)
        & (pl.col("learner") == learner)
        & (pl.col("horizon") == horizon)
        & (pl.col("round") == horizon)
    )
    return rows.sort("seed").select(pl.col("regret") / pl.col("round")).to_series().to_numpy()


def smaller(left: NDArray[np.float64], right: NDArray[np.float64]) -> bool:
    """Whether left lies below right by more than three standard errors of their paired difference."""
    gain = right - left
    return bool(gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain)))


def table(results: pl.DataFrame) -> pl.DataFrame:
    """Regret per round at the end for each crowd, way, learner and horizon."""
    lost = pl.col("regret") / pl.col("round")
    return (
        results.filter(pl.col("round") == pl.col("horizon"))
        .group_by("crowd", "way", "horizon", "learner", maintain_order=True)
        .agg(
            lost.mean().round(4).alias("regret per round"),
            (lost.std() / pl.len().sqrt()).round(4).alias("standard error"),
            (pl.col("explored") / pl.col("round")).mean().round(3).alias("exploration share"),
        )
        .rename({"horizon": "T"})
    )
