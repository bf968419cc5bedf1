"""`rankloop evaluate`: numbers with intervals, a picture, and a sentence where the log cannot tell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from rankloop import cli, feedback, rankers

runner = CliRunner()

USERS = feedback.PositionBasedModel(attraction=[0.7, 0.4, 0.2, 0.1], examination=[1.0, 0.5])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 lists of two of four items, any pair as likely as any other."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("log") / "shown.jsonl"
    with path.open("w") as file:
        for _ in range(2_000):
            items = rng.permutation(4)[:2]
            row = {
                "query": "tea",
                "shown": [f"i{i}" for i in items],
                "clicked": [
                    f"i{i}" for i, click in zip(items, USERS.click(items, rng=rng), strict=True) if click
                ],
                "propensity": [0.25, 0.25],
            }
            file.write(json.dumps(row) + "\n")
    return path


@pytest.mark.parametrize("estimator", ["doubly-robust", "switch", "item-position", "self-normalised"])
def test_rankers_are_valued_with_intervals_that_hold_the_truth(
    log: Path, tmp_path: Path, estimator: str
) -> None:
    words = [
        "--ranker",
        "i0,i1",
        "--ranker",
        "Uniform",
        "--estimator",
        estimator,
        "--json",
        "--out",
        str(tmp_path),
    ]
    result = runner.invoke(cli.app, ["evaluate", str(log), *words])
    assert result.exit_code == 0, result.output
    told = {one["ranker"]: one for one in json.loads(result.stdout)["rankers"]}
    assert set(told) == {"as logged", "i0,i1", "Uniform"}
    truth = {"i0,i1": 0.7 + 0.2, "Uniform": 1.5 * 0.35, "as logged": 1.5 * 0.35}
    for name, value in truth.items():
        assert told[name]["low"] < value < told[name]["high"]
    with Image.open(tmp_path / f"shown-{estimator}.png") as image:
        assert image.size[0] > 1_000


def test_where_the_log_cannot_tell_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "fixed.jsonl"
    row = {"query": "tea", "shown": ["a", "b"], "clicked": ["a"], "propensity": [0.99, 0.99]}
    other = {"query": "tea", "shown": ["b", "a"], "clicked": [], "propensity": [0.01, 0.01]}
    path.write_text("".join(json.dumps(one) + "\n" for one in [row] * 500 + [other]))
    words = ["--ranker", "b,a", "--ranker", "a,b", "--out", str(tmp_path)]
    result = runner.invoke(cli.app, ["evaluate", str(path), *words])
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "b,a cannot tell: effective sample size 1.0 of 501 rows" in told
    assert "effective size 500 of 501" in told


def test_a_saved_ranker_is_asked(log: Path, tmp_path: Path) -> None:
    rankers.Fixed(order=[0, 1], n_items=4).save(tmp_path / "fixed.npz")
    words = ["--ranker", str(tmp_path / "fixed.npz"), "--json", "--out", str(tmp_path)]
    result = runner.invoke(cli.app, ["evaluate", str(log), *words])
    assert result.exit_code == 0, result.output
    _, found = json.loads(result.stdout)["rankers"]
    assert found["low"] < 0.9 < found["high"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ranker", "i0,i9"], "the log has no item 'i9'"),
        (["--ranker", "Nobody"], "Nobody"),
        (["--ranker", "nobody.npz"], "--ranker nobody.npz: there is no such file"),
        (["--ranker", "Uniform", "--ranker", "i0"], "got 'i0'"),
        (["--ranker", "Uniform", "--ranker", "i0,i0"], "--ranker i0,i0: policy must rank at least 2"),
        (["--ranker", "PBMPIE"], "needs more than items and positions"),
        (["--ranker", "Uniform", "--estimator", "magic"], "estimator must be one of"),
    ],
)
def test_mistakes_are_told_in_a_sentence(words: list[str], told: str, log: Path, tmp_path: Path) -> None:
    result = runner.invoke(cli.app, ["evaluate", str(log), *words, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


def test_a_table_is_valued_by_the_impression(tmp_path: Path) -> None:
    table = tmp_path / "shown.csv"
    rows = [f"{item},{position},{int(item == 'a')},0.5" for item in "ab" for position in (1, 2)] * 100
    table.write_text("\n".join(["item,position,click,propensity", *rows]))
    words = ["evaluate", str(table), "--ranker", "a,b", "--out", str(tmp_path)]
    result = runner.invoke(cli.app, words)
    assert result.exit_code == 0, result.output
    assert "as logged  0.5000 clicks an impression" in result.output
    assert json.loads(runner.invoke(cli.app, [*words, "--json"]).stdout)["unit"] == "clicks an impression"


WEIGHTS = np.array([1.0, -0.5])


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """2,000 lists of up to three of three or four new documents, in any order; and the value of the best lists."""
    rng = np.random.default_rng(2)
    looks, value = np.array([1.0, 0.6, 0.3]), 0.0
    path = tmp_path_factory.mktemp("log") / "documents.jsonl"
    with path.open("w") as file:
        for page in range(2_000):
            n = 3 + page % 2
            x = rng.normal(size=(n, 2)).round(3)
            attraction = 1.0 / (1.0 + np.exp(1.0 - x @ WEIGHTS))
            value += float(np.sort(attraction)[::-1][:3] @ looks) / 2_000
            names, shown = [f"d{page}_{i}" for i in range(n)], rng.permutation(n)[:3]
            clicks = rng.random(3) < attraction[shown] * looks
            row = {
                "candidates": names,
                "features": x.tolist(),
                "shown": [names[i] for i in shown],
                "clicked": [names[i] for i, click in zip(shown, clicks, strict=True) if click],
                "propensity": [1 / n] * 3,
            }
            file.write(json.dumps(row) + "\n")
    return path, value


def test_rankers_with_features_are_valued(documents: tuple[Path, float], tmp_path: Path) -> None:
    path, value = documents
    rankers.PDGD(n_features=2, n_positions=3, warm_start=WEIGHTS).save(tmp_path / "pdgd.npz")
    saved = str(tmp_path / "pdgd.npz")
    words = ["--ranker", "1.0,-0.5", "--ranker", saved, "--ranker", "Uniform", "--out", str(tmp_path)]
    result = runner.invoke(cli.app, ["evaluate", str(path), *words, "--json"])
    assert result.exit_code == 0, result.output
    told = {one["ranker"]: one for one in json.loads(result.stdout)["rankers"]}
    assert told["1.0,-0.5"]["low"] < value < told["1.0,-0.5"]["high"]
    assert told["1.0,-0.5"]["draw_error"] == 0.0
    assert told["as logged"]["high"] < told[saved]["value"] < value  # it draws its lists
    assert 0.0 < told[saved]["draw_error"] < told[saved]["standard_error"]
    assert told["Uniform"]["low"] < told["as logged"]["value"] < told["Uniform"]["high"]
    result = runner.invoke(cli.app, ["evaluate", str(path), *words, "--no-explore"])
    assert result.exit_code == 0, result.output
    lines = [line.split("clicks a list")[0].split()[-1] for line in result.stdout.splitlines()[2:4]]
    assert lines[0] == lines[1]
    with Image.open(tmp_path / "documents-doubly-robust.png") as image:
        assert image.size[0] > 1_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ranker", "1.0,x"], "must be 2 weights, one for each feature"),
        (["--ranker", "Fixed"], "it needs more than features and positions"),
    ],
)
def test_mistakes_with_features_are_told(
    words: list[str], told: str, documents: tuple[Path, float], tmp_path: Path
) -> None:
    result = runner.invoke(cli.app, ["evaluate", str(documents[0]), *words, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())
