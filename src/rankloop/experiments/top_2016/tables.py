"""Reading the rows of the 2016 experiments: curves, levels at the end, shares of the gap that feedback can close."""

from __future__ import annotations

import polars as pl

from rankloop.experiments.top_2016.setting import label_of

RANDOM, LISTNET, SMOOTH = "Random", "ListNet", "SmoothDCG"
CONVEX = ("RankSVM", "KL", "Squared")
LEARNERS = (*CONVEX, SMOOTH, LISTNET, RANDOM)
PAPERS, OURS, TENTH, RESCALED = (
    "the paper's",
    "ours",
    "a tenth of the paper's steps",
    "1/10,000 of the paper's steps",
)
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)


def with_epsilon(epsilon: float) -> str:
    """The constants of the paper, but for SmoothDCG's smoothing.

    >>> with_epsilon(0.3)
    'epsilon 0.3'
    """
    return f"epsilon {epsilon:g}" if epsilon != EPSILONS[0] else PAPERS


def curve(results: pl.DataFrame, *, dataset: str, learner: str, constants: str) -> pl.DataFrame:
    """Average NDCG up to each round: mean over the runs, and a standard error below and above it."""
    average = pl.col("average")
    error = average.std() / pl.len().sqrt()
    return (
        _chosen(results, dataset, learner, constants)
        .group_by("round")
        .agg(
            average.mean().alias("mean"),
            (average.mean() - error).alias("low"),
            (average.mean() + error).alias("high"),
        )
        .sort("round")
    )


def ends(
    results: pl.DataFrame, *, dataset: str, learner: str, constants: str = PAPERS, column: str = "average"
) -> list[float]:
    """The last row's `column` of every run, by seed."""
    last = _chosen(results, dataset, learner, constants).filter(pl.col("round") == pl.col("round").max())
    return [float(value) for value in last.sort("seed")[column].to_list()]


def level(
    results: pl.DataFrame, *, dataset: str, learner: str, constants: str = PAPERS, column: str = "average"
) -> float:
    """Mean of `ends` over the runs."""
    found = ends(results, dataset=dataset, learner=learner, constants=constants, column=column)
    return sum(found) / len(found)


def share(
    results: pl.DataFrame,
    *,
    dataset: str,
    learner: str,
    constants: str = PAPERS,
    against: str | None = None,
    column: str = "average",
) -> float:
    """How much of the way from Random to ListNet a learner goes, at the end of its runs.

    ListNet has the constants named by `against`, by default the paper's for all but `OURS`.
    """
    reference = against or (OURS if constants == OURS else PAPERS)
    low = level(results, dataset=dataset, learner=RANDOM, column=column)
    high = level(results, dataset=dataset, learner=LISTNET, constants=reference, column=column)
    own = level(results, dataset=dataset, learner=learner, constants=constants, column=column)
    return (own - low) / (high - low)


def sets(results: pl.DataFrame) -> list[str]:
    """The data sets that were played, in order of appearance."""
    return [str(name) for name in results["set"].unique(maintain_order=True).to_list()]


def final_table(results: pl.DataFrame) -> pl.DataFrame:
    """For each data set and learner: NDCG@10 averaged over the run, its share of the gap, and held-out NDCG@10."""
    rows = []
    names = results.select("set", "learner", "constants").unique(maintain_order=True)
    for dataset, learner, constants in names.iter_rows():
        found = ends(results, dataset=dataset, learner=learner, constants=constants)
        held = level(results, dataset=dataset, learner=learner, constants=constants, column="held out")
        of_gap = share(results, dataset=dataset, learner=learner, constants=constants)
        rows.append(
            {
                "data set": label_of(dataset),
                "learner": learner,
                "constants": constants,
                "average NDCG@10": round(sum(found) / len(found), 4),
                "lowest run": round(min(found), 4),
                "highest run": round(max(found), 4),
                "share of the gap": round(of_gap, 3),
                "held-out NDCG@10": round(held, 4),
            }
        )
    return pl.DataFrame(rows)


def _chosen(results: pl.DataFrame, dataset: str, learner: str, constants: str) -> pl.DataFrame:
    found = results.filter(
        (pl.col("set") == dataset) & (pl.col("learner") == learner) & (pl.col("constants") == constants)
    )
    if found.is_empty():
        raise ValueError(f"learner {learner!r} with constants {constants!r} has no rows on {dataset!r}")
    return found
