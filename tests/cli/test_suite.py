"""The commands `rankloop suite`."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import polars as pl
import pytest

from rankloop import suite
from tests.cli.call import call, refused
from tests.suite import small


@pytest.fixture(autouse=True)
def small_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "run", functools.partial(suite.run, worlds=small.WORLDS))
    monkeypatch.setattr(suite, "verify", functools.partial(suite.verify, worlds=small.WORLDS))


def test_run_verify_and_report(tmp_path: Path) -> None:
    out = tmp_path / "suite"
    ran = call("suite", "run", "FTRLPBM", "FTRLPBM,estimator=mean", "--seeds", "2", "--out", out)
    assert "clicks on fixed items" in ran.output
    assert "FTRLPBM: 1 of 4 worlds are not applicable" in ran.output
    file = out / "submission.parquet"
    assert file.exists()
    assert (out / "suite.html").exists()
    held = call("suite", "verify", file, "--sample", "2")
    assert held.output.count("same ") == 2
    assert "is what it says, as far as 2 runs tell" in held.output
    call("suite", "report", file, "--out", tmp_path / "page")
    assert (tmp_path / "page" / "suite.html").exists()
    given = suite.read_submission(file)
    forged = given.results.with_columns(score=pl.col("score") + 0.1)
    suite.Submission(forged, given.provenance).write(file)
    told = json.loads(call("suite", "verify", file, "--json", code=1).output)
    assert not told["holds"]
    assert "its score does not follow" in told["problems"][0]


def test_scores_as_json(tmp_path: Path) -> None:
    ran = call("suite", "run", "CascadeKLUCB", "--quick", "--seeds", "1", "--json", "--out", tmp_path)
    told = json.loads(ran.output)
    assert {row["capability"] for row in told["scores"]} == {"noise", "reversal", "delay"}
    assert told["not_applicable"][0]["world"] == "relevant"
    assert told["provenance"]["seeds"] == 1


def test_the_worlds_are_listed() -> None:
    assert "click fraud\n  fraud-promoted" in call("suite", "list").output
    told = json.loads(call("suite", "list", "--json").output)
    assert len(told) == len(suite.WORLDS)
    assert told[0]["quick"]["hash"] == suite.WORLDS[0].fingerprint(full=False)


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    for words, message in (
        ("run Nobody", "ranker must be one of"),
        ("run FTRLPBM,k=1", "FTRLPBM has no argument 'k'"),
        ("run FTRLPBM --quick --full", "give --quick or --full, not both"),
        ("run FTRLPBM --executor nowhere", "executor must be"),
        ("verify nowhere.parquet", "there is no file nowhere.parquet"),
        ("report nowhere.parquet", "there is no file nowhere.parquet"),
    ):
        options = [] if words.startswith("verify") else ["--out", tmp_path / "out"]
        assert message in refused("suite", *words.split(), *options)
