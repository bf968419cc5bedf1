"""Reading the rows of many runs: choose them, take means over the runs, and say how far to trust the means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

PER_ROUND = pl.col("regret") / pl.col("round")
"""Regret up to a round, divided by the rounds."""


def chosen(results: pl.DataFrame, **values: Any) -> pl.DataFrame:
    """The rows whose columns have these values; there must be some."""
    found = results.filter(*(pl.col(column) == value for column, value in values.items()))
    if found.is_empty():
        raise ValueError(f"no rows with {values}")
    return found


def over_runs(
    rows: pl.DataFrame, value: str | pl.Expr = "regret", *, by: str = "round", errors: float | None = None
) -> pl.DataFrame:
    """Mean of `value` over the runs and its standard error, by round or another column, which comes first.

    The columns low and high are the lowest and highest run, or so many standard `errors` below and above the mean.

    >>> rows = pl.DataFrame({"round": [1, 1], "regret": [2.0, 4.0]})
    >>> over_runs(rows).row(0), over_runs(rows, errors=2).row(0)
    ((1, 3.0, 1.0, 2.0, 4.0), (1, 3.0, 1.0, 1.0, 5.0))
    """
    values = pl.col(value) if isinstance(value, str) else value
    mean, error = values.mean(), values.std() / pl.len().sqrt()
    low, high = (
        (values.min(), values.max()) if errors is None else (mean - errors * error, mean + errors * error)
    )
    named = {"mean": mean, "error": error, "low": low, "high": high}
    return rows.group_by(by).agg(**named).sort(by)


def ends(results: pl.DataFrame, column: str, **values: Any) -> NDArray[np.float64]:
    """`column` in the last row of every run whose settings are `values`, by seed."""
    found = chosen(results, **values)
    return found.filter(pl.col("round") == pl.col("round").max()).sort("seed")[column].to_numpy()


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """The mean over runs and its standard error.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    runs = np.asarray(values, dtype=np.float64)
    return float(runs.mean()), float(runs.std(ddof=1) / np.sqrt(len(runs)))


def level(results: pl.DataFrame, column: str = "regret", **values: Any) -> tuple[float, float]:
    """Mean of a column over the runs with these settings, each the mean over its worlds, and its standard error."""
    by_seed = chosen(results, **values).group_by("seed").agg(pl.col(column).mean())
    return mean_and_error(by_seed[column].to_numpy())


def pivot(
    results: pl.DataFrame, *, index: Sequence[str], on: str = "rounds", digits: int = 4, value: Any = "regret"
) -> pl.DataFrame:
    """A table of means over the runs: a line for each `index`, a column for each value of `on`."""
    values = (pl.col(value) if isinstance(value, str) else value).mean().round(digits).alias("mean")
    means = results.group_by(*index, on, maintain_order=True).agg(values)
    return means.pivot(on=on, index=list(index), values="mean")


def lead(better: ArrayLike, worse: ArrayLike) -> tuple[float, float]:
    """By how much one learner's runs are above another's, run by run: the mean difference and its standard error.

    >>> lead([3.0, 5.0], [1.0, 1.0])
    (3.0, 1.0)
    """
    return mean_and_error(np.subtract(better, worse))


def ahead(better: ArrayLike, worse: ArrayLike, *, errors: float = 2.0) -> bool:
    """Whether that lead is more than so many of its standard errors: a smaller one is no lead."""
    gain, error = lead(better, worse)
    return gain > errors * error
