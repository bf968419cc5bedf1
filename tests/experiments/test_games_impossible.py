"""The quick versions of the experiments around games."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankloop import experiments, rankers
from rankloop.experiments import games_impossible
from rankloop.experiments.mutations import times
from tests.experiments.quick import captions, judge


@pytest.mark.parametrize(
    ("name", "picture"), [("beyond-precision", "regret"), ("games-impossible", "impossible")]
)
def test_every_claim_holds_and_breaks_under_its_mutation(tmp_path: Path, name: str, picture: str) -> None:
    rows = judge(name, tmp_path)
    assert (tmp_path / name / f"{picture}.png").exists()
    told, other = (captions(experiments.get(name), one) for one in (rows, times(2).change(rows)))
    assert told[picture] != other[picture]


@pytest.mark.parametrize("case", games_impossible.CASES)
def test_every_ranker_that_hears_of_the_top_is_tried(case: str) -> None:
    found = games_impossible.learners(case)
    assert {"FeedExp3", "Fixed", "PrecisionFTRL", "RTop1F", "Uniform"} <= set(found) <= set(rankers.__all__)
    assert not {"FTPL", "BestInHindsight", "RTopKF"} & set(found)
