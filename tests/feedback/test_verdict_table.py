"""What the how-to says of verdicts: how often they are wrong, and how many searches they take; in short."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "tables"))

import verdict

from rankloop.feedback.anytime import Tally
from rankloop.feedback.interleaving import TeamDraft


def test_verdicts_on_rankings_that_are_alike_are_rarely_wrong() -> None:
    # 5 % of 1,000 runs, and three standard deviations; a look after every 100 of 4,000 searches.
    found = verdict.told(0.2, 0.2, runs=1_000, searches=4_000, seed=3)
    assert (found["sign"] <= 4_000).mean() <= 0.05 + 0.021
    assert (found["bernstein"] <= 4_000).mean() <= 0.05
    # The searches of a session that agree are no evidence each: counted so, most verdicts come to nothing.
    sessions = verdict.told(0.2, 0.2, runs=500, searches=4_000, seed=3, session=5)
    assert (sessions["sign"] <= 4_000).mean() > 0.5
    units = verdict.told(0.2, 0.2, runs=500, searches=4_000, seed=3, session=5, units=True)
    assert (units["sign"] <= 4_000).mean() <= 0.05 + 0.03


def test_a_variant_is_found_with_a_tenth_of_the_searches_and_an_unrelated_ranking_is_not() -> None:
    found = verdict.searches_by_pair(runs=300)
    variant, unrelated = found["a variant"], found["unrelated"]
    for test in ("team draft", "sign", "bernstein"):
        assert variant[test] < variant["A/B"] / 10
    assert variant["team draft"] < variant["whole"] / 3
    assert unrelated["A/B"] / 10 < unrelated["sign"] < unrelated["A/B"]


def test_the_chances_of_the_table_are_those_of_the_library() -> None:
    rng = np.random.default_rng(6)
    liked, _ = verdict.world(1)
    today, new = np.arange(10), np.array([0, 1, 3, 2, 4, 5, 7, 6, 8, 9])
    win, lose = verdict.preferences(liked[:1], today[None], new[None])
    draws, signs = 4_000, []
    for _ in range(draws):
        shown = TeamDraft().show([today, new], rng=rng)
        clicks = rng.random(10) < verdict.LOOKED * liked[0, shown.items]
        signs.append(shown.preferences(clicks)[1, 0])
    for chance, sign in ((win, 1), (lose, -1)):
        deviation = np.sqrt(chance * (1 - chance) / draws)
        assert signs.count(sign) / draws == pytest.approx(chance, abs=4 * deviation)


def test_the_thresholds_of_the_table_are_those_of_a_tally() -> None:
    leads = verdict.sign_thresholds(400)
    for decided in (10, 57, 100, 399):
        tally = Tally(2)
        for lead, wins in ((int(leads[decided]), True), (int(leads[decided]) - 2, False)):
            if lead > decided:
                continue
            tally.lists[:] = decided
            tally.wins[0, 1], tally.wins[1, 0] = (decided + lead) // 2, (decided - lead) // 2
            assert (tally.winner() == 0) is wins
