"""The commands `rankloop suite`."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from rankloop import suite
from rankloop.cli import app
from tests.suite import small

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def small_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "run", functools.partial(suite.run, worlds=small.WORLDS))
    monkeypatch.setattr(suite, "verify", functools.partial(suite.verify, worlds=small.WORLDS))


def test_run_verify_and_report(tmp_path: Path) -> None:
    out = tmp_path / "suite"
    ran = RUNNER.invoke(
        app, ["suite", "run", "FTRLPBM", "FTRLPBM,estimator=mean", "--seeds", "2", "--out", str(out)]
    )
    assert ran.exit_code == 0, ran.output
    assert "clicks on fixed items" in ran.output
    assert "FTRLPBM: 1 of 4 worlds are not applicable" in ran.output
    file = out / "submission.parquet"
    assert file.exists()
    assert (out / "suite.html").exists()
    held = RUNNER.invoke(app, ["suite", "verify", str(file), "--sample", "2"])
    assert held.exit_code == 0, held.output
    assert held.output.count("same ") == 2
    assert "is what it says, as far as 2 runs tell" in held.output
    drawn = RUNNER.invoke(app, ["suite", "report", str(file), "--out", str(tmp_path / "page")])
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / "page" / "suite.html").exists()
    given = suite.read_submission(file)
    forged = given.results.with_columns(score=pl.col("score") + 0.1)
    suite.Submission(forged, given.provenance).write(file)
    refused = RUNNER.invoke(app, ["suite", "verify", str(file), "--json"])
    assert refused.exit_code == 1
    told = json.loads(refused.output)
    assert not told["holds"]
    assert "its score does not follow" in told["problems"][0]


def test_scores_as_json(tmp_path: Path) -> None:
    ran = RUNNER.invoke(
        app, ["suite", "run", "CascadeKLUCB", "--quick", "--seeds", "1", "--json", "--out", str(tmp_path)]
    )
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.output)
    assert {row["capability"] for row in told["scores"]} == {"noise", "reversal", "delay"}
    assert told["not_applicable"][0]["world"] == "relevant"
    assert told["provenance"]["seeds"] == 1


def test_the_worlds_are_listed() -> None:
    listed = RUNNER.invoke(app, ["suite", "list"])
    assert "click fraud\n  fraud-promoted" in listed.output
    told = json.loads(RUNNER.invoke(app, ["suite", "list", "--json"]).output)
    assert len(told) == len(suite.WORLDS)
    assert told[0]["quick"]["hash"] == suite.WORLDS[0].fingerprint(full=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "Nobody"], "ranker must be one of"),
        (["run", "FTRLPBM,k=1"], "FTRLPBM has no argument 'k'"),
        (["run", "FTRLPBM", "--quick", "--full"], "give --quick or --full, not both"),
        (["run", "FTRLPBM", "--executor", "nowhere"], "executor must be"),
        (["verify", "nowhere.parquet"], "there is no file nowhere.parquet"),
        (["report", "nowhere.parquet"], "there is no file nowhere.parquet"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], message: str, tmp_path: Path) -> None:
    options = ["--out", str(tmp_path / "out")] if words[0] != "verify" else []
    failed = RUNNER.invoke(app, ["suite", *words, *options])
    assert failed.exit_code == 2
    assert message in failed.stderr
    assert "Traceback" not in failed.stderr
