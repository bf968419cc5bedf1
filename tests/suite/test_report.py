"""The page: one file, everybody on it, the same bytes again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rankloop.suite import Entry, Submission, run
from rankloop.suite.report import merged, write_report
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
