"""The published full run, judged again on the rows that its claims need: they hold, and break under their mutation.

`docs/tables/reproduced.py` keeps the rows, and writes the page that is compared with them.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from rankloop import experiments
from rankloop.experiments.experiment import worded
from rankloop.experiments.mutations import survivors

FULL = Path(__file__).with_name("full")
PAGE = (Path(__file__).parents[2] / "docs" / "reproduced.md").read_text()
PLAYED = sorted(file.stem for file in FULL.glob("*.parquet"))


@pytest.mark.parametrize("name", PLAYED)
def test_claims_hold_as_the_page_says_and_break_under_their_mutation(name: str) -> None:
    experiment, rows = experiments.get(name), pl.read_parquet(FULL / f"{name}.parquet")
    claims = list(experiment.claims(rows, quick=False))
    assert len({claim.name for claim in claims}) == len(claims)
    assert not [f"{claim.name}: {claim.measured}" for claim in claims if claim.broken]
    for claim in claims:
        line = (
            f"| `{claim.name}`: {claim.text} | {claim.verdict} | {claim.measured} | {worded(claim.fixed)} |"
        )
        assert line.replace("\n", " ") in PAGE
    assert not survivors(experiment, rows, quick=False)


def test_every_experiment_was_played() -> None:
    assert sorted(experiments.names()) == PLAYED
