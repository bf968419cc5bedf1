"""The benchmark of the player measures what it says."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks import play_games


def test_regret_and_its_exponent_are_told() -> None:
    (found,) = play_games.measure(["apple tasting"], rounds=10_000, runs=1, shares=(0.25, 0.06))
    assert (found.game, found.class_, list(found.regret)) == ("apple tasting", "easy", [1_000, 10_000])
    assert 0 < found.regret[1_000] < found.regret[10_000] < found.bound
    console = Console(file=io.StringIO(), width=140)
    console.print(play_games.table([found]))
    assert f"{found.exponent:.2f}" in console.file.getvalue()  # type: ignore[attr-defined]


def test_exponents() -> None:
    row = play_games.Grown("a game", "easy", {1_000: 10.0, 10_000: 31.6, 100_000: 100.0}, 200.0, 1.0)
    assert row.exponent == pytest.approx(0.5)


def test_unknown_games_are_refused() -> None:
    with pytest.raises(SystemExit):
        play_games.main(["no such game"])
