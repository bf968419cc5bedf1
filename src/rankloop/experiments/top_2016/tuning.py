"""Learners beyond the 2016 paper, each tuned by the same rule: settings chosen on training queries.

All learners but the references observe the labels of the top two documents. The references are ListNet, and each
surrogate with full information, which is the limit of the surrogate. For each part of the queries that is held out,
settings are tried in runs over the other queries: (annealing,) sizes of the steps, then exploration, then the radius,
each time keeping the value with the highest average NDCG@10. The settings that are left play again with fresh seeds:
their average is evaluated, and their greedy order on the queries held out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop.experiments import runs
from rankloop.experiments.experiment import Job, Plain
from rankloop.experiments.runs import mean_and_error
from rankloop.experiments.top_2016 import setting
from rankloop.rankers import Uniform

RANDOM, LISTNET = "Random", "ListNet"
LISTNET_PLAIN, LISTNET_PAPER = "ListNet, steps t^(-1/2)", "ListNet, the paper's steps"
SMOOTH, ANNEALED = "SmoothDCG", "SmoothDCG, annealed"
ESTIMATORS = ("paper", "HT", "HT + guess")
EVERY = "every label"

Sweep = dict[str, list[Plain]]
_SWEPT = ("learning_rate", "exploration", "radius", "epsilon")


@dataclass(frozen=True)
class Size:
    """How many rounds and runs are used to try a setting and to evaluate the chosen one."""

    rounds: int
    tried_runs: int
    judged_runs: int
    parts: range
    fewer: bool = field(default=False)


FULL = Size(rounds=200_000, tried_runs=3, judged_runs=3, parts=setting.SEEDS)
QUICK = Size(rounds=20_000, tried_runs=1, judged_runs=1, parts=setting.SEEDS[:2], fewer=True)


def _steps(power: float, *scales: float) -> list[Plain]:
    return [[scale, power] for scale in scales]


def _top_two(
    surrogate: str, estimator: str, guess: str, steps: list[Plain], **others: Plain
) -> tuple[dict[str, Plain], Sweep]:
    fixed: dict[str, Plain] = {"surrogate": surrogate, "k": 2, **others}
    if estimator != ESTIMATORS[0]:
        fixed["estimator"] = "horvitz-thompson"
    if estimator == ESTIMATORS[2]:
        fixed["control_variate"] = guess
    explorations: list[Plain] = [[1.0, 1 / 3], [0.3, 1 / 3]]
    return fixed, {"learning_rate": steps, "exploration": explorations, "radius": [30.0, 10.0]}


def _every_label(surrogate: str, steps: list[Plain], **others: Plain) -> tuple[dict[str, Plain], Sweep]:
    # No list is longer, so all labels come back whatever is shown, and there is nothing to explore for.
    fixed: dict[str, Plain] = {"surrogate": surrogate, "k": 1_000, "estimator": "horvitz-thompson", **others}
    return fixed | {"exploration": 1e-9}, {"learning_rate": steps, "radius": [30.0, 100.0]}


def _methods() -> dict[str, tuple[dict[str, Plain], Sweep]]:
    listnet: dict[str, Plain] = {"surrogate": "listnet"}
    found: dict[str, tuple[dict[str, Plain], Sweep]] = {
        LISTNET: (
            listnet,
            {"learning_rate": _steps(1 / 2, 0.1, 1.0, 10.0, 100.0), "radius": [30.0, 10.0, 100.0]},
        ),
        LISTNET_PLAIN: (listnet, {"learning_rate": _steps(1 / 2, 1.0), "radius": [10.0]}),
        LISTNET_PAPER: (listnet, {"learning_rate": _steps(1 / 2, 0.01), "radius": [10.0]}),
        "RankSVM, paper": _top_two("ranksvm", "paper", "", _steps(2 / 3, 0.01, 0.03, 0.1, 0.3)),
    }
    convex, smooth = _steps(2 / 3, 0.03, 0.1, 0.3, 1.0), _steps(1 / 3, 0.003, 0.01, 0.03, 0.1, 0.3)
    for estimator in ESTIMATORS:
        found[f"Squared, {estimator}"] = _top_two("squared", estimator, "score", convex)
        found[f"KL, {estimator}"] = _top_two("kl", estimator, "mean", convex)
        found[f"{SMOOTH}, {estimator}"] = _top_two("smooth_dcg", estimator, "mean", smooth, epsilon=0.1)
    fixed, sweep = _top_two("smooth_dcg", ESTIMATORS[2], "mean", _steps(2 / 3, 0.3, 0.1, 1.0))
    found[ANNEALED] = fixed, {"epsilon": [[1.0, 0.3], [1.0, 0.4]], **sweep}
    found[f"RankSVM, {EVERY}"] = _every_label("ranksvm", _steps(1 / 2, 0.03, 0.1, 0.3, 1.0))
    found[f"Squared, {EVERY}"] = _every_label("squared", _steps(1 / 2, 0.03, 0.1, 0.3, 1.0))
    found[f"KL, {EVERY}"] = _every_label("kl", _steps(1 / 2, 0.03, 0.1, 0.3, 1.0))
    found[f"{SMOOTH}, {EVERY}"] = _every_label("smooth_dcg", _steps(1 / 3, 0.03, 0.1, 0.3, 1.0), epsilon=0.1)
    return found


METHODS = _methods()


def job(*, dataset: str, method: str, part: int, size: Size) -> Job:
    """Tune and evaluate one learner with one part of the queries held out."""
    fixed, sweep = METHODS[method]
    if size.fewer:
        sweep = {name: tried[-3:] if name == "learning_rate" else tried[:1] for name, tried in sweep.items()}
    told = {"set": dataset, "method": method, "fixed": fixed, "sweep": sweep, "rounds": size.rounds}
    tried = 1 + sum(len(values) - 1 for values in sweep.values())
    work = (2.0 if dataset == "yahoo" else 1.0) * (3.0 if method == f"RankSVM, {EVERY}" else 1.0)
    return Job(
        name=f"{setting.label_of(dataset)}, {method}, part {part} held out",
        seed=part,
        settings=told | {"tried_runs": size.tried_runs, "judged_runs": size.judged_runs},
        cost=work * (size.tried_runs * tried + size.judged_runs),
    )


def run(job: Job) -> pl.DataFrame:
    """A row for every run: of every setting tried, and of the chosen ones."""
    told, part = job.settings, job.seed
    train, held_out = setting.parts(told["set"], part)
    rows = []

    def play(settings: dict[str, Plain], kind: str, seed: int) -> float:
        ranker = setting.make_ranker(told["fixed"] | settings, train)
        average = setting.play_on(ranker, train, rounds=told["rounds"], seed=seed).mean_value
        rows.append(
            {"set": told["set"], "method": told["method"], "kind": kind, "average": average}
            | {name: _short(name, settings.get(name)) for name in _SWEPT}
            | {"held out": setting.greedy_value(ranker, held_out)}
        )
        return average

    tried: dict[str, float] = {}

    def level(settings: dict[str, Plain]) -> float:
        if str(settings) not in tried:
            seeds = range(1_000 * part, 1_000 * part + told["tried_runs"])
            tried[str(settings)] = float(np.mean([play(settings, "tried", seed) for seed in seeds]))
        return tried[str(settings)]

    settings = {name: values[0] for name, values in told["sweep"].items()}
    for name, values in told["sweep"].items():
        settings = max((settings | {name: value} for value in values), key=level)
    for i in range(told["judged_runs"]):
        play(settings, "judged", 1_000 * part + 500 + i)
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(_SWEPT, pl.Float64))


def _short(name: str, value: Any) -> float | None:
    # Of a schedule, what the sweep varies: its scale, or for annealing its power.
    found: float | None = value[1 if name == "epsilon" else 0] if isinstance(value, list) else value
    return found


@lru_cache(maxsize=64)
def _random_level(dataset: str, part: int, side: int) -> float:
    return setting.greedy_value(Uniform(), setting.parts(dataset, part)[side])


def by_part(
    results: pl.DataFrame, dataset: str, method: str, *, column: str = "average"
) -> NDArray[np.float64]:
    """A learner's level in evaluation runs, by the part held out; of `RANDOM`, its expectation."""
    if method == RANDOM:
        side = 0 if column == "average" else 1
        held = runs.chosen(results, set=dataset)["seed"].unique().sort().to_list()
        return np.array([_random_level(dataset, part, side) for part in held])
    rows = runs.chosen(results, set=dataset, method=method, kind="judged")
    return rows.group_by("seed").agg(pl.col(column).mean()).sort("seed")[column].to_numpy()


def level(results: pl.DataFrame, dataset: str, method: str, *, column: str = "average") -> float:
    """Mean of `by_part`."""
    return float(by_part(results, dataset, method, column=column).mean())


def promise(results: pl.DataFrame, dataset: str, method: str) -> float:
    """The average NDCG of the best setting in the runs that were tried: what a learner is chosen by."""
    tried = runs.chosen(results, set=dataset, method=method, kind="tried")
    levels = tried.group_by("seed", *_SWEPT).agg(pl.col("average").mean())
    return float(levels.group_by("seed").agg(pl.col("average").max())["average"].to_numpy().mean())


def share(
    results: pl.DataFrame, dataset: str, method: str, *, column: str = "average", against: str = LISTNET
) -> tuple[float, float]:
    """Share of the gap between a random order and ListNet, part by part: its mean and standard error."""
    names = (RANDOM, method, against)
    low, own, high = (by_part(results, dataset, name, column=column) for name in names)
    return mean_and_error((own - low) / (high - low))


def gains(results: pl.DataFrame, dataset: str, better: str, worse: str) -> NDArray[np.float64]:
    """By how much of the gap one learner is ahead of another, part by part."""
    names = (RANDOM, LISTNET, better, worse)
    low, high, up, down = (by_part(results, dataset, name) for name in names)
    return (up - down) / (high - low)


def chosen(results: pl.DataFrame, dataset: str, method: str) -> str:
    """The settings that were chosen, most frequent first, each with the number of parts it was chosen for."""
    judged = runs.chosen(results, set=dataset, method=method, kind="judged")
    counted = judged.unique("seed").group_by(_SWEPT).len().sort("len", *_SWEPT, descending=True)
    told = []
    for *values, count in counted.iter_rows():
        known = [f"{value:g}" for value in values if value is not None]
        told.append(f"{' '.join(known)} ({count})")
    return ", ".join(told)
