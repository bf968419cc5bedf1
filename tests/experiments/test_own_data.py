"""Experiments on data sets of one's own: played in the place of the known ones, and never mistaken for others."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rankloop import cli, data, experiments
from rankloop.experiments import oltr_comparison as oltr

TAKING = ("top-2016-fig1", "top-2016-beyond", "oltr-comparison")
runner = CliRunner()


def write(path: Path, *, seed: int = 1, n_queries: int = 40, more: str = "") -> Path:
    """A LETOR file of small queries with a linear truth."""
    made = data.synthetic_letor(n_queries=n_queries, n_features=5, seed=seed)
    lines = []
    for q, name in enumerate(made.query_ids):
        for d in range(made.offsets[q], made.offsets[q + 1]):
            told = " ".join(f"{j}:{x:.6f}" for j, x in enumerate(made.features[d], start=1))
            lines.append(f"{made.relevance[d]:.0f} qid:{name} {told}\n")
    path.write_text("".join(lines) + more)
    return path


def test_the_command_plays_it_and_names_it_in_a_section_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oltr, "QUICK_ROUNDS", 50)
    path, out = write(tmp_path / "shop.txt"), tmp_path / "out"
    words = ["reproduce", "oltr-comparison", "--quick", "--out", str(out), "--dataset", f"shop={path}"]
    result = runner.invoke(cli.app, words)
    assert result.exit_code in (0, 1), result.output  # fifty rounds settle no claim
    assert [folder.name for folder in out.iterdir() if folder.is_dir()] == ["oltr-comparison-shop"]
    record = json.loads((out / "oltr-comparison-shop" / "claims.json").read_text())
    (key,) = {record["settings"]["set"]}
    name, _, digest = key.partition("@")
    assert (name, len(digest)) == ("shop", 12)
    (note,) = record["notes"]
    assert note.startswith("Played on data of one's own instead of ")
    assert note.endswith(f": shop ({path}, 40 queries, SHA-256 {digest}...)")
    assert record["command"] == f"rankloop reproduce oltr-comparison --dataset shop={path} --quick"
    assert {row["data set"] for row in record["summary"]} == {"shop"}
    assert all(claim["text"].startswith("shop") for claim in record["claims"])
    page = (out / "report.html").read_text()
    assert '<section id="oltr-comparison-shop">' in page
    assert escape(note) in page


@pytest.mark.parametrize("name", TAKING)
def test_other_contents_are_other_jobs_and_the_same_contents_elsewhere_are_the_same(
    name: str, tmp_path: Path
) -> None:
    def identities(path: Path, called: str = "mine") -> set[str]:
        experiment = experiments.get(name, datasets={called: path})
        jobs = experiment.jobs(quick=True)
        assert {job.settings["set"] for job in jobs} == set(experiment.own)  # type: ignore[attr-defined]
        return {job.identity(experiment=name, version=experiment.version) for job in jobs}

    first = identities(write(tmp_path / "a.txt"))
    assert identities(write(tmp_path / "b.txt")) == first
    assert not identities(write(tmp_path / "c.txt", seed=2)) & first
    assert not identities(tmp_path / "a.txt", called="yours") & first
    known = experiments.get(name)
    assert known.label == name
    jobs = known.jobs(quick=True)
    assert not {job.identity(experiment=name, version=known.version) for job in jobs} & first


@pytest.mark.parametrize("name", TAKING[:2])
def test_the_experiments_of_2016_run_on_it(name: str, tmp_path: Path) -> None:
    experiment = experiments.get(name, datasets={"mine": write(tmp_path / "a.txt")})
    job = experiment.jobs(quick=True)[0]
    rows = experiment.run(replace(job, settings={**job.settings, "rounds": 100}))
    assert job.name.startswith("mine, ")
    assert set(rows["set"]) == {job.settings["set"]}


def test_what_has_no_use_for_a_data_set_refuses_it() -> None:
    for name in experiments.names():
        if name not in (*TAKING, "pbm-2022-fig2"):
            with pytest.raises(ValueError, match=f"'{name}' has no use for data of one's own, got .*'my'"):
                experiments.get(name, datasets={"my": "letor.txt"})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("my", "--dataset must be NAME=PATH, such as my=letor.txt, got 'my'"),
        ("=good.txt", "--dataset must be NAME=PATH"),
        ("../my=good.txt", "got '../my'"),
        ("MQ2008=good.txt", "the name 'MQ2008' is taken by a known data set"),
        ("my=nowhere.txt", "data set 'my': there is no file or folder 'nowhere.txt'"),
        ("my=empty", "data set 'my': empty: no .txt or .txt.gz file in the folder"),
        ("my=broken.txt", "data set 'my': broken.txt, line"),
        ("my=few.txt", "data set 'my': 3 queries are too few"),
        ("my=grades.txt", "data set 'my': clicks='perfect' is known for labels up to 1, 2 or 4"),
    ],
)
def test_bad_data_is_told_in_a_sentence_before_anything_runs(
    given: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    write(tmp_path / "good.txt")
    write(tmp_path / "broken.txt", more="nonsense\n")
    write(tmp_path / "few.txt", n_queries=3)
    write(tmp_path / "grades.txt", more="7 qid:other 1:0.5\n")
    result = runner.invoke(cli.app, ["reproduce", "oltr-comparison", "--quick", "--dataset", given])
    assert result.exit_code == 2
    assert told in " ".join(result.output.replace("│", " ").split())
    assert not (tmp_path / "results").exists()


def test_nothing_is_played_when_one_of_several_experiments_refuses(tmp_path: Path) -> None:
    path, out = write(tmp_path / "good.txt"), tmp_path / "out"
    words = ["reproduce", "oltr-comparison", "top1-2015-fig1", "--quick", "--out", str(out)]
    result = runner.invoke(cli.app, [*words, "--dataset", f"my={path}"])
    assert result.exit_code == 2
    assert "has no use for data of one's own" in " ".join(result.output.replace("│", " ").split())
    twice = runner.invoke(cli.app, [*words, "--dataset", f"my={path}", "--dataset", f"my={path}"])
    assert twice.exit_code == 2
    assert "--dataset names 'my' twice" in " ".join(twice.output.replace("│", " ").split())
    assert not out.exists()
