"""The quick version of an experiment, judged twice: as it was run, and under the mutation of each claim."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from rankloop import experiments, plotting
from rankloop.experiments.experiment import Experiment
from rankloop.experiments.harness.reproduce import reproduce
from rankloop.experiments.mutations import survivors


def judge(name: str, out: Path) -> pl.DataFrame:
    """Run it, insist that every claim holds and breaks under its mutation, and return the rows."""
    experiment = experiments.get(name)
    verdict = reproduce(experiment, out=out, quick=True)
    assert verdict.claims
    assert not [f"{claim.name}: {claim.measured}" for claim in verdict.claims if not claim.holds]
    rows = pl.read_parquet(out / name / "results.parquet")
    assert not survivors(experiment, rows, quick=True)
    return rows


def captions(experiment: Experiment, rows: pl.DataFrame) -> dict[str, str]:
    """The captions of its pictures, made from these rows."""
    drawn = experiment.figures(rows, quick=True)
    return {name: plotting.caption_of(figure)[0] for name, figure in drawn.items()}
