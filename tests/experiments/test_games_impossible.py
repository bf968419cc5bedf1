"""Who plays the hopeless games."""

from __future__ import annotations

from rankloop import rankers
from rankloop.experiments import games_impossible


def test_every_ranker_that_hears_of_the_top_is_tried() -> None:
    for case in games_impossible.CASES:
        found = set(games_impossible.learners(case))
        assert {"FeedExp3", "Fixed", "PrecisionFTRL", "RTop1F", "Uniform"} <= found <= set(rankers.__all__)
        assert not {"FTPL", "BestInHindsight", "RTopKF"} & found
