"""Runs of experiments: played once where several look at them; their rows chosen, and means over them with errors."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from rankloop.base import Environment, Ranker, import_path
from rankloop.simulation import Trace, play

PER_ROUND = pl.col("regret") / pl.col("round")
"""Regret up to a round, divided by the rounds."""


def chosen(results: pl.DataFrame, **values: Any) -> pl.DataFrame:
    """The rows whose columns have these values; there must be some."""
    rows = results.filter(*(pl.col(column) == value for column, value in values.items()))
    if rows.is_empty():
        raise ValueError(f"no rows with {values}")
    return rows


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
    rows = chosen(results, **values)
    return rows.filter(pl.col("round") == pl.col("round").max()).sort("seed")[column].to_numpy()


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


# Table 1 of the 2022 paper has the runs of its figures, and FTRL-PBM plays the same million rounds in four experiments.
_played: dict[bytes, Trace] = {}


def play_once(ranker: Ranker, environment: Environment, *, rounds: int, seed: int, points: int) -> Trace:
    """What `play` gives for a fresh ranker in a fresh environment; both stay fresh where it is known already.

    Who plays and where is told by the arguments of both constructors, of rankers of this package: others may depend on
    more than these, and play each time. A trace is shared, so nobody may write to it.
    """

    def played() -> Trace:
        return play(ranker, environment, rounds=rounds, seed=seed, points=points, progress=False)

    if not import_path(type(ranker)).startswith("rankloop."):
        return played()
    players = [(import_path(type(one)), one.get_params()) for one in (ranker, environment)]
    key = pickle.dumps((players, rounds, seed, points))
    if key not in _played:
        _played[key] = played()
    return _played[key]


def forget() -> None:
    """Play everything again from now on, as a new process would."""
    _played.clear()
