"""Real people; skipped with a plain line where their ratings are not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rankloop import cli, experiments
from rankloop.experiments.top1_2015 import jester as people


@pytest.fixture
def ratings_are_here() -> None:
    lack = people.Top1Jester().missing()
    if lack:
        pytest.skip(lack)


@pytest.mark.usefixtures("ratings_are_here")
def test_all_learners_meet_the_same_people_in_the_same_order_and_the_best_order_loses_nothing() -> None:
    by_learner = {
        job.settings["learner"]: people.Top1Jester().run(job)
        for job in people.jobs(horizons=[100], once_runs=1, again_runs=1)
        if job.settings["crowd"] == "jokes" and job.settings["way"] == "once"
    }
    assert set(by_learner) == set(people.ONCE_LEARNERS)
    assert by_learner[people.BEST]["regret"][-1] == pytest.approx(0.0, abs=1e-6)
    assert {int(rows["round"][-1]) for rows in by_learner.values()} == {2_499}


def test_without_ratings_it_says_so_and_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path / "nowhere"))
    lack = experiments.get("top1-2015-jester").missing()
    assert lack is not None
    assert "RANKLOOP_DATA" in lack
    assert "\n" not in lack
    result = CliRunner().invoke(cli.app, ["reproduce", "top1-2015-jester", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert "top1-2015-jester: skipped, real data missing" in result.stdout


def test_smaller_means_by_three_standard_errors_of_the_pairs() -> None:
    low, steady, wild = (np.array(row) for row in ([1.0, 5.0, 9.0], [0.5, 0.6, 0.7], [0.5, -0.4, 0.7]))
    assert people.smaller(low, low + steady)
    assert not people.smaller(low, low + wild)
    assert not people.smaller(low + steady, low)
