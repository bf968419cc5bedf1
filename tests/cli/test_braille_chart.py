from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from rankloop.cli.braille_chart import Line, line_chart
from rankloop.cli.demo import play_demo


def rows_of(*lines: Line, width: int = 20, height: int = 6) -> list[str]:
    chart = line_chart(lines, x_range=(1, 1000), y_range=(0.0, 1.0), width=width, height=height)
    return chart.plain.split("\n")


def test_a_flat_line_fills_one_row() -> None:
    rows = rows_of(Line("top", "red", [1, 1000], [1.0, 1.0]))
    assert rows[0] == "  1.00 ┤" + "⠉" * 20 + " top"
    assert all("⠉" not in row for row in rows[1:])


def test_labels_of_lines_that_meet_stand_on_rows_of_their_own() -> None:
    lines = [Line(name, "red", [1, 1000], [1.0, 0.5]) for name in ("a", "b", "c")]
    labelled = [row[-1] for row in rows_of(*lines) if row[-2:-1] == " "]
    assert labelled == ["a", "b", "c"]


def test_powers_of_ten_are_marked() -> None:
    rows = rows_of(Line("a", "red", [1, 1000], [0.0, 1.0]), width=30)
    assert rows[-2].count("┬") == 4
    assert rows[-1].split() == ["1", "10", "100", "1,000"]


def test_points_outside_the_chart_and_lines_without_points_do_no_harm() -> None:
    rows = rows_of(
        Line("far", "red", [0.5, 10, 5000], [0.5, 7.0, 0.5]),
        Line("gone", "red", [], []),
        Line("unknown", "red", [1.0], [math.nan]),
    )
    assert "far" in rows[0]
    assert not any("gone" in row or "unknown" in row for row in rows)


def test_too_small_a_chart_is_refused() -> None:
    with pytest.raises(ValueError, match="got 1 and 6"):
        rows_of(width=1)


def test_the_demo_moves_on_a_terminal_and_is_plain_elsewhere() -> None:
    live, plain = io.StringIO(), io.StringIO()
    console = Console(file=live, force_terminal=True, width=100)
    players = play_demo(console=console, rounds=3_000, seconds=0.0)
    again = play_demo(console=Console(file=plain, width=100), rounds=3_000)
    # Looking at what a ranker would show now does not disturb the game.
    assert [player.average for player in players] == [player.average for player in again]
    assert "3,000" in live.getvalue()
    assert "\x1b" in live.getvalue()
    lines = plain.getvalue().splitlines()
    assert "\x1b" not in plain.getvalue()
    assert lines[-1].startswith("average regret after     3,000 users: TopFTRL 0.")
    uniform, ftpl, top1 = (player.average[-1] for player in players)
    assert ftpl < top1 < uniform
