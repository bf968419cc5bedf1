"""Runs drawn in the terminal: a curve, and the live view of `rankloop simulate`."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from rankloop import environments, rankers, simulation
from rankloop.cli.charts import chart, how_often, watched
from rankloop.cli.library import simulate_one


def rows_of(x: list[int], y: list[float], *, until: int = 1000) -> list[str]:
    drawn = chart(np.array(x), np.array(y), until=until, y_range=(0.0, 1.0), width=20, height=6)
    return drawn.plain.split("\n")


def test_a_curve_fills_the_columns_below_it() -> None:
    rows = rows_of([1, 1000], [1.0, 1.0])
    assert rows[:6] == ["  1.00 ┤" + "█" * 20, *["       │" + "█" * 20] * 4, "  0.00 ┤" + "█" * 20]
    assert rows[6].split() == ["1", "1,000"]
    half = rows_of([1, 1000], [0.25, 0.25])
    assert [row[8:] for row in half[:6]] == ["", "", "", "", "▄" * 20, "█" * 20]


def test_what_is_not_played_yet_and_what_is_outside_is_not_drawn() -> None:
    rows = rows_of([1, 31], [7.0, -7.0])
    assert rows[0] == "  1.00 ┤█████"
    assert all(len(row) < 20 for row in rows[:6])


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
    assert re.search(r"the best list of each phase has \d\.\d{4}, of all \d\.\d{4}", last)


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
