"""The report on a search: rows for every run, and a page that needs nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from rankloop import simulation
from rankloop.ranges import Between, OneOf
from rankloop.simulation import Tuning, report
from tests.simulation.dial import Dial, world


@pytest.fixture(scope="module")
def found() -> Tuning:
    ranges = {"dial": Between(0.01, 1000.0), "other": OneOf("<plain>", (0.5, 0.25), None)}
    return simulation.tune(Dial(), world(), rounds=50, ranges=ranges, settings=8, final_runs=3)


def test_the_rows_are_the_runs(found: Tuning) -> None:
    rows = report.tuning_rows(found)
    assert len(rows) == len(found.runs)
    assert rows.columns == [
        "setting",
        "phase",
        "rung",
        "seed",
        "dial",
        "other",
        "value",
        "regret",
        "explored",
    ]
    given = rows.filter(pl.col("setting") == 0, pl.col("phase") == "evaluation")
    assert given["value"].to_list() == found.values(0, final=True)
    assert set(given["dial"]) == {"0.1"}


def test_the_same_search_gives_the_same_files_and_the_page_fetches_nothing(
    found: Tuning, tmp_path: Path
) -> None:
    pages = [report.write_tuning_report(found, tmp_path / name) for name in ("one", "two")]
    names = {"runs.parquet", "report.html"}
    assert {path.name for path in pages[0].parent.iterdir()} == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    page = pages[0].read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!#)|url\((?!#)', page)
    assert "&lt;plain&gt;" in page
    assert "<plain>" not in page
    assert f"dial={found.arguments['dial']!r}" in page
