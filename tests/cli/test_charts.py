"""Runs drawn in the terminal: the braille chart, the live view of `rankloop simulate`, and the demo."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from rankloop import environments, rankers, simulation
from rankloop.cli.charts import Line, how_often, line_chart, play_demo, watched
from rankloop.cli.library import simulate_one


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


def _seen(environment: str, *, rounds: int, ranker: str = "Uniform", **settings: Any) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, color_system=None)
    simulate_one(
        ranker=ranker, environment=environment, rounds=rounds, seed=1, settings=settings, console=console
    )
    return out.getvalue()


def test_a_watcher_sees_reward_exploration_and_the_list() -> None:
    seen = _seen("yandex-periodic-1", rounds=20_000, ranker="Fixed", order=[3, 1, 0, 2, 9])
    last = seen[seen.rindex("20,000 of 20,000 rounds") :]
    reward = environments.named("yandex").clicks[0, np.arange(5), [3, 1, 0, 2, 9]].sum()
    assert f"average reward {reward:.4f}" in last
    assert "exploring 0.0%" in last
    assert re.search(r"position +1 +2 +3 +4 +5 *\n *estimated best item +3 +1 +0 +2 +9 *\n", last)
    assert re.search(r"shown there( +100%){5}", last)
    for line in ("best of each phase", "best of all"):
        assert line in last


def test_a_watcher_sees_how_much_it_explores() -> None:
    seen = _seen("gap-0.03", rounds=2_000)
    share = float(re.findall(r"exploring ([\d.]+)%", seen)[-1])
    assert share == pytest.approx(90, abs=8)


def test_watching_changes_nothing() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    one, two = (
        simulate_one(ranker="Uniform", environment="yandex-drifting", rounds=30_000, seed=1, console=seen)
        for seen in (console, None)
    )
    del one["seconds"], two["seconds"]
    assert one == two


def test_relevance_keeps_its_chart_of_regret() -> None:
    assert "average dcg regret" in _seen("bernoulli", rounds=2_000)


def test_one_round_can_be_watched() -> None:
    assert "1 of 1 rounds" in _seen("yandex", rounds=1)
    assert "1 of 1 rounds" in _seen("bernoulli", rounds=1)


def test_long_lists_are_shown_from_the_top() -> None:
    environment = environments.PositionBased(attraction=np.full(40, 0.5), examination=np.full(30, 0.5))
    player = rankers.Uniform(n_items=40, n_positions=30)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, color_system=None)
    with watched(player, environment, rounds=500, console=console) as watch:
        simulation.play(player, environment, rounds=500, seed=1, watch=watch)
    assert "18 more positions" in out.getvalue()


def test_nobody_looks_where_there_is_no_terminal() -> None:
    environment, player = environments.named("yandex"), rankers.Uniform(n_items=10, n_positions=5)
    for console in (None, Console(file=io.StringIO())):
        with watched(player, environment, rounds=10, console=console) as watch:
            assert watch is None


def test_how_often_is_the_share_of_lists() -> None:
    shares = how_often(rankers.Uniform(n_items=4), np.random.default_rng(1))
    assert shares.shape == (4,)
    assert shares == pytest.approx(0.25, abs=0.2)
