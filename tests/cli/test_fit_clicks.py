"""`rankloop fit-clicks`: words, picture and parameter file; mistakes in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from rankloop import cli, environments, feedback, rankers, simulation
from rankloop.cli import fit_clicks_command
from rankloop.data.clicks.files import Progress

runner = CliRunner()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 pages of two queries, eight items, four positions; one page in a hundred has an impossible click."""
    rng = np.random.default_rng(1)
    users = feedback.PositionBasedModel(attraction=np.linspace(0.8, 0.1, 8), examination=[1.0, 0.6, 0.4, 0.3])
    path = tmp_path_factory.mktemp("log") / "shop log.jsonl"
    with path.open("w") as file:
        for number in range(3_000):
            items = rng.permutation(8)[:4]
            clicked = items[users.click(items, rng=rng) == 1].tolist()
            if number % 100 == 0:
                clicked.append(99)
            file.write(json.dumps({"q": f"q/{number % 2}", "docs": items.tolist(), "clicks": clicked}) + "\n")
    return path


def test_it_prints_draws_and_writes(log: Path, tmp_path: Path) -> None:
    result = runner.invoke(
        cli.app, ["fit-clicks", str(log), "--query", "q/0", "--top", "5", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert "30 bad rows left out" in result.stdout
    assert "left out of the file: 30 rows with a click on an id that was not shown" in result.stdout
    assert "The fit converged after" in result.stdout
    assert "attraction" in result.stdout
    assert "examination" in result.stdout
    (parameters,) = tmp_path.glob("*.json")
    (picture,) = tmp_path.glob("*.png")
    assert parameters.name == "shop-log-q-0.json"
    assert f"Parameters: {parameters}" in result.stdout
    with Image.open(picture) as image:
        assert image.size[0] > 1_000
    read = feedback.read_parameters(parameters)
    assert len(read.attraction) == 5
    assert read.provenance["bad_rows"] == {"a click on an id that was not shown": 30}


def test_what_it_writes_can_be_played(log: Path, tmp_path: Path) -> None:
    runner.invoke(
        cli.app, ["fit-clicks", str(log), "--query", "q/1", "--positions", "3", "--out", str(tmp_path)]
    )
    (parameters,) = tmp_path.glob("*.json")
    world = environments.PositionBased.read(parameters)
    assert (world.n_items, world.n_positions) == (8, 3)
    best = simulation.play(rankers.Fixed(order=world.best().items, n_items=8), world, rounds=100, seed=1)
    assert best.total_regret == pytest.approx(0.0, abs=1e-9)


def test_all_queries_at_once_as_json(log: Path, tmp_path: Path) -> None:
    result = runner.invoke(cli.app, ["fit-clicks", str(log), "--json", "--out", str(tmp_path)])
    told = json.loads(result.stdout)
    assert len(told["items"]) == 16
    assert told["items"][0].startswith("q/")
    assert told["rows"] == 2_970
    assert told["converged"] is True
    np.testing.assert_allclose(told["examination"], [1.0, 0.6, 0.4, 0.3], atol=0.08)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.jsonl"], "error: there is no file nowhere.jsonl"),
        (["LOG", "--query", "q/7"], "error: --query must be one of q/1, q/0, got 'q/7'"),
        (["LOG", "--top", "0"], "error: --top must be a whole number of at least 1, got 0"),
        (["LOG", "--positions", "0"], "error: --positions must be a whole number of at least 1, got 0"),
        (
            ["LOG", "--memory-limit", "2GB"],
            "error: --memory-limit is for --engine duckdb, got '2GB'",
        ),
        (
            ["LOG", "--smoothing", "-1"],
            "error: --smoothing must be a finite number at least 0, got -1.0",
        ),
    ],
)
def test_mistakes_end_in_a_sentence(words: list[str], told: str, log: Path, tmp_path: Path) -> None:
    result = runner.invoke(
        cli.app,
        ["fit-clicks", *(str(log) if word == "LOG" else word for word in words), "--out", str(tmp_path)],
    )
    assert result.exit_code == 2
    assert result.stderr.strip() == told
    assert not list(tmp_path.iterdir())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Counts whose positions begin at 0, with one row of more clicks than impressions."""
    path = tmp_path / "slots.tsv"
    path.write_text(
        "sku\tslot\tviews\tclicks\n"
        "a\t0\t100\t50\na\t1\t100\t25\nb\t0\t100.0\t20.0\nb\t1\t100\t10\nb\t2\t5\t35\nc\t1\t50\t5\n"
    )
    return path


def test_options_say_how_a_table_is_to_be_read(table: Path, tmp_path: Path) -> None:
    words = ["fit-clicks", str(table), "--out", str(tmp_path / "out")]
    asked = runner.invoke(cli.app, words)
    assert asked.exit_code == 2
    assert "name it with --columns item=NAME" in asked.output
    words += ["--columns", "item=sku,position=slot"]
    asked = runner.invoke(cli.app, words)
    assert asked.exit_code == 2
    assert "are at position 0" in asked.output
    assert "say --first-position 0" in asked.output
    words += ["--first-position", "0", "--resume", str(tmp_path / "kept")]
    told = runner.invoke(cli.app, words)
    assert told.exit_code == 0, told.output
    assert (
        "1 rows with more clicks than times shown, and 35 clicks on them (24.1% of all); --clip counts"
        in told.stdout
    )
    pytest.importorskip("duckdb")
    spilling = ["--engine", "duckdb", "--memory-limit", "1GB", "--spill-to", str(tmp_path / "spilled")]
    same = runner.invoke(cli.app, [*words[:-2], *spilling])
    assert same.stdout == told.stdout
    told = runner.invoke(cli.app, [*words, "--clip"])
    assert "left out" not in told.stdout
    assert "3 positions" in told.stdout
    wrong = runner.invoke(cli.app, ["fit-clicks", str(table), "--columns", "sku"])
    assert "--columns must be OURS=THEIRS, such as item=sku, got 'sku'" in wrong.output
    wrong = runner.invoke(cli.app, ["fit-clicks", str(table), "--columns", "thing=sku"])
    assert "--columns must name any of" in wrong.output
    wrong = runner.invoke(cli.app, ["fit-clicks", str(tmp_path / "*.gz")])
    assert "no file matches" in wrong.output


def test_progress_is_one_line_that_goes_away(capsys: pytest.CaptureFixture[str]) -> None:
    for done, left in ((10, float("inf")), (50, 7.4), (60, 300.0), (100, 0.0)):
        fit_clicks_command._show(Progress(Path("a.csv"), done, 100, 3.0, left))
    lines = capsys.readouterr().err.split("\r\x1b[K")
    assert lines == [
        "",
        "10% counted: a.csv",
        "50% counted, 7 s left: a.csv",
        "60% counted, 5 min left: a.csv",
        "",
    ]
