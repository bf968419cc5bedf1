"""The quick versions of the experiments around games."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankloop import experiments, rankers
from rankloop.experiments import games_impossible
from rankloop.experiments.harness.reproduce import reproduce


@pytest.mark.parametrize(
    ("name", "picture"), [("beyond-precision", "regret"), ("games-impossible", "impossible")]
)
def test_every_claim_holds(tmp_path: Path, name: str, picture: str) -> None:
    verdict = reproduce(experiments.get(name), out=tmp_path, quick=True)
    broken = [f"{claim.text}: {claim.measured}" for claim in verdict.claims if not claim.holds]
    assert not broken
    assert (tmp_path / name / f"{picture}.png").exists()


@pytest.mark.parametrize("case", games_impossible.CASES)
def test_every_ranker_that_hears_of_the_top_is_tried(case: str) -> None:
    found = games_impossible.learners(case)
    assert {"FeedExp3", "Fixed", "PrecisionFTRL", "RTop1F", "Uniform"} <= set(found) <= set(rankers.__all__)
    assert not {"FTPL", "BestInHindsight", "RTopKF"} & set(found)
