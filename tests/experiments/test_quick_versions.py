"""The quick version of every experiment: its claims hold, and break under their mutations; its captions follow it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import polars as pl
import pytest
from matplotlib.figure import Figure

from rankloop import experiments, plotting
from rankloop.experiments.experiment import Experiment
from rankloop.experiments.harness.reproduce import reproduce
from rankloop.experiments.mutations import instead, survivors, times
from rankloop.experiments.pbm_2022 import comparison
from rankloop.experiments.top_2016 import setting

PICTURES = {
    "top1-2015-fig1": {"average-regret"},
    "top1-2015-fig2": {"from-round-1000", "horizons"},
    "top1-2015-rates": {"three-rates", "below-the-bounds", "hard-worlds"},
    "top1-2015-jester": {"everybody-once", "if-more-came"},
    "top-2016-fig1": {"average-ndcg", "average-ndcg-ours", "epsilon", "held-out"},
    "top-2016-regret": {"surrogate-regret"},
    "top-2016-impossible": {"impossible"},
    "top-2016-beyond": {"shares", "steps"},
    "pbm-2022-fig1": {"average-reward"},
    "pbm-2022-fig2": {"average-reward"},
    "pbm-2022-table1": {"bounds-and-regret"},
    "pbm-2022-ftrl": {"average-reward", "reward-by-time"},
    "pbm-2022-bounds": {"theorem-1", "theorem-3", "lemma-1"},
    "pbm-2022-estimators": {"estimators", "all-runs"},
    "pbm-2022-solver": {"solver"},
    "pbm-2022-leader": {"leader"},
    "beyond-precision": {"regret"},
    "beyond-top-both-worlds": {"both-worlds"},
    "oltr-comparison": {"offline", "online"},
}

# Rows that were otherwise, and the pictures whose captions must then say something else.
_OTHER_READING = instead("RTop1F random", "RTop1F keep-rest").change
OTHERWISE: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], set[str]]] = {
    "top1-2015-fig1": (_OTHER_READING, PICTURES["top1-2015-fig1"]),
    "top1-2015-fig2": (_OTHER_READING, PICTURES["top1-2015-fig2"]),
    "top1-2015-rates": (times(100, measure="dcg").change, {"below-the-bounds"}),
    "top-2016-impossible": (times(2).change, {"impossible"}),
    "pbm-2022-bounds": (lambda rows: rows.with_columns(_by_seed), {"theorem-1"}),
    "pbm-2022-solver": (lambda rows: rows.with_columns(_by_seed), {"solver"}),
    "beyond-precision": (times(2).change, {"regret"}),
    "beyond-top-both-worlds": (times(2).change, {"both-worlds"}),
}
_by_seed = (pl.col("regret") * (1 + pl.col("seed"))).alias("regret")


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


@pytest.mark.parametrize("name", experiments.names())
def test_every_claim_holds_and_breaks_under_its_mutation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lack := experiments.get(name).missing():
        pytest.skip(lack)
    monkeypatch.setattr(comparison, "why_not_fitted", lambda: "not now")
    judged = judge(name, tmp_path)
    assert set(judged.captions) == PICTURES[name]
    if name in OTHERWISE:
        change, pictures = OTHERWISE[name]
        other = judged.captions_with(change(judged.rows))
        assert not [picture for picture in pictures if judged.captions[picture] == other[picture]]
        if name == "top1-2015-rates":
            assert "A run passes its bound" in other["below-the-bounds"]
    if name == "top-2016-fig1":
        _captions_tell_what_is_shown(judged)
        _without_real_data_the_synthetic_set_is_played(judged.rows, monkeypatch, tmp_path)


def _captions_tell_what_is_shown(judged: Judged) -> None:
    rows, told = judged.rows, judged.captions
    hidden = {source.label for name, source in setting.SOURCES.items() if name not in set(rows["set"])}
    assert hidden
    assert not [label for label in hidden for text in told.values() if label in text]
    assert "steps are 10,000 times those at the right end" in told["epsilon"]
    fewer = rows.filter(pl.col("set") == "synthetic").with_columns(
        constants=pl.col("constants").replace("epsilon 1", "epsilon 0.1")
    )
    other = judged.captions_with(fewer)
    assert "steps are 100 times those at the right end" in other["epsilon"]
    assert all(told[name] != other[name] for name in told if len(set(rows["set"])) > 1)


def _without_real_data_the_synthetic_set_is_played(
    rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path / "nowhere"))
    assert setting.available() == ["synthetic"]
    experiment = experiments.get("top-2016-fig1")
    assert experiment.missing() is None
    played = rows.filter(pl.col("set") == "synthetic")
    jobs = experiment.jobs(quick=True)
    assert {(job.name, job.seed) for job in jobs} == set(played.select("job", "seed").iter_rows())
    assert all(claim.holds for claim in experiment.claims(played, quick=True))
    (line,) = experiment.notes(played)  # says what is missing
    assert line.startswith("Played on Synthetic; skipped MQ2008, real data missing: no ltr/mq2008 in ")
    assert "skipped MSLR fragment" in line
    assert "set RANKLOOP_DATA" in line
