"""The comparison of learners from clicks on documents."""

from __future__ import annotations

import numpy as np

from rankloop.experiments import oltr_comparison


def test_every_query_that_is_judged_has_a_relevant_document() -> None:
    for part in oltr_comparison.parts("synthetic", 1):
        assert (np.maximum.reduceat(part.relevance, part.offsets[:-1]) > 0).all()
