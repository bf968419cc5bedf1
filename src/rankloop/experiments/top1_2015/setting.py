"""The simulation of Chaudhuri and Tewari (2015), section 10, shared by the experiments that replay its figures.

Ten items, half of them relevant. A user's relevance is the truth plus a small Gaussian, cut at 1/2 to 0 or 1 (the
paper leaves the cut and the size of the noise open: erratum A23). All learners and all runs meet the same users.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop.base import Ranker
from rankloop.environments import FixedItems
from rankloop.experiments.experiment import Job
from rankloop.experiments.plotting.thinning import thin
from rankloop.rankers import FTPL, RTop1F, Uniform
from rankloop.simulation import play

PAPER = "S. Chaudhuri and A. Tewari, Online ranking with top-1 feedback, AISTATS 2015"
N_ITEMS = 10
USERS_SEED = 2015
SEEDS = range(1, 11)
NOISE = 0.25

RANDOM, KEEP_REST, FULL, UNIFORM = "RTop1F random", "RTop1F keep-rest", "FTPL", "Uniform"


def job(*, learner: str, horizon: int, noise: float, seed: int) -> Job:
    """One run of one learner over the users of the given noise."""
    return Job(
        name=f"{learner}, T={horizon}, noise={noise:g}, seed {seed}",
        seed=seed,
        settings={
            "learner": learner,
            "horizon": horizon,
            "noise": noise,
            "n_items": N_ITEMS,
            "users_seed": USERS_SEED,
        },
        cost=float(horizon),
    )


def run(job: Job) -> pl.DataFrame:
    """Play a job: cumulative DCG regret and exploring rounds at about 400 rounds, close together at the start."""
    horizon, noise = cast(int, job.settings["horizon"]), cast(float, job.settings["noise"])
    people = FixedItems(users(horizon, noise), measure="dcg")
    ranker = make_learner(cast(str, job.settings["learner"]), horizon)
    trace = play(ranker, people, rounds=horizon, seed=job.seed, progress=False)
    even = thin(len(trace.rounds), points=200, logarithmic=False)
    kept = sorted({*thin(len(trace.rounds), points=200), *even, *_decades(trace.rounds)})
    return pl.DataFrame(
        {
            "learner": [job.settings["learner"]] * len(kept),
            "horizon": [horizon] * len(kept),
            "noise": [noise] * len(kept),
            "round": trace.rounds[kept],
            "regret": trace.regret[kept],
            "explored": trace.explored[kept],
        }
    )


@lru_cache(maxsize=8)
def users(rounds: int, noise: float) -> NDArray[np.int8]:
    """The relevance of every user for every item; fewer rounds meet the first of the same users."""
    truth = np.repeat([1.0, 0.0], N_ITEMS // 2)
    spread = np.random.default_rng(USERS_SEED).normal(scale=noise, size=(rounds, N_ITEMS))
    matrix = (truth + spread > 0.5).astype(np.int8)
    matrix.flags.writeable = False  # shared by threads
    return matrix


def make_learner(name: str, horizon: int) -> Ranker:
    """A fresh ranker by the name that jobs use."""
    if name == RANDOM:
        return RTop1F(n_items=N_ITEMS, horizon=horizon, measure="dcg", explore="random")
    if name == KEEP_REST:
        return RTop1F(n_items=N_ITEMS, horizon=horizon, measure="dcg", explore="keep-rest")
    if name == FULL:
        return FTPL(n_items=N_ITEMS, horizon=horizon, measure="dcg")
    if name == UNIFORM:
        return Uniform(n_items=N_ITEMS)
    raise ValueError(f"name must be one of {RANDOM}, {KEEP_REST}, {FULL}, {UNIFORM}, got {name!r}")


def average_regret(
    results: pl.DataFrame, *, learner: str, horizon: int, noise: float = NOISE
) -> pl.DataFrame:
    """Regret up to t, divided by t: mean, lowest and highest over the runs, by round."""
    chosen = (pl.col("learner") == learner) & (pl.col("horizon") == horizon) & (pl.col("noise") == noise)
    average = pl.col("regret") / pl.col("round")
    return (
        results.filter(chosen)
        .group_by("round")
        .agg(average.mean().alias("mean"), average.min().alias("low"), average.max().alias("high"))
        .sort("round")
    )


def final(results: pl.DataFrame, *, learner: str, horizon: int, noise: float = NOISE) -> float:
    """Average regret after the last round, mean over the runs."""
    return at_round(results, learner=learner, horizon=horizon, noise=noise, rounds=[horizon])[0]


def at_round(
    results: pl.DataFrame, *, learner: str, horizon: int, rounds: Sequence[int], noise: float = NOISE
) -> list[float]:
    """Average regret up to each of `rounds`, mean over the runs."""
    curve = average_regret(results, learner=learner, horizon=horizon, noise=noise)
    found = dict(zip(curve["round"].to_list(), curve["mean"].to_list(), strict=True))
    return [float(found[t]) for t in rounds]


def final_table(results: pl.DataFrame) -> pl.DataFrame:
    """Average regret at T for each learner, noise and horizon: mean and standard error over the runs."""
    average = pl.col("regret") / pl.col("round")
    return (
        results.filter(pl.col("round") == pl.col("horizon"))
        .group_by("learner", "noise", "horizon", maintain_order=True)
        .agg(
            average.mean().round(4).alias("average regret"),
            (average.std() / pl.len().sqrt()).round(4).alias("standard error"),
            (pl.col("explored") / pl.col("round")).mean().round(3).alias("exploration share"),
        )
        .rename({"horizon": "T"})
    )


def _decades(rounds: NDArray[np.int64]) -> list[int]:
    wanted = [t for t in (10, 100, 1_000, 10_000, 100_000, 1_000_000) if t <= rounds[-1]]
    return [int(i) for i in np.searchsorted(rounds, wanted) if rounds[i] in wanted]
