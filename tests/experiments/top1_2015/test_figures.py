"""What section 10 of the 2015 paper asserts, at the size of the quick version."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rankloop import experiments
from rankloop.experiments.mutations import instead
from rankloop.experiments.top1_2015 import setting
from tests.experiments.quick import captions, judge


@pytest.mark.parametrize("name", ["top1-2015-fig1", "top1-2015-fig2"])
def test_every_claim_holds_and_breaks_under_its_mutation(name: str, tmp_path: Path) -> None:
    rows = judge(name, tmp_path)
    pictures = {path.suffix for path in (tmp_path / name).iterdir()}
    assert {".png", ".svg", ".parquet", ".json"} <= pictures
    experiment = experiments.get(name)
    told = captions(experiment, rows)
    other = captions(experiment, instead("RTop1F random", "RTop1F keep-rest").change(rows))
    assert all(told[picture] != other[picture] for picture in told)


@pytest.mark.parametrize(("noise", "flipped"), [(0.25, 0.0228), (0.5, 0.1587), (1.0, 0.3085)])
def test_the_users_disagree_as_often_as_the_noise_says(noise: float, flipped: float) -> None:
    people = setting.users(20_000, noise)
    disagree = np.abs(people - np.repeat([1, 0], 5)).mean()
    assert disagree == pytest.approx(flipped, abs=0.003)  # three standard errors at noise 1


def test_a_shorter_run_meets_the_first_of_the_same_users() -> None:
    assert (setting.users(100, 0.25) == setting.users(200, 0.25)[:100]).all()
