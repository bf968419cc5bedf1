"""`rankloop tune`: an answer, a report, the same again after a stop, and mistakes in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rankloop import cli, data, simulation

runner = CliRunner()
QUICK = ["tune", "--ranker", "RTop1F", "--environment", "noisy-halves", "--items", "4", "--rounds", "300"]
QUICK += ["--settings", "3", "--final-runs", "2"]


def test_it_answers_and_reports_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "tune"
    done = runner.invoke(cli.app, [*QUICK, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("dcg of RTop1F as given: ")
    assert f"Report: {out / 'report.html'}" in done.output
    before = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (out / "tuning.json").unlink()
    (out / "report.html").unlink()
    told = runner.invoke(cli.app, [*QUICK, "--out", str(out), "--json"])
    assert {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert set(json.loads(told.output)) == {"arguments", "gain", "standard_error", "report"}

    other = runner.invoke(cli.app, [*QUICK, "--rounds", "400", "--out", str(out)])
    assert "holds another search: rounds is 300 there and 400 here" in other.output

    def stopped(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "tune", stopped)
    left = runner.invoke(cli.app, [*QUICK, "--out", str(out)])
    assert left.exit_code == 130
    assert "the same command goes on from there" in left.output


def test_queries_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{i % 3} qid:{i // 3} 1:{i % 3}.5 2:{i % 5}" for i in range(60)]
    file = tmp_path / "queries.txt"
    file.write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("RANKLOOP_CACHE", str(tmp_path / "cache"))
    given: dict[str, Any] = {}

    def stopped(ranker: Any, environment: Any, **options: Any) -> None:
        given.update(options, ranker=ranker, environment=environment)
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "tune", stopped)
    words = ["tune", "--ranker", "RTopKF", "--letor", str(file), "--set", "k=2", "--only", "radius"]
    runner.invoke(cli.app, [*words, "--held-out", "0.2", "--out", str(tmp_path / "out")])
    train, test = data.read_letor(file).bounded().split(train=0.8, seed=0)
    assert given["environment"].params.relevance.tolist() == train.relevance.tolist()
    assert given["held_out"].params.relevance.tolist() == test.relevance.tolist()
    assert (given["ranker"].n_features, given["ranker"].max_grade) == (2, 2)
    assert (list(given["ranges"]), given["environment"].measure) == (["radius"], "ndcg@10")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--ranker", "RTop1F"], "give either --environment or --letor"),
        (
            ["--ranker", "RTop1F", "--environment", "bernoulli", "--letor", "x"],
            "give either --environment or",
        ),
        (["--ranker", "TopFTRL", "--environment", "bernoulli"], "TopFTRL declares nothing to tune"),
        (
            ["--ranker", "RTop1F", "--environment", "bernoulli", "--only", "k"],
            "--only must name what RTop1F declares, blocks, epsilon, got 'k'",
        ),
        (["--ranker", "RTop1F", "--environment", "bernoulli", "--preset", "mslr"], "--preset is of --letor"),
        (["--ranker", "RTop1F", "--letor", "x", "--held-out", "1"], "--held-out must be above 0 and below 1"),
        (["--ranker", "RTop1F", "--letor", "x", "--items", "3"], "--items is of --environment"),
        (
            ["--ranker", "RTop1F", "--environment", "bernoulli", "--rounds", "x"],
            "rounds must be a whole number",
        ),
        (["--ranker", "Nobody", "--environment", "bernoulli"], "ranker must be one of"),
        (["--ranker", "RTopKF", "--letor", "nowhere.txt"], "nowhere.txt: No such file"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], sentence: str, tmp_path: Path) -> None:
    done = runner.invoke(cli.app, ["tune", *words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert done.output.startswith("error: ")
    assert sentence in done.output
    assert not (tmp_path / "out").exists()
