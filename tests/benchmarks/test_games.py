"""The benchmark of the analyser measures what it says."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks import games
from benchmarks.timing import Effort

TINY = Effort(slice_seconds=0.001, laps=1)


def test_both_routes_are_timed_and_growth_is_told() -> None:
    steps: list[str] = []
    found = games.measure(TINY, steps.append, measures=("sum_loss", "ndcg"), cells=(2, 3), structure=(4, 8))
    assert [(row.measure, row.route, list(row.seconds)) for row in found] == [
        ("sum_loss", "cells", [2, 3]),
        ("sum_loss", "structure", [4, 8]),
        ("ndcg", "cells", [2, 3]),
        ("ndcg", "structure", [4, 8]),
    ]
    assert len(steps) == 8
    assert all(seconds > 0 for row in found for seconds in row.seconds.values())
    console = Console(file=io.StringIO(), width=100)
    for part in games.tables(found):
        console.print(part)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "exponent of m" in told
    assert "m = 8" in told


def test_the_exponent_is_that_of_a_power() -> None:
    assert games.Classified("x", "structure", {2: 0.04, 4: 0.16, 8: 0.64}).exponent == pytest.approx(2)
