"""The quick version of an experiment, judged twice: as it was run, and under the mutation of each claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import polars as pl
from matplotlib.figure import Figure

from rankloop import experiments, plotting
from rankloop.experiments.experiment import Experiment
from rankloop.experiments.harness.reproduce import reproduce
from rankloop.experiments.mutations import survivors


class Judged(NamedTuple):
    """What was run and written."""

    experiment: Experiment
    rows: pl.DataFrame
    captions: dict[str, str]  # of the pictures, by their names

    def captions_with(self, rows: pl.DataFrame) -> dict[str, str]:
        """The captions of its pictures, had these been the rows."""
        drawn = self.experiment.figures(rows, quick=True)
        return {name: plotting.caption_of(figure)[0] for name, figure in drawn.items()}


def _sketched(figure: Figure, stem: Path, **_: Any) -> tuple[str, float]:
    """Draws everything, but on a small sheet and only once: how figures are saved is tested with the harness."""
    figure.set_dpi(30)
    for axes in figure.axes:
        axes.minorticks_off()  # hundreds, each slow to draw
    plotting.save(figure, stem.parent / f"{stem.name}.png", ending="png")
    return plotting.caption_of(figure)


def judge(name: str, out: Path) -> Judged:
    """Run it, insist that every claim holds and breaks under its mutation, and return what was found."""
    experiment = experiments.get(name)
    with mock.patch("rankloop.experiments.harness.reproduce.save_figure", _sketched):
        verdict = reproduce(experiment, out=out, quick=True)
    assert verdict.claims
    assert not [f"{claim.name}: {claim.measured}" for claim in verdict.claims if not claim.holds]
    rows = pl.read_parquet(out / name / "results.parquet")
    assert not survivors(experiment, rows, quick=True)
    pictures = json.loads((out / name / "claims.json").read_text())["figures"]
    assert all((out / name / f"{picture['name']}.png").exists() for picture in pictures)
    return Judged(experiment, rows, {picture["name"]: picture["caption"] for picture in pictures})
