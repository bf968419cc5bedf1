"""How regret at T grows with T: played for each measure, learner and horizon, and the fitted exponents.

Every horizon is a run of its own, because a learner is tuned to its horizon. Measures that can be learnt from the
top item are played with the users of section 10, the others in their hard worlds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from rankloop import environments
from rankloop.environments import FixedItems, users
from rankloop.experiments import runs
from rankloop.experiments.experiment import Job, seeded
from rankloop.experiments.top1_2015 import hopeless
from rankloop.experiments.top1_2015.hopeless import HOPELESS
from rankloop.experiments.top1_2015.learners import FULL, KEEP_REST, RANDOM, UNIFORM, bound_of, make_learner
from rankloop.experiments.top1_2015.setting import N_ITEMS, NOISE
from rankloop.plotting.figures import power_law
from rankloop.simulation import play

LEARNABLE = {"sum_loss": "SumLoss", "dcg": "DCG", "precision@3": "Precision@3"}
THEOREM = {"sum_loss": "Theorem 7", "dcg": "Theorem 9", "precision@3": "Theorem 10"}
LEARNERS = (RANDOM, KEEP_REST, FULL)
LONGEST = 1_000_000
"""The bounds of the theorems are above what a random order loses at 10,000 rounds, two of the three at 100,000."""
SETTLED = 10_000
"""Below this horizon the luck of the best ranking in hindsight, of size sqrt(T), hides a slope as small as 0.02."""


def jobs(
    *, horizons: Sequence[int], learnable_runs: int, hopeless_runs: int, longest_runs: int | None = None
) -> list[Job]:
    """One job for each measure, learner and seed, which plays all horizons.

    The measures that can be learnt are also played at `LONGEST`, by so many seeds, where the bounds mean something: a
    random order passes there.
    """
    learnt = [(measure, learner, learnable_runs) for measure in LEARNABLE for learner in (*LEARNERS, UNIFORM)]
    for measure in HOPELESS:
        own = (hopeless.OWN_TERMS,) if measure in hopeless.SEPARABLE else ()
        learnt += [(measure, learner, hopeless_runs) for learner in (*hopeless.LEARNERS, *own)]
    most = learnable_runs if longest_runs is None else longest_runs
    found = []
    for measure, learner, count in learnt:
        for seed in range(1, count + 1):
            longer = measure in LEARNABLE and seed <= most
            found.append(_job(measure, learner, sorted({*horizons, *([LONGEST] if longer else [])}), seed))
    return found


def _job(measure: str, learner: str, horizons: Sequence[int], seed: int) -> Job:
    hard = measure in HOPELESS
    told: dict[str, Any] = {"worlds": [0, 1]} if hard else {"noise": NOISE, "n_items": N_ITEMS}
    told |= {"measure": measure, "learner": learner, "horizons": list(horizons)}
    return seeded(f"{measure}, {learner}", seed=seed, cost=sum(horizons) * (2 if hard else 1), **told)


def run(job: Job) -> pl.DataFrame:
    """Regret at each horizon, with the bound where there is one; in hard worlds, both of them.

    A random order carries the bound of RTop-1F, which says nothing while a random order stays below it.
    """
    measure, learner = job.settings["measure"], job.settings["learner"]
    rows: list[tuple[str, str, int | None, int, float, float | None]] = []
    for T in job.settings["horizons"]:
        if measure in HOPELESS:
            for world in (0, 1):
                lost = hopeless.regret(
                    measure=measure, world=world, learner=learner, horizon=T, seed=job.seed
                )
                rows.append((measure, learner, world, T, lost, None))
        else:
            ranker = make_learner(learner, n_items=N_ITEMS, horizon=T, measure=measure)
            people = FixedItems(users.noisy_halves(n_items=N_ITEMS, noise=NOISE), measure=measure)
            trace = play(ranker, people, rounds=T, seed=job.seed, points=1, progress=False)
            bounded = make_learner(RANDOM, n_items=N_ITEMS, horizon=T, measure=measure)
            bound = bound_of(bounded if learner == UNIFORM else ranker)
            rows.append((measure, learner, None, T, trace.total_regret, bound))
    columns = {"measure": pl.String, "learner": pl.String, "world": pl.Int64, "horizon": pl.Int64}
    return pl.DataFrame(rows, schema=columns | {"regret": pl.Float64, "bound": pl.Float64}, orient="row")


def growth(results: pl.DataFrame, *, measure: str, learner: str) -> pl.DataFrame:
    """By horizon: regret (mean, standard error, lowest and highest run) and bound. A run is a mean over its worlds."""
    rows = runs.chosen(results, measure=measure, learner=learner).group_by("horizon", "seed")
    by_run = rows.agg(pl.col("regret").mean(), pl.col("bound").first())
    bounds = by_run.group_by("horizon").agg(pl.col("bound").first())
    return runs.over_runs(by_run, by="horizon").join(bounds, on="horizon", maintain_order="left")


def exponent(results: pl.DataFrame, *, measure: str, learner: str) -> float:
    """The power of T that regret grows with, fitted to the means; in hard worlds from `SETTLED` on."""
    curve = growth(results, measure=measure, learner=learner)
    if measure in HOPELESS:
        curve = curve.filter(pl.col("horizon") >= SETTLED)
    return power_law(curve["horizon"].to_numpy(), curve["mean"].to_numpy())[0]


def slope(results: pl.DataFrame, *, measure: str, learner: str) -> tuple[float, float]:
    """Regret per round at the longest horizon, and its standard error."""
    last = growth(results, measure=measure, learner=learner).row(-1, named=True)
    return last["mean"] / last["horizon"], last["error"] / last["horizon"]


def price_of_random(results: pl.DataFrame, measure: str) -> float:
    """What a random order loses in a round."""
    if measure in HOPELESS:
        return environments.forced_regret(measure)
    return slope(results, measure=measure, learner=UNIFORM)[0]


def nearest(results: pl.DataFrame, *, measure: str, learner: str) -> float:
    """How many times the costliest run of all horizons fits under its bound."""
    curve = growth(results, measure=measure, learner=learner)
    return float((curve["bound"] / curve["high"]).to_numpy().min())


def table(results: pl.DataFrame) -> pl.DataFrame:
    """One line for each measure and learner: exponent, and what is lost at the longest horizon."""
    lines = []
    for measure, learner in results.select("measure", "learner").unique(maintain_order=True).iter_rows():
        of = {"measure": measure, "learner": learner}
        curve, (per_round, error) = growth(results, **of), slope(results, **of)
        lines.append(
            {
                "measure": (LEARNABLE | HOPELESS)[measure],
                "learner": learner,
                "exponent": round(exponent(results, **of), 3) if len(curve) > 1 else None,
                "T": int(curve["horizon"][-1]),
                "regret per round": round(per_round, 5),
                "standard error": round(error, 5),
                "bound / regret": None if curve["bound"][-1] is None else round(nearest(results, **of), 1),
            }
        )
    return pl.DataFrame(lines, infer_schema_length=None)
