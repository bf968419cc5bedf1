"""Reading the rows of the 2016 experiments: curves, levels at the end, shares of the gap that feedback can close."""

from __future__ import annotations

import polars as pl

from rankloop.experiments import runs
from rankloop.experiments.top_2016.setting import label_of

RANDOM, LISTNET, SMOOTH = "Random", "ListNet", "SmoothDCG"
CONVEX = ("RankSVM", "KL", "Squared")
LEARNERS = (*CONVEX, SMOOTH, LISTNET, RANDOM)
PAPERS, OURS = "the paper's", "ours"
TENTH = "a tenth of the paper's steps"
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)


def with_epsilon(epsilon: float) -> str:
    """The constants of the paper, but for SmoothDCG's smoothing.

    >>> with_epsilon(0.3)
    'epsilon 0.3'
    """
    return f"epsilon {epsilon:g}" if epsilon != EPSILONS[0] else PAPERS


def curve(results: pl.DataFrame, dataset: str, learner: str, constants: str = PAPERS) -> pl.DataFrame:
    """Average NDCG up to each round: mean over the runs, and a standard error below and above it."""
    rows = runs.chosen(results, set=dataset, learner=learner, constants=constants)
    return runs.over_runs(rows, "average", errors=1)


def ends(
    results: pl.DataFrame, dataset: str, learner: str, constants: str = PAPERS, *, column: str = "average"
) -> list[float]:
    """The last row's `column` of every run, by seed."""
    found = runs.ends(results, column, set=dataset, learner=learner, constants=constants)
    return [float(value) for value in found]


def level(
    results: pl.DataFrame, dataset: str, learner: str, constants: str = PAPERS, *, column: str = "average"
) -> float:
    """Mean of `ends` over the runs."""
    found = ends(results, dataset, learner, constants, column=column)
    return sum(found) / len(found)


def share(
    results: pl.DataFrame, dataset: str, learner: str, constants: str = PAPERS, *, column: str = "average"
) -> float:
    """How much of the way from Random to ListNet a learner goes, at the end of its runs.

    ListNet has the paper's constants for all learners but those with `OURS`.
    """
    low = level(results, dataset, RANDOM, column=column)
    high = level(results, dataset, LISTNET, OURS if constants == OURS else PAPERS, column=column)
    return (level(results, dataset, learner, constants, column=column) - low) / (high - low)


def sets(results: pl.DataFrame) -> list[str]:
    """The data sets that were played, in order of appearance."""
    return [str(name) for name in results["set"].unique(maintain_order=True).to_list()]


def final_table(results: pl.DataFrame) -> pl.DataFrame:
    """For each data set and learner: NDCG@10 averaged over the run, its share of the gap, and held-out NDCG@10."""
    rows = []
    for of in results.select("set", "learner", "constants").unique(maintain_order=True).iter_rows():
        found = ends(results, *of)
        rows.append(
            {
                "data set": label_of(of[0]),
                "learner": of[1],
                "constants": of[2],
                "average NDCG@10": round(sum(found) / len(found), 4),
                "lowest run": round(min(found), 4),
                "highest run": round(max(found), 4),
                "share of the gap": round(share(results, *of), 3),
                "held-out NDCG@10": round(level(results, *of, column="held out"), 4),
            }
        )
    return pl.DataFrame(rows)
