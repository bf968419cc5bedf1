"""The quick version of the comparison of learners from clicks on documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rankloop.experiments import oltr_comparison
from tests.experiments.quick import judge


def test_every_claim_holds_and_breaks_under_its_mutation(tmp_path: Path) -> None:
    judge("oltr-comparison", tmp_path)
    assert {path.stem for path in (tmp_path / "oltr-comparison").glob("*.png")} == {"offline", "online"}


def test_every_query_that_is_judged_has_a_relevant_document() -> None:
    for part in oltr_comparison.parts("synthetic", 1):
        assert (np.maximum.reduceat(part.relevance, part.offsets[:-1]) > 0).all()
