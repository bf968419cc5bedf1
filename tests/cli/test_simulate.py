"""One ranker against one environment by name: what is told of it, and what a watcher sees meanwhile."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from rankloop import cli, environments, rankers, simulation
from rankloop.cli.live_view import how_often, watched
from rankloop.cli.simulate import make_ranker, simulate_one

PERIODIC: dict[str, Any] = {"environment": "yandex-periodic-1", "rounds": 250_000, "seed": 1}


def test_clicks_are_told_with_both_regrets() -> None:
    told = simulate_one(ranker="Fixed", settings={"order": [0, 1, 2, 3, 4]}, **PERIODIC)
    people = environments.named("yandex-periodic-1")
    here, there = (people.clicks[world, np.arange(5), np.arange(5)].sum() for world in (0, 1))
    best = people.params.best[0]
    assert (told["measure"], told["items"], told["positions"]) == ("clicks", 10, 5)
    assert told["mean_value"] == pytest.approx((150_000 * here + 100_000 * there) / 250_000)
    assert told["total_phase_regret"] == pytest.approx(100_000 * (best - there))
    assert told["average_phase_regret"] == pytest.approx(0.4 * (best - there))
    # Of all fixed lists, the items that are best first beat the others where their phase came twice.
    assert 0 <= told["total_regret"] < told["total_phase_regret"]


def test_relevance_is_told_without_phases() -> None:
    told = simulate_one(ranker="FTPL", environment="bernoulli", rounds=100, seed=1)
    assert (told["items"], told["positions"], told["measure"]) == (10, 10, "dcg")
    assert not any("phase" in key for key in told)


def test_what_a_ranker_counts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted:
        def __init__(self, trace: Any) -> None:
            self.trace = trace
            self.counters = {"solver_fallbacks": 3}

        def __getattr__(self, name: str) -> Any:
            return getattr(self.trace, name)

    play = simulation.play
    monkeypatch.setattr(simulation, "play", lambda *args, **kwargs: Counted(play(*args, **kwargs)))
    told = simulate_one(ranker="Uniform", environment="yandex", rounds=10, seed=1)
    assert told["solver_fallbacks"] == 3


def test_a_ranker_gets_the_positions_of_the_world() -> None:
    people = environments.named("yandex")
    ranker = make_ranker("Uniform", people=people, rounds=10, settings={})
    assert (ranker.n_items, ranker.n_positions) == (10, 5)
    with pytest.raises(ValueError, match="Uniform has no argument 'k'; it has n_items, n_positions"):
        make_ranker("Uniform", people=people, rounds=10, settings={"k": 1})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--environment", "yandex"], "ranker TopFTRL learns from relevance, .* reveals clicks"),
        (["--environment", "yandex", "--items", "7"], "n_items must be 10 or left out: .*got 7"),
        (["--environment", "yandex", "--measure", "dcg"], "measure must be 'clicks' or left out: .*'dcg'"),
    ],
)
def test_what_does_not_fit_is_answered_in_words(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(cli.app, ["simulate", *arguments])
    assert result.exit_code == 2
    assert re.match(f"error: .*{told}", result.stderr)


def test_the_command_plays_a_world_of_clicks() -> None:
    command = ["simulate", "--ranker", "Uniform", "--environment", "gap-0.03-corrupted", "--rounds", "1e3"]
    result = CliRunner().invoke(cli.app, [*command, "--json"])
    told = json.loads(result.stdout)
    assert (told["rounds"], told["positions"], told["exploration_share"]) == (1000, 5, 1.0)
    assert told["average_phase_regret"] >= told["average_regret"] > 0
    plain = CliRunner().invoke(cli.app, command)
    assert re.search(r"^average phase regret +0\.\d{4}$", plain.stdout, re.M)
    assert "\x1b" not in plain.stdout
    assert plain.stderr == ""


# The live view


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
    people = environments.PositionBased(attraction=np.full(40, 0.5), examination=np.full(30, 0.5))
    player = rankers.Uniform(n_items=40, n_positions=30)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, color_system=None)
    with watched(player, people, rounds=500, console=console) as watch:
        simulation.play(player, people, rounds=500, seed=1, watch=watch)
    assert "18 more positions" in out.getvalue()


def test_nobody_looks_where_there_is_no_terminal() -> None:
    people, player = environments.named("yandex"), rankers.Uniform(n_items=10, n_positions=5)
    for console in (None, Console(file=io.StringIO())):
        with watched(player, people, rounds=10, console=console) as watch:
            assert watch is None


def test_how_often_is_the_share_of_lists() -> None:
    shares = how_often(rankers.Uniform(n_items=4), np.random.default_rng(1))
    assert shares.shape == (4,)
    assert shares == pytest.approx(0.25, abs=0.2)
