"""The simulation of Chaudhuri and Tewari (2015), section 10, shared by the experiments that replay its figures.

Ten items, half of them relevant. A user's relevance is the truth plus a small Gaussian, cut at 1/2 to 0 or 1 (the
paper leaves the cut and the size of the noise open: erratum A23). All learners and all runs have the same users.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop.base import Ranker
from rankloop.environments import FixedItems
from rankloop.experiments import runs
from rankloop.experiments.experiment import Experiment, Job, seeded
from rankloop.rankers import FTPL, RTop1F, Uniform
from rankloop.simulation import play
from rankloop.spacing import thin

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


PAPER = "S. Chaudhuri and A. Tewari, Online ranking with top-1 feedback, AISTATS 2015"
N_ITEMS = 10
USERS_SEED = 2015
SEEDS = range(1, 11)
NOISE = 0.25


class Simulation(Experiment):
    """What the two figures share: how a job is played, and the table of average regret at T."""

    def run(self, job: Job) -> pl.DataFrame:
        """Cumulative DCG regret and exploring rounds at about 400 rounds, close together at the start."""
        horizon, noise = job.settings["horizon"], job.settings["noise"]
        environment = FixedItems(users(horizon, noise), measure="dcg")
        ranker = make_learner(job.settings["learner"], n_items=N_ITEMS, horizon=horizon)
        trace = play(ranker, environment, rounds=horizon, seed=job.seed, progress=False)
        even = thin(len(trace.rounds), points=200, logarithmic=False)
        kept = sorted({*thin(len(trace.rounds), points=200), *even, *_decades(trace.rounds)})
        settings = {name: [job.settings[name]] * len(kept) for name in ("learner", "horizon", "noise")}
        columns = {"round": trace.rounds, "regret": trace.regret, "explored": trace.explored}
        return pl.DataFrame(settings | {name: values[kept] for name, values in columns.items()})

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        return final_table(results, "learner", "noise", "horizon", named="average regret")


def job(*, learner: str, horizon: int, noise: float, seed: int) -> Job:
    """One run of one learner over the users of the given noise."""
    played: dict[str, Any] = {"learner": learner, "horizon": horizon, "noise": noise}
    played |= {"n_items": N_ITEMS, "users_seed": USERS_SEED}
    return seeded(f"{learner}, T={horizon}, noise={noise:g}", seed=seed, cost=horizon, **played)


@lru_cache(maxsize=8)
def users(rounds: int, noise: float) -> NDArray[np.int8]:
    """The relevance of every user for every item; fewer rounds meet the first of the same users."""
    truth = np.repeat([1.0, 0.0], N_ITEMS // 2)
    spread = np.random.default_rng(USERS_SEED).normal(scale=noise, size=(rounds, N_ITEMS))
    matrix = (truth + spread > 0.5).astype(np.int8)
    matrix.flags.writeable = False  # shared by threads
    return matrix


def average_regret(
    results: pl.DataFrame, *, learner: str, horizon: int, noise: float = NOISE
) -> pl.DataFrame:
    """Regret up to t, divided by t: mean, lowest and highest over the runs, by round."""
    rows = runs.chosen(results, learner=learner, horizon=horizon, noise=noise)
    return runs.over_runs(rows, runs.PER_ROUND)


def final(results: pl.DataFrame, *, learner: str, horizon: int, noise: float = NOISE) -> float:
    """Average regret after the last round, mean over the runs."""
    return at_round(results, learner=learner, horizon=horizon, noise=noise, rounds=[horizon])[0]


def at_round(
    results: pl.DataFrame, *, learner: str, horizon: int, rounds: Sequence[int], noise: float = NOISE
) -> list[float]:
    """Average regret up to each of `rounds`, mean over the runs."""
    curve = average_regret(results, learner=learner, horizon=horizon, noise=noise)
    means = dict(curve.select("round", "mean").iter_rows())
    return [float(means[t]) for t in rounds]


def final_table(results: pl.DataFrame, *by: str, named: str) -> pl.DataFrame:
    """Average regret at T: mean and standard error over the runs, and the share of the rounds that explored."""
    return (
        results.filter(pl.col("round") == pl.col("horizon"))
        .group_by(*by, maintain_order=True)
        .agg(
            runs.PER_ROUND.mean().round(4).alias(named),
            (runs.PER_ROUND.std() / pl.len().sqrt()).round(4).alias("standard error"),
            (pl.col("explored") / pl.col("round")).mean().round(3).alias("exploration share"),
        )
        .rename({"horizon": "T"})
    )


def _decades(rounds: NDArray[np.int64]) -> list[int]:
    wanted = [t for t in (10, 100, 1_000, 10_000, 100_000, 1_000_000) if t <= rounds[-1]]
    return [int(i) for i in np.searchsorted(rounds, wanted) if rounds[i] in wanted]
