"""A submission: every run of some rankers as Parquet, and in its metadata what made it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rankloop.whole_file import write_whole

KEY = "rankloop-suite"
SCHEMA = {
    "ranker": pl.String,
    "world": pl.String,
    "capability": pl.String,
    "setting": pl.String,
    "seed": pl.Int64,
    "rounds": pl.Int64,
    "value": pl.Float64,
    "random": pl.Float64,
    "best": pl.Float64,
    "score": pl.Float64,
    "not_applicable": pl.String,
}


@dataclass(frozen=True, eq=False)
class Submission:
    """The results of some rankers.

    Parameters
    ----------
    results : polars.DataFrame
        A row for every run; one without a value for every world that a ranker cannot play in.
    provenance : dict
        What made it: the version of the suite, quick or full, seeds, rankers and their arguments, hashes of the worlds,
        versions of the software and a hash of its code.
    """

    results: pl.DataFrame
    provenance: dict[str, Any]

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all.

        Parameters
        ----------
        path : Path
            Where it goes.
        """
        told = {KEY: json.dumps(self.provenance, sort_keys=True)}
        write_whole(path, lambda part: self.results.write_parquet(part, metadata=told))


def read_submission(path: str | Path) -> Submission:
    """A submission from its file.

    Parameters
    ----------
    path : str or Path
        The Parquet file.

    Returns
    -------
    Submission
        Rows and provenance, not yet verified.

    Raises
    ------
    ValueError
        Where the file is not a submission.
    """
    try:
        results = pl.read_parquet(path)
        told = json.loads(pl.read_parquet_metadata(path)[KEY])
    except (pl.exceptions.PolarsError, KeyError, ValueError):
        raise ValueError(f"file must be one that `rankloop suite run` wrote, got {path}") from None
    if results.schema != pl.Schema(SCHEMA):
        raise ValueError(f"{path}: rows must have the columns {', '.join(SCHEMA)}, got {results.columns}")
    return Submission(results, told)
