"""Scores: the share of the way from random to the best in hindsight, robustly averaged, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, numbers, whole

RESAMPLES = 2_000
CONFIDENCE = 0.95
SEED = 16  # of the bootstrap: the same results give the same intervals


class Score(NamedTuple):
    """An interquartile mean with its interval.

    Parameters
    ----------
    value : float
        The interquartile mean.
    low : float
        Where the interval begins.
    high : float
        Where it ends.
    """

    value: float
    low: float
    high: float


def share_of_way(value: ArrayLike, random: ArrayLike, best: ArrayLike) -> NDArray[np.float64]:
    """How far from random lists (0) to the best in hindsight (1); negative where worse than random.

    >>> share_of_way([0.5, 0.8, 0.4], 0.5, 0.8).round(3)
    array([ 0.   ,  1.   , -0.333])
    """
    below, above = np.asarray(random, np.float64), np.asarray(best, np.float64)
    if (above <= below).any():
        raise ValueError("best must be above random in every run: otherwise there is nothing to learn")
    found: NDArray[np.float64] = (np.asarray(value, np.float64) - below) / (above - below)
    return found


def interquartile_mean(values: ArrayLike) -> float:
    """The mean without the lowest and the highest quarter of the values, each rounded down.

    Parameters
    ----------
    values : array_like
        Some numbers.

    Returns
    -------
    float
        The mean of the middle half.

    Examples
    --------
    >>> interquartile_mean([0.0, 0.9, 1.0, 8.0])
    0.95
    >>> interquartile_mean([1.0, 2.0, 6.0])
    3.0
    """
    given = numbers("values", values)
    if given.ndim != 1 or len(given) == 0:
        raise ValueError(f"values must be a list of at least one number, got shape {given.shape}")
    return float(_middle(given[None])[0])


def _middle(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    cut = rows.shape[1] // 4
    kept = np.sort(rows, axis=1)[:, cut : rows.shape[1] - cut]
    means: NDArray[np.float64] = kept.mean(axis=1)
    return means


def score(
    by_world: Mapping[str, Sequence[float]],
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> Score:
    """The interquartile mean over all runs in some worlds, with a bootstrap interval.

    Seeds are drawn again within each world, so that every resample has as many runs of each world as there were.

    Parameters
    ----------
    by_world : mapping of str to sequence of float
        The score of each run.
    resamples : int, optional
        How many times runs are drawn again.
    confidence : float, optional
        The level of the interval.
    seed : int, optional
        Of the draws.

    Returns
    -------
    Score
        The mean and its percentile interval.

    Examples
    --------
    >>> score({"a": [0.5, 0.5], "b": [0.7, 0.7]})
    Score(value=0.6, low=0.6, high=0.6)
    """
    if not by_world:
        raise ValueError("by_world must have at least one world, got none")
    resamples = whole("resamples", resamples, at_least=1)
    level = number("confidence", confidence, above=0, below=1)
    strata = [numbers(f"by_world[{name!r}]", values) for name, values in by_world.items()]
    rng = np.random.default_rng(seed)
    drawn = [values[rng.integers(0, len(values), (resamples, len(values)))] for values in strata]
    means = _middle(np.concatenate(drawn, axis=1))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    value = interquartile_mean(np.concatenate(strata))
    return Score(round(value, 12), round(float(low), 12), round(float(high), 12))


def capability_scores(results: pl.DataFrame) -> pl.DataFrame:
    """The score of every ranker for every capability, from the runs of one or more submissions.

    Parameters
    ----------
    results : polars.DataFrame
        Rows of submissions.

    Returns
    -------
    polars.DataFrame
        A row for each ranker, setting and capability: `score`, `low`, `high`, the `worlds` that it played `of` so many,
        and `runs`; none where nothing could be played.
    """
    played = results.filter(pl.col("score").is_not_null())
    rows = []
    offered = {key: part["world"].n_unique() for key, part in results.group_by(["setting", "capability"])}
    keys = ["ranker", "setting", "capability"]
    for (ranker, setting, capability), part in played.group_by(keys, maintain_order=True):
        by_world = {
            str(name): runs["score"].to_list()
            for (name,), runs in part.sort("world", "seed").group_by("world", maintain_order=True)
        }
        found = score(by_world)
        rows.append(
            {
                "ranker": ranker,
                "setting": setting,
                "capability": capability,
                "score": found.value,
                "low": found.low,
                "high": found.high,
                "worlds": len(by_world),
                "of": offered[setting, capability],
                "runs": part.height,
            }
        )
    floats = dict.fromkeys(("score", "low", "high"), pl.Float64)
    return pl.DataFrame(
        rows,
        schema=dict.fromkeys(keys, pl.String) | floats | dict.fromkeys(("worlds", "of", "runs"), pl.Int64),
    )
