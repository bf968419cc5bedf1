"""One short run of each benchmark, and that its plain versions take our steps: it compares like with like."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import (
    catalogue,
    click_models,
    clicks,
    documents,
    fixed_items,
    games,
    logs,
    numpy_pdgd,
    numpy_rtopkf,
    play_games,
    scipy_ftrl_pbm,
    startup,
)
from benchmarks.timing import Effort, race
from rankloop import data, environments, rankers
from rankloop.rankers.ftrl_pbm import frank_wolfe

TINY = Effort(slice_seconds=0.001, laps=1)
D = 5
DOCUMENTS = data.synthetic_letor(n_queries=40, n_features=D, seed=3, list_length=(1, 12))


# Each benchmark at its smallest, and words that its tables must have.
SMALL: dict[str, tuple[Any, dict[str, Any], str]] = {
    "fixed_items": (fixed_items, {"sizes": (10,)}, "aim 50x"),
    "documents": (documents, {"sets": lambda: {"made up": DOCUMENTS}, "clicked": [("tiny", (8, D))]}, "tiny"),
    "clicks": (clicks, {"sizes": ((10, 5),), "names": ("TopRank",)}, "aim 8,000x"),
    "catalogue": (
        catalogue,
        {"sizes": (12,), "timed": {"RankedExp3": catalogue.entries(quick=True)["RankedExp3"]}},
        "RankedExp3",
    ),
    "logs": (logs, {"rows": (10_000,)}, "10,000"),
    "games": (games, {"measures": ("ndcg",), "cells": (2, 3), "structure": (4, 8)}, "exponent of m"),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_short_run_fills_its_table(name: str) -> None:
    module, smaller, words = SMALL[name]
    console = Console(width=160, file=io.StringIO())
    for part in module.tables(module.measure(TINY, lambda what: None, **smaller)):
        console.print(part)
    assert words in console.file.getvalue()  # type: ignore[attr-defined]


def test_the_command_prints_writes_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [startup.StartUp("python itself", 0.02, 0.01, None), startup.StartUp("a round", 2.0, 0.9, 1.0)]
    rounds = [
        catalogue.Rounds("PBMTS", "n", {100: 1e-5, 100_000: 1e-2}, {100: 800, 100_000: 800_000}),
        catalogue.Rounds(catalogue.BARE, "1", {100: 2e-7, 100_000: 2e-7}, {}),
    ]
    monkeypatch.setattr(startup, "measure", lambda effort, tell: found)
    monkeypatch.setattr(catalogue, "measure", lambda effort, tell: rounds)
    command.main(
        ["startup", "catalogue", "--json", str(tmp_path / "numbers.json"), "--pictures", str(tmp_path)]
    )
    assert "missed" in capsys.readouterr().out
    assert json.loads((tmp_path / "numbers.json").read_text())["startup"][1]["seconds"] == 2.0
    assert (tmp_path / "catalogue-growth.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit):
        command.main(["sped"])
    assert "fixed-items, documents, clicks, catalogue" in capsys.readouterr().err


def test_contenders_take_turns_and_keep_to_the_limit() -> None:
    played: list[tuple[str, int]] = []

    def contender(name: str) -> Callable[[int], Callable[[], object]]:
        return lambda rounds: lambda: played.append((name, rounds))

    effort = Effort(slice_seconds=9.0, laps=3)
    race("", {"a": contender("a"), "b": contender("b")}, effort=effort, most_rounds=50)
    assert played[-6:] == [("a", 50), ("b", 50)] * 3
    assert max(rounds for _, rounds in played) == 50


def test_regret_of_the_player_and_its_exponent() -> None:
    (found,) = play_games.measure(["apple tasting"], rounds=10_000, runs=1, shares=(0.25, 0.06))
    assert 0 < found.regret[1_000] < found.regret[10_000] < found.bound


def test_other_packages_of_click_models_that_are_absent_are_named() -> None:
    (line,) = click_models.beside_clax(click_models.pages(5), "/no/such/python")
    assert line == "CLAX skipped: /no/such/python cannot import it (pip install clax-models)"


@pytest.mark.parametrize("name", [name for name, one in documents.LEARNERS.items() if one.plain is not None])
def test_numpy_takes_the_steps_of_rtopkf(name: str) -> None:
    learner = documents.LEARNERS[name]
    stream = environments.QueryStream(DOCUMENTS, measure=documents.MEASURE)
    ours, queries = learner.ours(D), numpy_rtopkf.Queries.of(stream)
    rng = np.random.default_rng(5)
    plain = documents.plain(learner, queries, rng)
    plain.w[:] = ours.state.w[:] = rng.normal(size=D)  # no two documents with equal scores: one greedy order
    start = ours.state.w.copy()
    for query in queries.each * 3:
        shown = ours.rank(query.X, rng=rng)
        s = query.X @ plain.w
        gamma = plain.at(plain.exploration) if plain.exploration else 0.0
        plain.learn(numpy_rtopkf.Seen(query.X, s, np.argsort(-s), shown.items, gamma, query.R))
        ours.learn(shown, query.R[shown.items][: ours.feedback.length(len(query.R))])
        np.testing.assert_allclose(plain.w, ours.state.w, rtol=1e-9, atol=1e-12)
    assert np.abs(start - plain.w).max() > 1e-3


def test_numpy_takes_the_steps_of_pdgd() -> None:
    rng = np.random.default_rng(1)
    ours = rankers.PDGD(n_features=4, n_positions=5, learning_rate=0.5)
    plain = numpy_pdgd.PDGD(n_features=4, n_positions=5, learning_rate=0.5, rng=rng)
    plain.w[:] = ours.state.w[:] = rng.normal(size=4)
    for _ in range(60):
        X = rng.random((int(rng.integers(1, 12)), 4))
        shown = ours.rank(X, rng=rng)
        first = shown.items[: min(5, len(X))]
        hits = rng.integers(0, 2, len(first)).astype(np.float64)
        plain.learn(X, first, X @ plain.w, hits)
        ours.learn(shown, hits)
        np.testing.assert_allclose(plain.w, ours.state.w, rtol=1e-7, atol=1e-10)


def test_scipy_takes_the_steps_of_frank_wolfe() -> None:
    plain = scipy_ftrl_pbm.FTRLPBM(n_items=6, n_positions=3, K=25, rng=np.random.default_rng(1))
    plain.play(clicks.users_for(6, 3).clicks[0].T, 40)
    expected = frank_wolfe(plain.x.T.copy(), plain.L_hat.T.copy(), 1 / (2 * np.sqrt(plain.t)), 25)
    np.testing.assert_allclose(plain.solve().T, expected, atol=1e-12)
