"""`rankloop fit-clicks` and `rankloop evaluate`: words, pictures and parameter files; mistakes in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rankloop import environments, feedback, rankers, simulation
from tests.cli.call import call, refused

USERS = feedback.PositionBasedModel(attraction=[0.7, 0.4, 0.2, 0.1], examination=[1.0, 0.5])
WEIGHTS = np.array([1.0, -0.5])


def _is_picture(path: Path) -> bool:
    with Image.open(path) as image:
        return image.size[0] > 1_000


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_it_prints_draws_and_writes(pages: Path, tmp_path: Path) -> None:
    result = call("fit-clicks", pages, "--query", "q/0", "--top", "5", "--out", tmp_path)
    assert "30 bad rows left out" in result.stdout
    assert "left out of the file: 30 rows with a click on an id that was not shown" in result.stdout
    assert "The fit converged after" in result.stdout
    assert "attraction" in result.stdout
    assert "examination" in result.stdout
    (parameters,) = tmp_path.glob("*.json")
    (picture,) = tmp_path.glob("*.png")
    assert parameters.name == "shop-log-q-0.json"
    assert f"Parameters: {parameters}" in result.stdout
    assert _is_picture(picture)
    read = feedback.read_parameters(parameters)
    assert len(read.attraction) == 5
    assert read.provenance["bad_rows"] == {"a click on an id that was not shown": 30}


def test_what_it_writes_can_be_played(pages: Path, tmp_path: Path) -> None:
    call("fit-clicks", pages, "--query", "q/1", "--positions", "3", "--out", tmp_path)
    (parameters,) = tmp_path.glob("*.json")
    world = environments.PositionBased.read(parameters)
    assert (world.n_items, world.n_positions) == (8, 3)
    best = simulation.play(rankers.Fixed(order=world.best().items, n_items=8), world, rounds=100, seed=1)
    assert best.total_regret == pytest.approx(0.0, abs=1e-9)


def test_all_queries_at_once_as_json(pages: Path, tmp_path: Path) -> None:
    told = json.loads(call("fit-clicks", pages, "--json", "--out", tmp_path).stdout)
    assert len(told["items"]) == 16
    assert told["items"][0].startswith("q/")
    assert told["rows"] == 2_970
    assert told["converged"] is True
    np.testing.assert_allclose(told["examination"], [1.0, 0.6, 0.4, 0.3], atol=0.08)


def test_what_cannot_be_fitted_is_one_sentence(pages: Path, tmp_path: Path) -> None:
    assert refused("fit-clicks", "nowhere.jsonl") == "there is no file nowhere.jsonl"
    for words, told in (
        ("--query q/7", "--query must be one of q/1, q/0, got 'q/7'"),
        ("--top 0", "--top must be a whole number of at least 1, got 0"),
        ("--positions 0", "--positions must be a whole number of at least 1, got 0"),
        ("--smoothing -1", "--smoothing must be a finite number at least 0, got -1.0"),
    ):
        assert refused("fit-clicks", pages, *words.split(), "--out", tmp_path / "out") == told
        assert not (tmp_path / "out").exists()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Counts whose positions begin at 0, with one row of more clicks than impressions."""
    path = tmp_path / "slots.tsv"
    path.write_text(
        "article\tplace\tviews\tclicks\n"
        "a\t0\t100\t50\na\t1\t100\t25\nb\t0\t100.0\t20.0\nb\t1\t100\t10\nb\t2\t5\t35\nc\t1\t50\t5\n"
    )
    return path


def test_options_say_how_a_table_is_to_be_read(table: Path, tmp_path: Path) -> None:
    words = ["fit-clicks", str(table), "--out", str(tmp_path / "out")]
    assert "name them with --columns item=NAME,position=NAME" in refused(*words)
    words += ["--columns", "item=article,position=place"]
    doubtful = refused(*words)
    assert "are at position 0" in doubtful
    assert "say --first-position 0" in doubtful
    words += ["--first-position", "0"]
    told = call(*words).stdout
    assert (
        "1 rows with more clicks than times shown, and 35 clicks on them (24.1% of all); --clip counts"
        in told
    )
    old = ["--engine", "duckdb", "--memory-limit", "1GB", "--spill-to", tmp_path, "--resume", tmp_path]
    ignored = call(*words, *old)
    assert (ignored.stdout, "are ignored: Polars counts every log" in ignored.stderr) == (told, True)
    clipped = call(*words, "--clip").stdout
    assert "left out" not in clipped
    assert "3 positions" in clipped
    wrong = refused("fit-clicks", table, "--columns", "sku")
    assert wrong == "--columns must be OURS=THEIRS, such as item=sku, got 'sku'"
    assert "--columns must name any of" in refused("fit-clicks", table, "--columns", "thing=sku")
    assert refused("fit-clicks", tmp_path / "*.gz").startswith("no file matches")


@pytest.fixture(scope="module")
def satisfied(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_all_models_are_compared_and_one_is_advised(satisfied: Path, tmp_path: Path) -> None:
    result = call("fit-clicks", satisfied, "--model", "all", "--out", tmp_path)
    assert "left out of the file: 60 rows with a click on an id that was not shown" in result.stdout
    for name in ("rcm", "rctr", "cascade", "pbm", "dcm", "sdbn", "ccm", "dbn", "trust", "ubm"):
        assert f"\n {name} " in result.stdout
    assert "Use the dynamic Bayesian model (dbn): it predicts the later pages best." in result.stdout
    assert "continuation, with 90% intervals: 0." in result.stdout
    assert "examination for a ranker: 1.000, " in result.stdout
    assert not list(tmp_path.glob("*.png"))
    # The file plays as a world, and its examination is where a ranker starts.
    read = feedback.read_model(tmp_path / "shop-tea-dbn.json")
    assert isinstance(read.model, feedback.DynamicBayesianModel)
    assert read.model.continuation == pytest.approx(0.8, abs=0.04)
    assert read.provenance["converged"] is True
    assert read.provenance["pages"] == 5_940
    world = environments.ClickUsers(read.model, n_positions=4)
    ranker = rankers.PBMPIE(n_items=8, n_positions=4, examination=read.examination, horizon=200)
    assert simulation.play(ranker, world, rounds=200, seed=1).total[-1] > 0


def test_one_model_stands_beside_the_baselines(satisfied: Path, tmp_path: Path) -> None:
    words = ["--model", "ubm", "--json", "--positions", "3", "--out", tmp_path]
    told = json.loads(call("fit-clicks", satisfied, *words).stdout)
    assert [model["model"] for model in told["models"]] == ["rcm", "rctr", "ubm"]
    assert told["fitted"] == "ubm"
    assert len(told["examination"]) == 3
    assert (tmp_path / "shop-tea-ubm.json").is_file()


def test_what_no_model_fits_is_one_sentence(satisfied: Path, tmp_path: Path) -> None:
    for words, told in (
        ("dbm", "--model must be one of"),
        ("all --top 3", "--top leaves out parts of pages"),
        ("all --query coffee", "--query must be one of"),
        ("all --format xml", "--format must be one of"),
        ("all --clip", "--clip is for counts"),
        ("all --columns page", "--columns must be OURS=THEIRS"),
    ):
        assert told in refused("fit-clicks", satisfied, "--model", *words.split(), "--out", tmp_path / "out")
        assert not (tmp_path / "out").exists()
    table = tmp_path / "impressions.csv"
    table.write_text("item,position,click\na,1,1\nb,2,0\n")
    told = refused("fit-clicks", table, "--model", "all", "--out", tmp_path)
    assert "no column for page, which pages need; name it with --columns page=NAME" in told


def test_the_same_pages_give_the_same_models_as_lines_as_a_table_and_as_yandex_has_them(
    satisfied: Path, tmp_path: Path
) -> None:
    table, yandex = tmp_path / "table.csv", tmp_path / "yandex.tsv"
    with table.open("w") as rows, yandex.open("w") as lines:
        rows.write("serp,query,item,slot,click\n")
        for number, line in enumerate(satisfied.read_text().splitlines()):
            page = json.loads(line)
            if 99 in page["clicks"]:
                continue  # the lines with a mistake, which are left out
            for slot, item in enumerate(page["docs"]):
                rows.write(f"{number},tea,{item},{slot},{int(item in page['clicks'])}\n")
            lines.write("\t".join(map(str, (number, 0, "Q", 1, 1, *page["docs"]))) + "\n")
            for item in page["clicks"]:
                lines.write(f"{number}\t1\tC\t{item}\n")
    words = {
        satisfied: [],
        table: ["--columns", "page=serp,position=slot", "--first-position", "0"],
        yandex: ["--format", "yandex"],
    }
    told = []
    for path, options in words.items():
        result = call("fit-clicks", path, *options, "--model", "dcm", "--json", "--out", tmp_path)
        told.append(json.loads(result.stdout))
    assert told[0]["pages"] == told[1]["pages"] == told[2]["pages"] == 5_940
    assert told[0]["models"] == told[1]["models"] == told[2]["models"]


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_rankers_are_valued_with_intervals_that_hold_the_truth(lists: Path) -> None:
    truth = {"i0,i1": 0.7 + 0.2, "Uniform": 1.5 * 0.35, "as logged": 1.5 * 0.35}
    words = ["--ranker", "i0,i1", "--ranker", "Uniform", "--json"]
    for estimator in ("doubly-robust", "switch", "item-position", "self-normalised"):
        result = call("evaluate", lists, *words, "--estimator", estimator)
        told = {one["ranker"]: one for one in json.loads(result.stdout)["rankers"]}
        assert set(told) == set(truth)
        for name, value in truth.items():
            assert told[name]["low"] < value < told[name]["high"]


def test_where_the_log_cannot_tell_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "fixed.jsonl"
    row = {"query": "tea", "shown": ["a", "b"], "clicked": ["a"], "propensity": [0.99, 0.99]}
    other = {"query": "tea", "shown": ["b", "a"], "clicked": [], "propensity": [0.01, 0.01]}
    path.write_text("".join(json.dumps(one) + "\n" for one in [row] * 500 + [other]))
    result = call("evaluate", path, "--ranker", "b,a", "--ranker", "a,b")
    told = " ".join(result.stdout.split())
    assert "b,a cannot tell: effective sample size 1.0 of 501 rows" in told
    assert "effective size 500 of 501" in told


def test_a_saved_ranker_is_asked(lists: Path, tmp_path: Path) -> None:
    rankers.Fixed(order=[0, 1], n_items=4).save(tmp_path / "fixed.npz")
    words = ["--ranker", tmp_path / "fixed.npz", "--json"]
    _, fixed = json.loads(call("evaluate", lists, *words).stdout)["rankers"]
    assert fixed["low"] < 0.9 < fixed["high"]


def test_what_cannot_be_valued_is_one_sentence(lists: Path, documents: tuple[Path, float]) -> None:
    for log, words, told in (
        (lists, "i0,i9", "the log has no item 'i9'"),
        (lists, "Nobody", "Nobody"),
        (lists, "nobody.npz", "--ranker nobody.npz: there is no such file"),
        (lists, "Uniform --ranker i0", "got 'i0'"),
        (lists, "Uniform --ranker i0,i0", "--ranker i0,i0: policy must rank at least 2"),
        (lists, "PBMPIE", "needs more than items and positions"),
        (lists, "Uniform --estimator magic", "estimator must be one of"),
        (documents[0], "1.0,x", "must be 2 weights, one for each feature"),
        (documents[0], "Fixed", "it needs more than features and positions"),
    ):
        assert told in refused("evaluate", log, "--ranker", *words.split())


def test_a_table_is_valued_by_the_impression(tmp_path: Path) -> None:
    table = tmp_path / "shown.csv"
    rows = [f"{item},{position},{int(item == 'a')},0.5" for item in "ab" for position in (1, 2)] * 100
    table.write_text("\n".join(["item,position,click,propensity", *rows]))
    words = ["evaluate", table, "--ranker", "a,b"]
    assert "as logged  0.5000 clicks per impression" in call(*words).output
    assert json.loads(call(*words, "--json").stdout)["unit"] == "clicks per impression"
    assert "queries" not in call(*words).output


def test_one_query_of_a_log_is_valued_alone(tmp_path: Path) -> None:
    table = tmp_path / "shown.csv"
    rows = [f"{query},{item},1,{int(query == 'cat')},0.5" for query in ("cat", "dog") for item in "ab"] * 200
    table.write_text("\n".join(["query,item,position,click,propensity", *rows]))
    words = ["evaluate", table, "--ranker", "a,b"]
    assert "All 2 queries together; --query NAME takes one." in call(*words).output
    assert "as logged  0.5000" in call(*words).output
    alone = call(*words, "--query", "cat").output
    assert "as logged  1.0000" in alone
    assert "together" not in alone
    assert "--query must be one of cat, dog" in refused(*words, "--query", "cow")


def test_the_position_based_model_needs_no_pages(tmp_path: Path) -> None:
    table = tmp_path / "shown.csv"
    rows = [f"{item},{position},{int(item == 'a')}" for item in "ab" for position in (1, 2)] * 100
    table.write_text("\n".join(["item,position,click", *rows]))
    plain = call("fit-clicks", table, "--out", tmp_path / "plain", "--json").stdout
    named = call("fit-clicks", table, "--model", "pbm", "--out", tmp_path / "plain", "--json").stdout
    assert named == plain
    assert "no column for page" in refused("fit-clicks", table, "--model", "dbn", "--out", tmp_path / "dbn")


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
    words = ["--ranker", "1.0,-0.5", "--ranker", saved, "--ranker", "Uniform"]
    result = call("evaluate", path, *words, "--json")
    told = {one["ranker"]: one for one in json.loads(result.stdout)["rankers"]}
    assert told["1.0,-0.5"]["low"] < value < told["1.0,-0.5"]["high"]
    assert told["1.0,-0.5"]["draw_error"] == 0.0
    assert told["as logged"]["high"] < told[saved]["value"] < value  # it draws its lists
    assert 0.0 < told[saved]["draw_error"] < told[saved]["standard_error"]
    assert told["Uniform"]["low"] < told["as logged"]["value"] < told["Uniform"]["high"]
    result = call("evaluate", path, *words, "--no-explore")
    lines = [line.split("clicks per list")[0].split()[-1] for line in result.stdout.splitlines()[2:4]]
    assert lines[0] == lines[1]


def test_common_names_of_columns_are_known_and_all_that_are_missing_are_named_at_once(tmp_path: Path) -> None:
    table = tmp_path / "shop.csv"
    rows = "".join(f"{item},1,{int(item == 'a')},0.5\n" for item in "ab" * 200)
    table.write_text("sku,rank,clicked,chance\n" + rows)
    wrong = refused("evaluate", str(table), "--ranker", "a,b")
    assert wrong.endswith("no column for propensity; name it with --columns propensity=NAME")
    told = call("evaluate", str(table), "--ranker", "a,b", "--columns", "propensity=chance").output
    assert "as logged" in told
    (tmp_path / "odd.csv").write_text("thing,rank,clicked\nx,1,0\n")
    wrong = refused("evaluate", str(tmp_path / "odd.csv"), "--ranker", "x")
    assert wrong.endswith(
        "no column for item, propensity; name them with --columns item=NAME,propensity=NAME"
    )
