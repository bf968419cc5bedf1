"""The table of many items has a row for each ranker, the exponents of its curves, and the sizes that are too large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import bare_clicks, catalogue, catalogue_rankers
from benchmarks.timing import Effort
from tests.benchmarks.printed import printed

TINY = Effort(slice_seconds=0.001, laps=1)


def _rows() -> list[catalogue.Rounds]:
    held = {100: 800, 100_000: 800_000}
    return [
        catalogue.Rounds("FTRLPBM, after 5,000", {100: 2e-6, 100_000: 2e-6}, "n", held),
        catalogue.Rounds("PBMTS", {100: 1e-5, 100_000: 1e-2}, "n", held),
        catalogue.Rounds(
            "TopRank, first", {100: 1e-6, 1_000: 5e-7, 10_000: 1e-3}, "n", {10_000: 410_000_000}
        ),
        catalogue.Rounds(catalogue.BARE, {100: 2e-7, 1_000: 2e-7, 10_000: 2e-7, 100_000: 2e-7}, "1", {}),
    ]


def test_every_row_has_its_ranker_and_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {
        name: entry
        for name, entry in catalogue_rankers.entries(quick=True).items()
        if name in ("FTRLPBM, first 1,000", "RankedExp3", "RTop1F")
    }
    monkeypatch.setattr(catalogue, "entries", lambda *, quick: some)
    found = catalogue.measure(TINY, lambda what: None, sizes=(12,))
    assert [one.name for one in found] == [*some, catalogue.BARE]
    assert all(0 < one.seconds[12] < 1 for one in found)
    assert found[1].bytes_held[12] >= 8 * 6 * 12, "a weight for each position and item"


def test_rankers_that_count_have_seen_every_item() -> None:
    for name in ("PBMPIE, known", "PBMTS", "CascadeKLUCB"):
        ranker: Any = catalogue_rankers.entries(quick=True)[name].make(12)
        assert (ranker.state.N == catalogue_rankers.LOOKS).all()


def test_exponents_verdicts_and_sizes() -> None:
    text = printed(catalogue.tables(_rows()))
    exponents = {
        line.split("│")[1].strip(): line.split("│")[6].strip() for line in text.splitlines() if "│" in line
    }
    assert exponents["FTRLPBM, after 5,000"] == "0.00"
    assert exponents["PBMTS"] == "1.00"
    assert "below a millisecond a round: FTRLPBM, after 5,000.\n" in text
    assert "A millisecond or more: PBMTS.\n" in text
    assert "Not for so many: TopRank, first (10,000)." in text
    assert "0.41 GB" in text
    lines = [line for line in text.splitlines() if "times the bare round" in line]
    assert [line.split()[0] for line in lines] == ["met", "missed"]


def test_a_picture_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "measure", lambda effort, tell: _rows())
    command.main(["catalogue", "--pictures", str(tmp_path)])
    assert (tmp_path / "catalogue-growth.png").read_bytes().startswith(b"\x89PNG")


def test_the_bare_round_draws_a_list_and_clicks() -> None:
    order, clicks = np.arange(5), np.zeros(5, np.int64)
    attraction = np.array([1.0, 0.0, 1.0, 1.0, 1.0])
    bare_clicks.draw_and_click(3_000, order, attraction, np.array([1.0, 0.5]), clicks)
    assert sorted(order) == list(range(5))
    assert clicks[1] == 0
    # 1 / 5 at each position, looked at with 1 and 1 / 2: 900 clicks on each, give or take five standard deviations
    assert (np.abs(clicks[[0, 2, 3, 4]] - 900) < 5 * 25).all()
