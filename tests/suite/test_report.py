"""Scores by hand, the bootstrap against a slow version, and the page: one file, the same bytes again."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rankloop.suite import Entry, Submission, run
from rankloop.suite.report import (
    RESAMPLES,
    SEED,
    Score,
    capability_scores,
    interquartile_mean,
    merged,
    score,
    share_of_way,
    write_report,
)
from tests.suite import small


@pytest.fixture(scope="module")
def two() -> list[Submission]:
    clicks = run(small.ENTRIES, worlds=small.WORLDS, seeds=2, progress=False)
    relevance = run([Entry("FTPL")], worlds=small.WORLDS, seeds=2, progress=False)
    return [clicks, relevance]


def test_one_page_has_charts_boards_and_reasons(two: list[Submission], tmp_path: Path) -> None:
    page = write_report(two, tmp_path)
    text = page.read_text()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "suite-clicks.png",
        "suite-relevance.png",
        "suite.html",
    ]
    assert text.count("<svg") == 2
    assert not re.search(r'(src|href)="(?!#)', text), "nothing is loaded from elsewhere"
    for word in (
        "FTRLPBM",
        "CascadeKLUCB",
        "FTPL",
        "Clicks on fixed items",
        "n/a",
        "learns from clicks",
        "Submission 2",
    ):
        assert word in text, word
    again = tmp_path / "again"
    assert write_report(two, again).read_bytes() == page.read_bytes()
    assert (again / "suite-clicks.png").read_bytes() == (tmp_path / "suite-clicks.png").read_bytes()


def test_the_best_of_a_column_is_bold(two: list[Submission], tmp_path: Path) -> None:
    text = write_report(two[:1], tmp_path).read_text()
    assert text.count("<b>") == 3, "noise, reversal, delay"


def test_submissions_of_two_kinds_do_not_share_a_page(two: list[Submission]) -> None:
    other = Submission(two[1].results, two[1].provenance | {"version": "full"})
    with pytest.raises(ValueError, match="submissions must be of one kind, got suite 1, full"):
        merged([two[0], other])
    with pytest.raises(ValueError, match="at least one"):
        merged([])
    assert merged([two[0], two[0]]).equals(two[0].results), "the same ranker counts once"


def test_a_score_is_the_share_of_the_way() -> None:
    assert share_of_way(0.65, 0.5, 0.8) == pytest.approx(0.5)
    assert share_of_way([0.5, 0.8, 0.35], [0.5] * 3, [0.8] * 3) == pytest.approx([0.0, 1.0, -0.5])
    with pytest.raises(ValueError, match="best must be above random"):
        share_of_way(0.5, 0.8, 0.8)


def test_the_interquartile_mean_by_hand() -> None:
    assert interquartile_mean([5.0]) == 5.0
    assert interquartile_mean([1.0, 2.0, 9.0]) == 4.0, "of three values a quarter is none"
    assert interquartile_mean([100.0, 1.0, 2.0, -7.0]) == 1.5
    assert interquartile_mean([0, 0, 1, 2, 3, 4, 90, 95]) == 2.5
    assert interquartile_mean([0, 0, 1, 2, 3, 4, 5, 90, 95]) == 3.0
    for bad in ([], [[1.0]], ["a"]):
        with pytest.raises(ValueError, match="values must be"):
            interquartile_mean(bad)


def test_the_bootstrap_is_that_of_a_slow_version() -> None:
    worlds = {"a": [0.1, 0.5, 0.9], "b": [0.2, 0.2, 0.8], "c": [-1.0, 0.0, 1.0]}
    rng = np.random.default_rng(SEED)
    drawn = {name: rng.integers(0, 3, (RESAMPLES, 3)).tolist() for name in worlds}
    means = []
    for one in range(RESAMPLES):
        pooled = sorted(values[place] for name, values in worlds.items() for place in drawn[name][one])
        middle = pooled[2:7]  # of nine values a quarter is two
        means.append(math.fsum(middle) / 5)
    means.sort()

    def quantile(share: float) -> float:
        place = share * (RESAMPLES - 1)
        low = math.floor(place)
        return means[low] + (place - low) * (means[low + 1] - means[low])

    found = score(worlds)
    assert found.value == pytest.approx(math.fsum([0.1, 0.2, 0.2, 0.5, 0.8]) / 5)
    assert (found.low, found.high) == pytest.approx((quantile(0.025), quantile(0.975)))
    assert found == score(worlds), "the same results give the same interval"
    pooled_draws = score({"all": [value for values in worlds.values() for value in values]})
    assert pooled_draws != found, "strata matter: drawing from all worlds together is another interval"


def test_strata_keep_every_world() -> None:
    assert score({"a": [0.0] * 3, "b": [1.0] * 3}) == Score(0.5, 0.5, 0.5), (
        "no draw can have more of one world"
    )
    with pytest.raises(ValueError, match="by_world must have at least one world"):
        score({})
    with pytest.raises(ValueError, match="confidence must be"):
        score({"a": [1.0]}, confidence=1.0)


def test_capabilities_pool_the_worlds_that_were_played() -> None:
    rows = pl.DataFrame(
        {
            "ranker": ["A"] * 5,
            "setting": ["clicks"] * 5,
            "capability": ["noise"] * 4 + ["drift"],
            "world": ["n1", "n1", "n2", "n2", "d"],
            "seed": [0, 1, 0, 1, None],
            "score": [0.0, 0.4, 0.6, 1.0, None],
        }
    )
    found = capability_scores(rows).to_dicts()
    assert found[0].items() >= {"capability": "noise", "score": 0.5, "worlds": 2, "of": 2, "runs": 4}.items()
    assert len(found) == 1
