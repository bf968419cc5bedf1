"""`rankloop fit-clicks --model`: a table, a picture, advice, and a file that environments and rankers take."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from rankloop import cli, environments, feedback, rankers, simulation

runner = CliRunner()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """6,000 pages of users who are satisfied or not, eight items, four positions, some pages of three."""
    rng = np.random.default_rng(1)
    users = feedback.DynamicBayesianModel(
        attraction=np.linspace(0.8, 0.2, 8), satisfaction=[0.1, 0.9] * 4, continuation=0.8
    )
    path = tmp_path_factory.mktemp("log") / "shop.jsonl"
    with path.open("w") as file:
        for number in range(6_000):
            items = rng.permutation(8)[: 3 if number % 10 == 0 else 4]
            clicked = items[users.click(items, rng=rng) == 1].tolist()
            if number % 100 == 0:
                clicked.append(99)
            file.write(json.dumps({"q": "tea", "docs": items.tolist(), "clicks": clicked}) + "\n")
    return path


def test_all_models_are_compared_and_one_is_advised(log: Path, tmp_path: Path) -> None:
    result = runner.invoke(cli.app, ["fit-clicks", str(log), "--model", "all", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "left out of the file: 60 rows with a click on an id that was not shown" in result.stdout
    for name in ("rcm", "rctr", "cascade", "pbm", "dcm", "sdbn", "ccm", "dbn", "trust", "ubm"):
        assert f"\n {name} " in result.stdout
    assert "Use the dynamic Bayesian model (dbn): it predicts the later pages best." in result.stdout
    assert "continuation, with 90% intervals: 0." in result.stdout
    assert "examination for a ranker: 1.000, " in result.stdout
    with Image.open(tmp_path / "shop-tea-models.png") as image:
        assert image.size[0] > 1_000
    # The file plays as a world, and its examination is where a ranker starts.
    read = feedback.read_model(tmp_path / "shop-tea-dbn.json")
    assert isinstance(read.model, feedback.DynamicBayesianModel)
    assert read.model.continuation == pytest.approx(0.8, abs=0.04)
    assert read.provenance["converged"] is True
    assert read.provenance["pages"] == 5_940
    world = environments.ClickUsers(read.model, n_positions=4)
    ranker = rankers.PBMPIE(n_items=8, n_positions=4, examination=read.examination, horizon=200)
    assert simulation.play(ranker, world, rounds=200, seed=1).total[-1] > 0


def test_one_model_stands_beside_the_baselines(log: Path, tmp_path: Path) -> None:
    result = runner.invoke(
        cli.app,
        ["fit-clicks", str(log), "--model", "ubm", "--json", "--positions", "3", "--out", str(tmp_path)],
    )
    told = json.loads(result.stdout)
    assert [model["model"] for model in told["models"]] == ["rcm", "rctr", "ubm"]
    assert told["fitted"] == "ubm"
    assert len(told["examination"]) == 3
    assert (tmp_path / "shop-tea-ubm.json").is_file()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--model", "dbm"], "--model must be one of"),
        (["--model", "all", "--top", "3"], "--top leaves out parts of pages"),
        (["--model", "all", "--query", "coffee"], "query must be one of"),
        (["--model", "all", "--format", "xml"], "--format must be one of"),
        (["--model", "all", "--clip"], "--clip, --resume and --engine are for counts"),
        (["--model", "all", "--columns", "page"], "--columns must be OURS=THEIRS"),
    ],
)
def test_mistakes_are_told_in_a_sentence(words: list[str], told: str, log: Path, tmp_path: Path) -> None:
    result = runner.invoke(cli.app, ["fit-clicks", str(log), *words, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


def test_a_table_of_impressions_needs_a_column_for_the_page(tmp_path: Path) -> None:
    table = tmp_path / "impressions.csv"
    table.write_text("item,position,click\na,1,1\nb,2,0\n")
    result = runner.invoke(cli.app, ["fit-clicks", str(table), "--model", "all", "--out", str(tmp_path)])
    assert result.exit_code == 2
    told = " ".join(result.output.replace("│", " ").split())
    assert "no column for page, which pages need; name it with --columns page=NAME" in told


def test_the_same_pages_give_the_same_models_as_lines_as_a_table_and_as_yandex_has_them(
    log: Path, tmp_path: Path
) -> None:
    table, yandex = tmp_path / "table.csv", tmp_path / "yandex.tsv"
    with table.open("w") as rows, yandex.open("w") as lines:
        rows.write("serp,query,item,slot,click\n")
        for number, line in enumerate(log.read_text().splitlines()):
            page = json.loads(line)
            if 99 in page["clicks"]:
                continue  # the lines with a mistake, which are left out
            for slot, item in enumerate(page["docs"]):
                rows.write(f"{number},tea,{item},{slot},{int(item in page['clicks'])}\n")
            lines.write("\t".join(map(str, (number, 0, "Q", 1, 1, *page["docs"]))) + "\n")
            for item in page["clicks"]:
                lines.write(f"{number}\t1\tC\t{item}\n")
    words = {
        log: [],
        table: ["--columns", "page=serp,position=slot", "--first-position", "0"],
        yandex: ["--format", "yandex"],
    }
    told = []
    for path, options in words.items():
        given = ["fit-clicks", str(path), *options, "--model", "dcm", "--json", "--out", str(tmp_path)]
        result = runner.invoke(cli.app, given)
        assert result.exit_code == 0, result.output
        told.append(json.loads(result.stdout))
    assert told[0]["pages"] == told[1]["pages"] == told[2]["pages"] == 5_940
    assert told[0]["models"] == told[1]["models"] == told[2]["models"]
