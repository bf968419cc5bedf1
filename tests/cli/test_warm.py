"""`rankloop warm`: what it compiles is what calls and simulations use, and what is already there is not made again."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from rankloop import cli, environments, rankers
from rankloop.cli.warm import _fitting, compile_ranker

runner = CliRunner()


def test_it_says_what_is_ready_and_where() -> None:
    done = runner.invoke(cli.app, ["warm", "Uniform", "--calls", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    assert "2 kernels and loops for 1 ranker(s) in " in done.output
    assert "kernels-" in done.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["warm", "NoSuch"], "ranker must be one of "),
        (["warm", "Uniform", "--jobs", "0"], "jobs must be a whole number of at least 1, got 0"),
    ],
)
def test_mistakes_end_in_a_sentence(words: list[str], sentence: str) -> None:
    done = runner.invoke(cli.app, words)
    assert done.exit_code == 2
    assert sentence in done.output


def test_loops_are_made_for_the_worlds_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    people = environments.users.bernoulli([0.2, 0.9, 0.5])
    worlds = [environments.FixedItems(people, measure="dcg"), environments.named("yandex")]
    monkeypatch.setattr(sys.modules["rankloop.cli.warm"], "_worlds", lambda: worlds)
    assert compile_ranker("FTPL", True) == 3  # one to rank, and two to learn, for two kinds of measures
    assert compile_ranker("FTPL", False) > 3  # FTPL does not learn from clicks


def test_a_ranker_is_made_for_the_size_of_the_world() -> None:
    world = environments.FixedItems([[1, 0, 1]], measure="dcg")
    made: Any = _fitting(rankers.RTop1F(n_items=9, horizon=500), world)
    assert (made.n_items, made.horizon) == (3, 500)
    clicked = environments.named("yandex")
    made = _fitting(rankers.FTRLPBM(n_items=4, n_positions=2, estimator="mean"), clicked)
    assert (made.n_items, made.n_positions) == (clicked.n_items, clicked.n_positions)
