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
    duels,
    features,
    first_call,
    games,
    growth,
    memory,
    numpy_pdgd,
    numpy_rtopkf,
    oltr,
    pbm,
    play_games,
    rivals,
    scipy_ftrl_pbm,
    sparse,
    speed,
    startup,
    top,
    topk,
)
from benchmarks.catalogue_rankers import entries
from benchmarks.numpy_mgd import PlainMGD
from benchmarks.timing import Effort, race
from rankloop import data, environments, rankers
from rankloop.rankers.ftrl_pbm import frank_wolfe
from tests.rankers.test_dueling import tried

TINY = Effort(slice_seconds=0.001, laps=1)
D = 5
DOCUMENTS = data.synthetic_letor(n_queries=40, n_features=D, seed=3, list_length=(1, 12))


def _in_words(parts: Any) -> str:
    console = Console(width=140, file=io.StringIO())
    for part in parts:
        console.print(part)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


# Each benchmark at its smallest, what to shrink for it, and words that its table must have.
SMALL: dict[str, tuple[Any, Callable[[Any, Any], Any], dict[str, Any], str]] = {
    "speed": (speed, lambda effort, tell: speed.measure(effort, tell, sizes=(10,)), {}, "aim 50x"),
    "growth": (
        growth,
        lambda effort, tell: growth.measure(effort, tell, sizes=(10, 100, 300)),
        {},
        "m log m",
    ),
    "top": (top, lambda effort, tell: top.measure(effort, tell, sizes=(10,)), {}, "TopFTRL"),
    "topk": (
        topk,
        topk.measure,
        {"datasets": lambda: ({"made up": DOCUMENTS}, [topk.Missing("nothing else")]), "DEFAULTS": {}},
        "nothing else",
    ),
    "memory": (memory, memory.measure, {"datasets": lambda: ({"made up": DOCUMENTS}, [])}, "made up"),
    "duels": (duels, duels.measure, {"RANKERS": {"DBGD": duels.RANKERS["DBGD"]}}, "DBGD"),
    "oltr": (oltr, lambda effort, tell: oltr.measure(effort, tell, sizes={"tiny": (8, D)}), {}, "tiny"),
    "sparse": (
        sparse,
        lambda effort, tell: sparse.measure(effort, tell, queries={"made up": DOCUMENTS}),
        {},
        "ListNet",
    ),
    "features": (features, features.measure, {"SIZES": (3,)}, "LinTSPBM"),
    "pbm": (
        pbm,
        lambda effort, tell: pbm.measure(effort, tell, sizes=((10, 5),), more=()),
        {"WARM_ROUNDS": 50, "SIZES": ((10, 5),)},
        "aim 8,000x",
    ),
    "rivals": (
        rivals,
        rivals.measure,
        {
            "RANKERS": {"RankedExp3": rivals.RANKERS["RankedExp3"]},
            "plan_seconds": lambda: 0.05,
            "planned": lambda rounds: rivals.Planned(rounds, 76, 7.6, 2.0),
        },
        "76 plans, 100 ms each",
    ),
    "catalogue": (
        catalogue,
        lambda effort, tell: catalogue.measure(effort, tell, sizes=(12,)),
        {"entries": lambda *, quick: {"RankedExp3": entries(quick=quick)["RankedExp3"]}},
        "RankedExp3",
    ),
    "games": (
        games,
        lambda effort, tell: games.measure(effort, tell, measures=("ndcg",), cells=(2, 3), structure=(4, 8)),
        {},
        "exponent of m",
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_short_run_fills_its_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, measure, smaller, words = SMALL[name]
    for attribute, value in smaller.items():
        monkeypatch.setattr(module, attribute, value)
    assert words in _in_words(module.tables(measure(TINY, lambda what: None)))


def test_the_command_prints_writes_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [startup.StartUp("python itself", 0.02, 0.01, None), startup.StartUp("a round", 2.0, 0.9, 1.0)]
    rounds = [
        catalogue.Rounds("PBMTS", {100: 1e-5, 100_000: 1e-2}, "n", {100: 800, 100_000: 800_000}),
        catalogue.Rounds(catalogue.BARE, {100: 2e-7, 100_000: 2e-7}, "1", {}),
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
    assert "speed, growth, catalogue, startup" in capsys.readouterr().err


def test_contenders_take_turns_and_keep_to_the_limit() -> None:
    played: list[tuple[str, int]] = []

    def contender(name: str) -> Callable[[int], Callable[[], object]]:
        return lambda rounds: lambda: played.append((name, rounds))

    race({"a": contender("a"), "b": contender("b")}, effort=Effort(slice_seconds=9.0, laps=3), most_rounds=50)
    assert played[-6:] == [("a", 50), ("b", 50)] * 3
    assert max(rounds for _, rounds in played) == 50


def test_the_first_call_is_timed_on_an_empty_folder_first(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each process adds a file, and they are counted after the first.
    code = """
import os, pathlib
folder = pathlib.Path(os.environ["NUMBA_CACHE_DIR"])
(folder / f"{len(list(folder.iterdir()))}.nbc").touch()
"""
    monkeypatch.setattr(first_call, "IMPORTS", "pass")
    (found,) = first_call.timed({"work": code}, lambda what: None)
    assert (found.what, found.functions) == ("work", 1)


def test_regret_of_the_player_and_its_exponent() -> None:
    (found,) = play_games.measure(["apple tasting"], rounds=10_000, runs=1, shares=(0.25, 0.06))
    assert 0 < found.regret[1_000] < found.regret[10_000] < found.bound
    assert f"{found.exponent:.2f}" in _in_words([play_games.table([found])])


def test_other_packages_of_click_models_that_are_absent_are_named() -> None:
    (line,) = click_models.beside_clax(click_models.pages(5), "/no/such/python")
    assert line == "CLAX skipped: /no/such/python cannot import it (pip install clax-models)"


@pytest.mark.parametrize("name", topk.LEARNERS)
def test_numpy_takes_the_steps_of_rtopkf(name: str) -> None:
    learner = topk.LEARNERS[name]
    stream = environments.QueryStream(DOCUMENTS, measure=topk.MEASURE)
    ours, queries = learner.ours(D), numpy_rtopkf.Queries.of(stream)
    rng = np.random.default_rng(5)
    plain = topk.plain(learner, queries, rng)
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


def test_numpy_takes_the_steps_of_mgd() -> None:
    ours = rankers.MGD(n_features=D, n_candidates=9, n_positions=4)
    rng = np.random.default_rng(1)
    plain = PlainMGD(n_features=D, n_candidates=9, rng=rng)
    plain.w[:] = ours.state.w[:] = rng.normal(size=D)  # no two documents with equal scores
    start = ours.state.w.copy()
    for _ in range(20):
        X = rng.random((8, D))
        shown = ours.rank(X, rng=rng)
        u = tried(shown.memo[1][0], D, 9)
        left, worth = plain.weights(X, u), np.empty((10, 4))
        for j, item in enumerate(shown.items[:4]):
            worth[:, j] = plain.credit(left, item)
            left[:, item] = 0.0
        np.testing.assert_allclose(worth, shown.memo[0], rtol=1e-9)
        hits = rng.integers(0, 2, 4).astype(float)
        plain.learn(u, worth, hits)
        ours.learn(shown, hits)
        np.testing.assert_allclose(plain.w, ours.state.w, rtol=1e-9)
    assert np.abs(plain.w - start).max() > 1e-3


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
    plain.play(pbm.people_for(6, 3).clicks[0].T, 40)
    expected = frank_wolfe(plain.x.T.copy(), plain.L_hat.T.copy(), 1 / (2 * np.sqrt(plain.t)), 25)
    np.testing.assert_allclose(plain.solve().T, expected, atol=1e-12)
